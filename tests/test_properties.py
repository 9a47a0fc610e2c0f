"""What has to hold for every model, run and card.

Known to be false under the fitted profiles of the T4: see `test_known_gaps.py`. Where a property
leaves them out, it takes a card without a profile.
"""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings, strategies as st

from fitcheck import Report, estimate
from fitcheck.engine.api import choose_card, prepare, rules_for
from fitcheck.engine.cards import all_cards
from fitcheck.engine.formula import HIGH, LOW
from fitcheck.engine.record import replace
from fitcheck.engine.report import Prepared, build_report
from fitcheck.engine.rules import Rules
from fitcheck.engine.run import Run

REPO = Path(__file__).resolve().parents[1]
MIB = 1 << 20

Config = dict[str, Any]
Flags = dict[str, Any]

ALL_CARDS = all_cards(rules_for().folders("gpus"), rules_for().units)
CARDS = [card.id for card in ALL_CARDS]
STABLE = [card.id for card in ALL_CARDS if card.status == "stable"]
VERIFIED = ("llama", "mistral", "qwen2", "qwen3", "gemma2", "olmo2")


@st.composite
def spread(draw: st.DrawFn, low: int, high: int) -> int:
    """An integer whose size in bits is drawn first, so that small values are as likely as large."""
    bits = draw(st.integers(low.bit_length(), high.bit_length()))
    return draw(st.integers(max(low, 1 << bits - 1), min(high, (1 << bits) - 1)))


