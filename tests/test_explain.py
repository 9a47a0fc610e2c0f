"""The explanation, the prices it gives, and the notebook display."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from fitcheck.engine.api import estimate
from fitcheck.engine.cards import Card
from fitcheck.engine.explain import explain, largest_component, lowered
from fitcheck.engine.hints import (
    Hint,
    price_hints,
    proposals,
    propose,
    smallest_card,
)
from fitcheck.engine.record import replace
from fitcheck.engine.spelling import opposite, spelled

LLAMA = "meta-llama/Llama-3.1-8B"
MIB = 1 << 20
SHAPE = {
    "hidden_size": 2048,
    "intermediate_size": 5632,
    "num_hidden_layers": 22,
    "num_attention_heads": 32,
    "num_key_value_heads": 4,
    "vocab_size": 32000,
    "tie_word_embeddings": False,
}
GOLDEN = {"qlora": True, "lora_r": 64, "batch_size": 4, "flash_attn": True}


def test_the_explanation_of_the_golden_configuration() -> None:
    text = estimate(LLAMA, gpu="4090", **GOLDEN).explain()
    flat = " ".join(text.split())
    assert flat.startswith(
        "Largest component: activations (20,128 MiB, 66%) — 16,032 MiB of that is"
    )
    assert "4 fp32 copies of the (b, s, V) logits tensor" in flat
    lines = text.splitlines()
    assert "  adamw -> adam8bit ............. saves      312 MiB" in lines
    assert "  --flash-attn OFF .............. costs        0 MiB   (currently ON)" in lines
    assert "  --grad-checkpoint OFF ......... costs  +51,072 MiB   (currently ON)" in lines
    assert "  --grad-accum 8 ................ costs        0 MiB   (accumulation is free)" in lines
    assert "DOES NOT FIT: the estimate is 30,607 MiB, the card gives 23,500 MiB." in lines
    assert "It would fit with --batch-size 2 --grad-accum 2 (20,040 MiB, UNCERTAIN): a" in flat
    assert "It would be safe with --batch-size 1 --grad-accum 4 (14,756 MiB, FITS)." in flat
    card = "NVIDIA A100 40 GB (--gpu a100-40, 39,500 MiB usable, FITS)"
    assert f"As it is, it would fit on {card}." in flat
    assert "(the estimate may be" in text[text.index("Caveats:") :]
    evidence = text[text.index("Evidence:") :]
    assert "  - derived: activations" in evidence and "  - assumed: CUDA overhead" in evidence
    assert re.search(r"  - measured \(69 rows, T4\): LoRA adapter weights", evidence)


@pytest.mark.parametrize(
    ("flags", "largest"),
    [
        (GOLDEN, "activations"),
        ({"qlora": True, "seq_len": 128}, "base model weights"),
        ({"lora": False}, "optimizer state"),
        ({"qlora": True, "lora_r": 4096, "lora_targets": "full"}, "optimizer state"),
    ],
)
def test_the_largest_component_is_computed(flags: dict[str, object], largest: str) -> None:
    report = estimate(LLAMA, gpu="a100-80", **flags)
    component = max(report.components, key=lambda c: c.bytes)
    assert lowered(component.title) == largest
    assert report.explain().startswith(f"Largest component: {largest} (")


def test_what_is_not_there_at_the_peak_is_never_the_largest() -> None:
    report = estimate(LLAMA, gpu="4090", **GOLDEN)
    absent = replace(report.components[4], phases=("load",))
    changed = replace(report, components=(*report.components[:4], absent, report.components[5]))
    assert largest_component(changed).startswith("Largest component: base model weights")


def test_a_part_is_named_only_where_it_is_most_of_it() -> None:
    assert "Logits and loss:" in largest_component(estimate(LLAMA, **GOLDEN))
    eager = largest_component(estimate(LLAMA, batch_size=4, seq_len=4096))
    assert eager.startswith("Largest component: activations") and "Logits and loss:" not in eager


def test_a_run_that_is_safe_has_no_proposal() -> None:
    text = estimate(LLAMA, qlora=True).explain()
    assert "\nFITS: it leaves" in text
    assert "would fit" not in text and "would be safe" not in text


def test_an_uncertain_run_is_told_what_is_safe() -> None:
    text = estimate(LLAMA, qlora=True, batch_size=2).explain()
    assert "\nUNCERTAIN: " in text and "It would fit with" not in text
    assert "It would be safe with --batch-size 1 --grad-accum 2 (14,132 MiB, FITS): a" in text
    assert "As it is, it would fit on NVIDIA" in " ".join(text.split())


def test_warnings_are_caveats_with_a_direction() -> None:
    text = " ".join(estimate(LLAMA, quant="int8").explain().split())
    assert "outlier buffers" in text and "(the estimate may be too low)." in text


def test_nothing_fits() -> None:
    text = estimate("meta-llama/Llama-3.1-405B", gpu="t4", lora=False).explain()
    assert "No combination of the changes that are known here makes it fit." in text
    assert "it would fit on" not in text


@pytest.mark.parametrize("width", [50, 88, 120])
def test_sentences_are_wrapped_between_words(width: int) -> None:
    report = estimate(LLAMA, gpu="4090", **GOLDEN)
    for line in explain(report, width).splitlines():
        assert len(line) <= width and not line.endswith("-")
    flat = " ".join(explain(report, width).split())
    assert ("--grad-accum 8: costs 0 MiB (accumulation is free)" in flat) is (width < 80)


def test_a_price_is_the_difference_of_two_estimates() -> None:
    report = estimate(LLAMA, gpu="4090", **GOLDEN)
    for hint in price_hints(report.prepared):
        changed = {**report.prepared.settings.values, **hint.change}
        changed.pop("optimizer_dtype")  # only allowed beside adamw
        changed.pop("image_size")  # only allowed with images
        assert hint.saved == report["total"] - estimate(LLAMA, gpu="4090", **changed)["total"]


@pytest.mark.parametrize(
    ("saved", "says"),
    [
        (0, "costs        0 MiB"),
        (312 * MIB, "saves      312 MiB"),
        (-51_072 * MIB, "costs  +51,072 MiB"),
        (MIB // 4, "saves     0.25 MiB"),
        (-MIB // 4, "costs    +0.25 MiB"),
    ],
)
def test_a_hint_in_words(saved: int, says: str) -> None:
    assert Hint("label", saved, "", {}).text == f"label ......................... {says}"
    assert Hint("label", saved, "why", {}).text.endswith(f"{says}   (why)")
    assert Hint("label", saved, "why", {}).short == f"label: {' '.join(says.split())} (why)"


@pytest.mark.parametrize("goal", ["fits", "safe"])
@pytest.mark.parametrize(
    ("model", "gpu", "flags"),
    [
        (LLAMA, "4090", GOLDEN),
        (LLAMA, "3060-12", {"seq_len": 8192}),
        (LLAMA, "4090", {"qlora": True, "lora_r": 65536}),
        (LLAMA, "a100-80", {"lora": False}),
        (LLAMA, "4090", {"precision": "fp32", "batch_size": 64}),
        (LLAMA, "t4", {"qlora": True, "precision": "fp16", "batch_size": 8}),
        ("mistralai/Mistral-7B-v0.3", "4090", {"qlora": True, "seq_len": 131072}),
    ],
)
def test_a_proposal_reaches_its_goal(
    model: str, gpu: str, flags: dict[str, object], goal: str
) -> None:
    report = estimate(model, gpu=gpu, **flags)
    proposal = propose(report.prepared, goal)
    assert proposal is not None and proposal.goal == goal
    after = estimate(model, gpu=gpu, **{**flags, **proposal.changes})
    assert after["fits"] and (after.safe or goal == "fits")
    assert (after["total"], after.status, after.title, after.safe) == (
        proposal.total,
        proposal.status,
        proposal.title,
        proposal.safe,
    )
    steps = report["effective_batch_size"], after["effective_batch_size"]
    assert steps[0] <= steps[1]  # the optimizer step is never made smaller


def test_a_length_is_halved_as_often_as_it_takes() -> None:
    report = estimate("mistralai/Mistral-7B-v0.3", gpu="4090", qlora=True, seq_len=131072)
    fits, safe = proposals(report.prepared)
    assert fits.changes == {"flash_attn": True, "seq_len": 16384}
    assert safe.changes == {"flash_attn": True, "seq_len": 8192}


@pytest.mark.parametrize("gpu", ["2060-6", "3050-laptop-4", "t4", "4090", "a100-80"])
@pytest.mark.parametrize(
    ("model", "flags"),
    [
        ("Qwen/Qwen2.5-7B", {"seq_len": 8192, "batch_size": 16}),
        ("Qwen/Qwen2.5-32B", {"lora": False}),
        ("meta-llama/Llama-3.1-70B", {"quant": "int8", "lora_r": 512, "seq_len": 100}),
        (LLAMA, {"lora": False, "precision": "fp32", "optimizer": "sgd"}),
    ],
)
def test_where_nothing_is_proposed_nothing_fits(
    model: str, flags: dict[str, object], gpu: str
) -> None:
    """The other side of it: the most that all levers can save is not enough either."""
    most: dict[str, object] = {
        "lora": True,
        "quant": "nf4",
        "double_quant": True,
        "precision": "bf16",
        "grad_checkpoint": True,
        "flash_attn": True,
        "batch_size": 1,
        "optimizer": "sgd" if flags.get("optimizer") == "sgd" else "adam8bit",
        "lora_r": 8,
        "seq_len": min(128, int(str(flags.get("seq_len", 2048)))),
    }
    least = estimate(model, gpu=gpu, **most)
    proposal = propose(estimate(model, gpu=gpu, **flags).prepared)
    assert (proposal is not None) is bool(least["fits"])


def test_no_flag_settles_what_is_not_settled(tmp_path: Path) -> None:
    config = {"model_type": "unheard_of", **SHAPE}
    report = estimate(config, qlora=True, batch_size=64)
    assert report.unsettled
    (fits,) = proposals(report.prepared)
    assert (fits.goal, fits.safe) == ("fits", False)
    offer = smallest_card(report.prepared)
    assert offer is not None and not offer.safe


def test_a_safe_card_comes_before_a_smaller_one() -> None:
    report = estimate(LLAMA, gpu="4090", **GOLDEN)
    offer = smallest_card(report.prepared)
    assert offer is not None and offer.card.fields["vendor"] == "nvidia"
    there = estimate(LLAMA, gpu=offer.card.id, **GOLDEN)
    assert (there.safe, there.title) == (offer.safe, offer.title) == (True, "FITS")
    smaller = estimate(LLAMA, gpu="5090", **GOLDEN)  # where it fits, but is uncertain
    assert smaller["fits"] and not smaller.safe


def test_cards_of_the_vendor_and_of_usual_classes() -> None:
    amd = smallest_card(estimate(LLAMA, gpu="mi210", **{**GOLDEN, "batch_size": 16}).prepared)
    assert amd is not None and amd.card.fields["vendor"] == "amd"
    custom = smallest_card(estimate(LLAMA, vram_mib=8000, **GOLDEN).prepared)
    assert custom is not None and custom.card.fields["vendor"] == "nvidia"
    for flags in ({**GOLDEN, "batch_size": n} for n in (1, 2, 3, 5, 8, 12)):
        for gpu in ("2060-6", "4060-laptop", "a4000"):
            offer = smallest_card(estimate(LLAMA, gpu=gpu, **flags).prepared)
            assert offer is not None and offer.safe and not offer.card.fields.get("regional")
            own = find(gpu).fields["class"]
            assert offer.card.fields["class"] in {own, "consumer", "datacenter"}


@pytest.mark.parametrize(("seq_len", "gpu"), [(128, "b300"), (2048, "mi350x")])
def test_where_no_card_is_safe_the_smallest_is_named_with_its_verdict(
    seq_len: int, gpu: str
) -> None:
    flags = {"qlora": True, "flash_attn": True, "seq_len": seq_len}
    offer = smallest_card(estimate("meta-llama/Llama-3.1-405B", gpu="4090", **flags).prepared)
    assert offer is not None
    assert (offer.card.id, offer.title, offer.safe) == (gpu, "UNCERTAIN", False)


def find(gpu: str) -> Card:
    return estimate(LLAMA, gpu=gpu).prepared.card


def test_no_proposal_for_a_run_that_fits() -> None:
    prepared = estimate(LLAMA, qlora=True).prepared
    assert propose(prepared) is propose(prepared, "safe") is None and proposals(prepared) == []


def test_a_lever_that_changes_nothing_ends(tmp_path: Path) -> None:
    hints = (Path(__file__).parents[1] / "formulas/hints.yaml").read_text(encoding="utf-8")
    (tmp_path / "hints.yaml").write_text(
        hints[: hints.index("levers:")]
        + "levers:\n  - {when: seq_len > 1, change: {seq_len: seq_len}, repeat: true, says: no}\n",
        encoding="utf-8",
    )
    report = estimate(LLAMA, rules=str(tmp_path), lora=False)
    assert propose(report.prepared) is None
    assert smallest_card(report.prepared) is not None  # no class is usual but that of the card


def test_flags_as_they_are_typed() -> None:
    flags = estimate(LLAMA).prepared.rules.flags.flags
    assert spelled(flags["batch_size"], 4) == ("--batch-size", "4")
    assert spelled(flags["flash_attn"], True) == ("--flash-attn",)
    assert spelled(flags["flash_attn"], False) == ("--no-flash-attn",)
    assert spelled(flags["lora"], True) == ("--lora",)
    assert spelled(flags["lora"], False) == ("--no-lora",)
    assert spelled(flags["lora_targets"], ("q_proj", "v_proj")) == ("--lora-targets", "minimal")
    assert spelled(flags["lora_targets"], ("q_proj", "x")) == ("--lora-targets", "q_proj,x")
    assert opposite(opposite("--lora")) == "--lora"


@pytest.mark.parametrize(
    ("title", "inside"),
    [("Activations", "activations"), ("LoRA weights", "LoRA weights"), ("CUDA", "CUDA"), ("", "")],
)
def test_titles_inside_a_sentence(title: str, inside: str) -> None:
    assert lowered(title) == inside


class Texts(HTMLParser):
    """Tags and texts of a piece of HTML."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.open: list[str] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_the_notebook_table_is_escaped_and_complete() -> None:
    report = estimate(LLAMA, gpu="4090", **GOLDEN)
    evil = replace(report.prepared.model, name="<script>alert(1)</script> & co")
    report = replace(report, prepared=replace(report.prepared, model=evil))
    html = Texts()
    html.feed(report._repr_html_())
    assert html.open == [] and "script" not in html.tags and "style" not in html.tags
    assert html.texts[0] == "<script>alert(1)</script> & co on NVIDIA GeForce RTX 4090"
    for component in report.components:
        assert component.title in html.texts and str(component.grade) in html.texts
    heads = ("component", "size", "of total", "evidence")
    for text in (*heads, "30,607 MiB", "100.0%", "peak: backward", "DOES NOT FIT", *report.reasons):
        assert text in html.texts


def test_the_notebook_says_which_card_was_taken() -> None:
    html = Texts()
    html.feed(estimate(LLAMA, gpu="rtx 3060", **GOLDEN)._repr_html_())
    assert any(text.startswith("'rtx 3060' comes in several sizes") for text in html.texts)


@pytest.mark.parametrize("version", ["4.57.6", "5.24.0"])
def test_weights_are_called_packed_as_far_as_they_are(version: str) -> None:
    report = estimate("Qwen/Qwen3-30B-A3B", gpu="h200", qlora=True, transformers=version)
    packed = report["parameters"] - report["float_parameters"]
    share = packed / report["parameters"]
    assert share > 0.9 if version == "4.57.6" else share < 0.04
    text = " ".join(report.explain().split())
    assert f"{packed:,} of 30,532,122,624 parameters packed" in text
    assert "packed linears" not in text
