"""The explanation, the prices it gives, and the notebook display."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from fitcheck.engine.api import estimate
from fitcheck.engine.explain import explain, largest_component, lowered
from fitcheck.engine.hints import Hint, opposite, price_hints, propose, smallest_card, spelled
from fitcheck.engine.record import replace

LLAMA = "meta-llama/Llama-3.1-8B"
MIB = 1 << 20
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
    assert "It would fit with --batch-size 2 --grad-accum 2 (20,040 MiB):" in flat
    assert "As it is, it would fit on NVIDIA" in flat
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


def test_a_run_that_fits_has_no_proposal() -> None:
    text = estimate(LLAMA, qlora=True).explain()
    assert "\nFITS: it leaves" in text
    assert "would fit" not in text


def test_warnings_are_caveats_with_a_direction() -> None:
    text = " ".join(estimate(LLAMA, quant="int8").explain().split())
    assert "outlier buffers" in text and "(the estimate may be too low)." in text


def test_nothing_fits() -> None:
    text = estimate("meta-llama/Llama-3.1-405B", gpu="t4", lora=False).explain()
    assert "No change of flags that is known here makes it fit." in text
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


def test_the_smallest_card_holds_it_and_is_of_the_vendor() -> None:
    report = estimate(LLAMA, gpu="4090", **GOLDEN)
    card = smallest_card(report.prepared)
    assert card is not None and card.fields["vendor"] == "nvidia"
    assert estimate(LLAMA, gpu=card.id, **GOLDEN)["fits"]
    amd = smallest_card(estimate(LLAMA, gpu="mi210", **GOLDEN).prepared)
    assert amd is not None and amd.fields["vendor"] == "amd"
    custom = smallest_card(estimate(LLAMA, vram_mib=8000, **GOLDEN).prepared)
    assert custom is not None and custom.fields["vendor"] == "nvidia"


def test_no_proposal_for_a_run_that_fits() -> None:
    assert propose(estimate(LLAMA, qlora=True).prepared) is None


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
    for text in ("30,607 MiB", "100.0%", "peak: backward", "DOES NOT FIT", *report.reasons):
        assert text in html.texts