@st.composite
def configs(draw: st.DrawFn, types: tuple[str | None, ...] = VERIFIED) -> Config:
    """A Llama-shaped config.json, from a few thousand parameters to hundreds of billions."""
    heads = draw(spread(1, 128))
    head_dim = draw(st.sampled_from([8, 48, 64, 80, 128, 256]))
    return {
        "model_type": draw(st.sampled_from(types)),
        "hidden_size": heads * draw(spread(1, max(1, 16384 // heads))),  # as LlamaConfig wants it
        "num_hidden_layers": draw(spread(1, 128)),
        "num_attention_heads": heads,
        "num_key_value_heads": draw(
            st.sampled_from([k for k in range(1, heads + 1) if heads % k == 0])
        ),
        "head_dim": head_dim,
        "intermediate_size": draw(spread(8, 65536)),
        "vocab_size": draw(spread(8, 300_000)),
        "tie_word_embeddings": draw(st.booleans()),
    }


@st.composite
def runs(draw: st.DrawFn, lora: bool | None = None) -> Flags:
    """Flags that go together."""
    flags: Flags = {
        "precision": draw(st.sampled_from(["fp32", "fp16", "bf16"])),
        "batch_size": draw(spread(1, 64)),
        "grad_accum": draw(st.integers(1, 64)),
        "seq_len": draw(spread(1, 32768)),
        "grad_checkpoint": draw(st.booleans()),
        "flash_attn": draw(st.booleans()),
        "optimizer": draw(st.sampled_from(["adamw", "adam8bit", "sgd", "sgd-momentum"])),
        "lora": draw(st.booleans()) if lora is None else lora,
    }
    if flags["optimizer"] == "adamw":
        flags["optimizer_dtype"] = draw(st.sampled_from(["fp32", "bf16"]))
    if flags["lora"]:
        flags["quant"] = draw(st.sampled_from(["none", "nf4", "int8"]))
        flags["lora_r"] = draw(spread(1, 1024))
        flags["lora_targets"] = draw(st.sampled_from(["minimal", "standard", "full", "k,down"]))
        if flags["quant"] == "nf4":
            flags["double_quant"] = draw(st.booleans())
    return flags


@st.composite
def reserve_runs(draw: st.DrawFn) -> Flags:
    """Runs inside the scope of the T4's validated reserves."""
    flags: Flags = {"quant": "nf4", "precision": "fp16", "lora_r": 16, "lora_targets": "standard"}
    flags |= {"seq_len": 1024, "grad_checkpoint": True, "flash_attn": draw(st.booleans())}
    return {**flags, "batch_size": draw(st.integers(1, 16))}


cards = st.sampled_from(CARDS)
cards_without_profile = st.sampled_from([card for card in CARDS if card != "t4"])
some = settings(max_examples=100)
many = settings(max_examples=200)


def tensors(report: Report) -> int:
    return int(report["total"] - report["overhead"])


# --- phases and components -----------------------------------------------------------------------


@many
@given(configs(), runs(), cards)
def test_the_total_is_what_is_live_in_the_peak_phase(
    config: Config, flags: Flags, card: str
) -> None:
    report = estimate(config, gpu=card, **flags)
    live = {
        phase: sum(c.bytes for c in report.components if phase in c.phases or "always" in c.phases)
        for phase in report.prepared.rules.phases
    }
    assert dict(report.phases) == live
    assert report["total"] == max(live.values()) == live["backward"]
    assert report["total"] == sum(c.bytes for c in report.components)


@many
@given(configs(), runs(), cards)
def test_no_component_is_negative(config: Config, flags: Flags, card: str) -> None:
    report = estimate(config, gpu=card, **flags)
    for component in report.components:
        assert isinstance(component.bytes, int)
        assert component.bytes >= 0, component.id
    for name in ("weights", "gradients", "activations", "overhead"):
        assert report[name] > 0, name
    assert (report["lora"] > 0) == flags["lora"]


# --- monotone in everything that grows -----------------------------------------------------------

MORE_OF_A_RUN = ("batch_size", "seq_len", "lora_r")
MORE_OF_A_MODEL = ("num_hidden_layers", "vocab_size")


def larger(config: Config, flags: Flags, what: str, by: int) -> tuple[Config, Flags]:
    if what in MORE_OF_A_RUN:
        return config, {**flags, what: flags[what] + by}
    return {**config, what: config[what] + by}, flags


@pytest.mark.parametrize("what", MORE_OF_A_RUN + MORE_OF_A_MODEL)
@some
@given(config=configs(), flags=runs(lora=True), card=cards, by=st.integers(1, 999))
def test_tensors_grow(what: str, config: Config, flags: Flags, card: str, by: int) -> None:
    before = estimate(config, gpu=card, **flags)
    more_config, more_flags = larger(config, flags, what, by)
    after = estimate(more_config, gpu=card, **more_flags)
    assert tensors(after) > tensors(before)
    for old, new in zip(before.components, after.components, strict=True):
        assert new.bytes >= old.bytes or new.id == "overhead"


@pytest.mark.parametrize("what", MORE_OF_A_RUN + MORE_OF_A_MODEL)
@some
@given(config=configs(), flags=runs(lora=True), card=cards_without_profile, by=st.integers(1, 999))
def test_the_total_grows_on_the_default_overhead(
    what: str, config: Config, flags: Flags, card: str, by: int
) -> None:
    more_config, more_flags = larger(config, flags, what, by)
    before, after = (
        estimate(config, gpu=card, **flags),
        estimate(more_config, gpu=card, **more_flags),
    )
    assert after["total"] > before["total"]
    assert after["overhead"] >= before["overhead"]
    assert after["max_batch_size"] <= before["max_batch_size"] or what == "batch_size"


# --- what is free, and what never costs ----------------------------------------------------------


@many
@given(configs(), runs(), cards_without_profile)
def test_flash_attention_never_costs_memory(config: Config, flags: Flags, card: str) -> None:
    """
    A tiled kernel is given keys and values for every query head, which a layer may keep; a score
    matrix is larger than these copies from as many tokens on as a head is wide.
    """
    flash = estimate(config, gpu=card, **{**flags, "flash_attn": True})
    assume(flags["seq_len"] >= flash.prepared.model.fields["head_dim"])
    eager = estimate(config, gpu=card, **{**flags, "flash_attn": False})
    assert flash["total"] <= eager["total"]
    assert flash["max_batch_size"] >= eager["max_batch_size"]


@some
@given(configs(), runs(), cards, st.integers(1, 1 << 20))
def test_accumulation_is_free(config: Config, flags: Flags, card: str, steps: int) -> None:
    once = estimate(config, gpu=card, **{**flags, "grad_accum": 1})
    often = estimate(config, gpu=card, **{**flags, "grad_accum": steps})
    assert once.components == often.components
    assert once.status == often.status
    assert often["effective_batch_size"] == flags["batch_size"] * steps


@some
@given(configs(), runs(), cards, st.integers(1, 256), st.integers(1, 32), st.integers(1, 32))
def test_equal_tokens_cost_the_same(
    config: Config, flags: Flags, card: str, unit: int, first: int, second: int
) -> None:
    """With a tiled kernel and checkpointing only the number of tokens counts."""
    flags = {**flags, "grad_checkpoint": True, "flash_attn": True}
    many_short = {"batch_size": first, "seq_len": unit * second}
    few_long = {"batch_size": second, "seq_len": unit * first}
    one, other = (estimate(config, gpu=card, **{**flags, **at}) for at in (many_short, few_long))
    assert one.components == other.components


@some
@given(configs(), runs(lora=True), cards, st.integers(1, 999))
def test_double_quantization_saves(config: Config, flags: Flags, card: str, rank: int) -> None:
    flags = {**flags, "quant": "nf4", "lora_r": rank}
    plain = estimate(config, gpu=card, **{**flags, "double_quant": False})
    double = estimate(config, gpu=card, **{**flags, "double_quant": True})
    assert double["total"] < plain["total"]


# --- the verdict ---------------------------------------------------------------------------------


@many
@given(configs(), runs(), cards)
def test_the_largest_batch_fits_and_one_more_does_not(
    config: Config, flags: Flags, card: str
) -> None:
    report = estimate(config, gpu=card, **flags)
    largest = report["max_batch_size"]

    def at(batch: int) -> Report:
        return estimate(config, gpu=card, **{**flags, "batch_size": batch})

    if largest:
        assert at(largest)["fits"]
    if largest < 1 << 20:
        assert not at(largest + 1)["fits"]
    assert report["fits"] == (flags["batch_size"] <= largest)
    recommended = report["recommended_batch_size"]
    assert recommended <= report["safe_max_batch_size"] <= largest
    assert (recommended > 0) == (report["safe_max_batch_size"] > 0)
    if recommended:
        assert recommended & (recommended - 1) == 0
        assert recommended == 1 or 4 * recommended <= 3 * report["safe_max_batch_size"]
        assert 2 * recommended > 3 * report["safe_max_batch_size"] // 4
        assert at(recommended)["safe_total"] <= report["usable"]


@many
@given(
    config=configs(),
    flags=st.one_of(runs(), reserve_runs()),
    card=st.one_of(cards, st.just("t4")),
    room=st.one_of(st.none(), st.fractions(Fraction(9, 10), Fraction(3, 2))),
)
def test_the_status_follows_from_the_figures(
    config: Config, flags: Flags, card: str, room: Fraction | None
) -> None:
    prepared = prepare(rules_for(), config, gpu=card, vram_mib=None, source="auto", flags=flags)
    if room is not None:  # a card of about the size of the run, where verdicts change
        usable = int(prepared.run_with(()).value("total") * room)
        prepared = replace(prepared, card=replace(prepared.card, usable=usable))
    report = build_report(prepared)
    total, usable = report["total"], report["usable"]
    assert report["headroom"] == usable - total
    assert report["safe_headroom"] == usable - report["safe_total"]
    assert report["total_low"] <= total <= report["total_high"]
    if total > usable:
        assert report.status == "does_not_fit"
    elif report.unsettled or report["total_high"] > usable:
        assert report.status == "uncertain"
    elif report["recommendation_basis"] == "validated_reserve":
        assert report["safe_total"] > total
        assert report.status == ("safe" if report["safe_total"] <= usable else "uncertain")
    else:
        assert report["safe_total"] == total
        assert report.status == ("safe" if 5 * (usable - total) > usable else "uncertain")
    assert report.safe == (report.status == "safe") == (report.exit_code == 0)
    assert report.reasons


# --- the JSON ------------------------------------------------------------------------------------


@some
@given(configs(), runs(), cards)
def test_the_json_says_what_the_bytes_say(config: Config, flags: Flags, card: str) -> None:
    report = estimate(config, gpu=card, **flags)
    data = report.to_dict()
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    parts = {c.id: c.bytes for c in report.components}
    for name, exact in {**parts, "total": report["total"]}.items():
        assert data["memory_bytes"][name] == exact
        assert data["memory_mib"][name] == round(exact / MIB, 2)
    assert sum(data["memory_bytes"][name] for name in parts) == data["memory_bytes"]["total"]
    assert max(data["phases_bytes"].values()) == data["memory_bytes"]["total"]
    verdict = data["verdict"]
    for key, exact in {
        "gpu_capacity_mib": report["usable"],
        "headroom_mib": report["headroom"],
        "safe_total_mib": report["safe_total"],
        "safe_headroom_mib": report["safe_headroom"],
    }.items():
        assert verdict[key] == round(exact / MIB, 2), key
    share = Fraction(report["headroom"], report["usable"]) * 100
    assert abs(Fraction(verdict["headroom_pct"]) - share) <= Fraction(6, 1000)
    assert verdict["fits"] == report["fits"]
    assert verdict["safe_fits"] == (verdict["status"] == "safe")
    assert verdict["estimated_max_batch_size"] == verdict["max_batch_size"]
    assert data["trainable_params"] == report["trainable_parameters"]
    assert data["model"]["num_params"] == report["parameters"]


# --- what keeps a run from being called safe -----------------------------------------------------

runs_that_may_be_safe = st.one_of(reserve_runs(), runs(lora=True))


def capped(plain: Report, other: Report) -> None:
    """The same figures, and `safe` turned into `uncertain`."""
    assert other["total"] == plain["total"]
    assert other.status == ("uncertain" if plain.status == "safe" else plain.status)
    assert other.unsettled
    assert not other.to_dict()["verdict"]["safe_fits"]


@some
@given(configs(), runs_that_may_be_safe)
def test_a_draft_card_is_never_safe(config: Config, flags: Flags) -> None:
    prepared = prepare(rules_for(), config, gpu="b200", vram_mib=None, source="auto", flags=flags)
    draft = replace(prepared.card, status="draft")
    capped(build_report(prepared), build_report(replace(prepared, card=draft)))


@pytest.fixture(scope="module")
def with_overlay(tmp_path_factory: pytest.TempPathFactory) -> Rules:
    """The bundled rules with one file overlaid, unchanged."""
    folder = tmp_path_factory.mktemp("overlay")
    (folder / "gpus").mkdir()
    text = (REPO / "gpus" / "t4.yaml").read_text(encoding="utf-8")
    (folder / "gpus" / "t4.yaml").write_text(text, encoding="utf-8")
    return rules_for([str(folder)])


@some
@given(config=configs(), flags=runs_that_may_be_safe, card=st.sampled_from(["t4", "b200"]))
def test_an_overlay_is_never_safe(
    with_overlay: Rules, config: Config, flags: Flags, card: str
) -> None:
    prepared = prepare(rules_for(), config, gpu=card, vram_mib=None, source="auto", flags=flags)
    overlaid = replace(prepared, rules=with_overlay, card=choose_card(with_overlay, card, None))
    report = build_report(overlaid)
    capped(build_report(prepared), report)
    assert report.overlays


@some
@given(configs(types=("unheard-of", None)), runs_that_may_be_safe, st.sampled_from(STABLE))
def test_an_unverified_model_type_is_never_safe(config: Config, flags: Flags, card: str) -> None:
    report = estimate(config, gpu=card, **flags)
    capped(estimate({**config, "model_type": "llama"}, gpu=card, **flags), report)
    assert report.warnings


@given(configs(), runs_that_may_be_safe)
def test_some_run_is_safe(config: Config, flags: Flags) -> None:
    """The properties above are not empty: a small enough model is safe on a large card."""
    small = {**config, "num_hidden_layers": 1, "hidden_size": 64, "vocab_size": 8}
    small |= {"num_attention_heads": 1, "num_key_value_heads": 1, "intermediate_size": 64}
    flags = {**flags, "batch_size": 1, "seq_len": 1024}
    assert estimate(small, gpu="b200", **flags).status == "safe"


@pytest.mark.parametrize("flags", [{}, {"qlora": True, "batch_size": 3}, {"lora": False}])
def test_what_is_kept_from_another_run_is_what_a_fresh_one_computes(flags: dict[str, Any]) -> None:
    rules = rules_for()
    start = prepare(
        rules, "meta-llama/Llama-3.1-8B", gpu="t4", vram_mib=None, source="catalogue", flags=flags
    )
    run = start.run_with(())
    names = [f.id for f in rules.formulas.values() if f.per is None]
    for name in names:
        run.value(name)
    for band in (LOW, HIGH):
        fresh = Run(rules, run.facts, band)
        assert {n: run.at_band(band).value(n) for n in names} == {n: fresh.value(n) for n in names}
    chained = run
    for card in ALL_CARDS:
        other = Prepared(rules, start.settings, card, start.model).run_with(())
        expected = {n: other.value(n) for n in names}
        moved, chained = run.with_card(card.facts()), chained.with_card(card.facts())
        assert {n: moved.value(n) for n in names} == expected
        assert {n: chained.value(n) for n in names} == expected
