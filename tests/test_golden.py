"""Numbers that never move without a reason in the CHANGELOG: `tests/golden/`, through the API.

MiB figures are compared as whole bytes: the figure times 2**20, rounded to the nearest byte.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml

from fitcheck import Refusal, Report, estimate
from fitcheck.engine.errors import InputProblem, RuleFileError
from fitcheck.engine.hints import price_hints

REPO = Path(__file__).resolve().parents[1]
GOLDEN = REPO / "tests" / "golden"
MIB = 1 << 20

Data = dict[str, Any]
Estimate = Callable[..., Report]


def load(name: str) -> Data:
    loaded: Data = yaml.safe_load((GOLDEN / f"{name}.yaml").read_text(encoding="utf-8"))
    return loaded


TRAINING, RATES, PARSER = load("training"), load("rates"), load("parser")


def exact(number: float) -> Fraction:
    """A decimal of a golden file as the fraction it is written as."""
    return Fraction(str(number))


def in_bytes(mib: float) -> int:
    """A printed MiB figure as the nearest whole byte."""
    return round(exact(mib) * MIB)


def value(report: Report, name: str) -> Any:
    """A quantity by its id; of a per-group one, that of the only layer group."""
    if name in report:
        return report[name]
    (group,) = report.prepared.model.lists["layer_groups"]
    return report.run.value_at(name, group)


def merged(base: Data, case: Data) -> Data:
    """A case over the base of its block; flags are merged one by one."""
    return {**base, **case, "flags": {**base.get("flags", {}), **case.get("flags", {})}}


def run(scenario: Data, counted_estimate: Estimate) -> Report:
    model, flags = scenario["model"], scenario["flags"]
    config = TRAINING["configs"].get(model)
    if config is not None:
        return counted_estimate(config, scenario["parameters"], gpu=scenario["gpu"], **flags)
    return estimate(model, gpu=scenario["gpu"], source="catalogue", **flags)


# --- sections 4 and 5: whole runs ----------------------------------------------------------------

CASES = [
    pytest.param(merged(block["base"], case), id=f"{block['name']}: {case['name']}")
    for block in TRAINING["blocks"]
    for case in block["cases"]
]


@pytest.mark.parametrize("case", CASES)
def test_training(case: Data, counted_estimate: Estimate) -> None:
    report = run(case, counted_estimate)
    expected = {name: in_bytes(mib) for name, mib in case.get("mib", {}).items()}
    expected |= case.get("bytes", {})
    expected |= case.get("values", {})
    assert {name: value(report, name) for name in expected} == expected
    assert report.status == case.get("status", report.status)
    if "scores_mib" in case:
        scores = value(report, "A_layer") - value(report, "layer_token_bytes")
        assert scores == in_bytes(case["scores_mib"])
    if "static_bytes_per_parameter" in case:
        static = sum(report[name] for name in ("weights", "optimizer", "gradients"))
        assert static == case["static_bytes_per_parameter"] * report["parameters"]


@pytest.mark.parametrize("case", CASES)
def test_training_json(case: Data, counted_estimate: Estimate) -> None:
    report = run(case, counted_estimate)
    data = report.to_dict()
    for name, mib in case.get("mib", {}).items():
        if name in data["memory_mib"]:
            assert data["memory_mib"][name] == round(mib, 2), name
            assert data["memory_bytes"][name] == in_bytes(mib), name
    verdict = {
        "headroom": "headroom_mib",
        "safe_total": "safe_total_mib",
        "usable": "gpu_capacity_mib",
        "A_layer_peak": None,
    }
    for name, key in verdict.items():
        if name in case.get("mib", {}) and key:
            assert data["verdict"][key] == round(case["mib"][name], 2), name
    assert data["verdict"].items() >= case.get("verdict", {}).items()
    assert data["verdict"]["status"] == report.status
    if "A_layer_peak" in case.get("mib", {}):
        assert data["activations_per_layer_mib"] == round(case["mib"]["A_layer_peak"], 2)


HINTED = [
    merged(block["base"], case)
    for block in TRAINING["blocks"]
    for case in block["cases"]
    if "hints" in case
]


@pytest.mark.parametrize("case", HINTED, ids=lambda case: str(case["name"]))
def test_hints(case: Data, counted_estimate: Estimate) -> None:
    priced = {hint.label: hint.saved for hint in price_hints(run(case, counted_estimate).prepared)}
    expected = {label: in_bytes(mib) for label, mib in case["hints"].items()}
    assert {label: priced[label] for label in expected} == expected


@pytest.mark.parametrize("step", TRAINING["prices"]["steps"], ids=str)
def test_price_of_one_flag(step: Data, counted_estimate: Estimate) -> None:
    base = TRAINING["prices"]["base"]
    before = run(merged(base, {"flags": step["from"]}), counted_estimate)
    after = run(merged(base, {"flags": {**step["from"], **step["to"]}}), counted_estimate)
    # Both totals are rounded to a byte, so their difference may be one byte off.
    assert abs(after["total"] - before["total"] - in_bytes(step["mib"])) <= 1


@pytest.mark.parametrize("point", TRAINING["rank_ceilings"]["points"], ids=str)
def test_largest_rank(point: Data, counted_estimate: Estimate) -> None:
    def fits(rank: int) -> bool:
        flags = {**point["flags"], "lora_r": rank}
        base = TRAINING["rank_ceilings"]["base"]
        return bool(run(merged(base, {"flags": flags}), counted_estimate)["fits"])

    assert fits(point["rank"])
    assert not fits(point["rank"] + 1)


# --- section 2: rates ----------------------------------------------------------------------------


def probe(case: Data) -> Report:
    """The probe model of the rates under the changes of one case."""
    config = {**RATES["probe"]["config"], **case.get("config", {})}
    flags = {**RATES["probe"]["flags"], **case.get("flags", {})}
    if flags.get("lora") is False:
        del flags["lora_r"]
    return estimate(config, gpu=case.get("gpu", "4090"), **flags)


def amount(report: Report, name: str) -> Any:
    """A quantity, or one of the differences that the rates are about."""
    if name == "packed weights":
        return report["weights"] - 4 * report["float_parameters"]
    if name == "layer scores":
        return value(report, "A_layer") - value(report, "layer_token_bytes")
    if name == "kept scores":
        return value(report, "A_retained") - value(report, "layer_token_bytes")
    return value(report, name)


class Letters:
    """The probe run in the letters of the reference."""

    def __init__(self, report: Report) -> None:
        (group,), settings = report.prepared.model.lists["layer_groups"], report.prepared.settings
        self.h, self.n, self.k = (
            group[name] for name in ("hidden_size", "num_attention_heads", "num_kv_heads")
        )
        self.d, self.f, self.L = group["head_dim"], group["intermediate_size"], group["count"]
        self.V = report.prepared.model.fields["vocab_size"]
        self.b, self.s = settings.values["batch_size"], settings.values["seq_len"]
        self.r, self.T = settings.values["lora_r"], self.b * self.s
        self.report = report

    def __call__(self, name: str) -> Any:
        return value(self.report, name)


DIVISORS: dict[str, Callable[[Letters], Any]] = {
    "one": lambda x: 1,
    "V h + L (2 h n d + 2 h k d + 3 h f + 2 h) + h + V h": lambda x: (
        x.L * (2 * x.h * x.n * x.d + 2 * x.h * x.k * x.d + 3 * x.h * x.f + 2 * x.h)
        + x.h
        + 2 * x.V * x.h
    ),
    "2 V h + 2 L h + h": lambda x: 2 * x.V * x.h + 2 * x.L * x.h + x.h,
    "L r sum(d_in + d_out) over q, k, v, o": lambda x: (
        x.L * x.r * (4 * x.h + 2 * x.n * x.d + 2 * x.k * x.d)
    ),
    "P": lambda x: x("parameters"),
    "P - S": lambda x: x("parameters") - x("float_parameters"),
    "trained": lambda x: x("trainable_parameters"),
    "T (12 h + 3 n d + k d + 3 f)": lambda x: (
        x.T * (12 * x.h + 3 * x.n * x.d + x.k * x.d + 3 * x.f)
    ),
    "2 b n s s": lambda x: 2 * x.b * x.n * x.s**2,
    "4 b n s s": lambda x: 4 * x.b * x.n * x.s**2,
    "4 T V": lambda x: 4 * x.T * x.V,
    "L T h": lambda x: x.L * x.T * x.h,
    "store + max(logits, layer)": lambda x: x("A_store") + max(x("A_logits"), x("A_layer")),
    "L layer' + logits": lambda x: x.L * x("A_retained") + x("A_logits"),
}


@pytest.mark.parametrize(
    "case", RATES["rates"], ids=lambda c: f"{c['quantity']} {c.get('flags', '')}"
)
def test_rate(case: Data) -> None:
    report = probe(case)
    expected = DIVISORS[case["over"]](Letters(report)) * exact(case["is"])
    # Components are whole bytes, intermediate quantities are exact.
    assert abs(amount(report, case["quantity"]) - expected) <= Fraction(1, 2)


@pytest.mark.parametrize(
    "case", RATES["overheads"], ids=lambda c: f"{c['gpu']} {c['flags']} {c.get('config', '')}"
)
def test_overhead(case: Data) -> None:
    report = probe(case)
    logits, layer = report["A_logits"], report["A_layer_peak"]
    expected = exact(case["base"]) * MIB
    if "share" in case:
        expected += exact(case["share"]) * (report["weights"] + report["activations"])
    else:
        winner = "tie" if logits == layer else "logits" if logits > layer else "layer"
        assert winner == case["winner"]
        expected += exact(case["factor"]) * min(logits, layer)
    assert abs(report["overhead"] - expected) <= Fraction(1, 2)


def overhead_share(folder: Path, share: str) -> str:
    """An overlay folder whose default overhead has this share."""
    text = (REPO / "profiles" / "overhead" / "default.yaml").read_text(encoding="utf-8")
    assert "share: {value: 0.05," in text
    changed = folder / "profiles" / "overhead" / "default.yaml"
    changed.parent.mkdir(parents=True)
    changed.write_text(
        text.replace("share: {value: 0.05,", f"share: {{value: {share},"), encoding="utf-8"
    )
    return str(folder)


def test_a_changed_overhead_changes_the_total(tmp_path: Path) -> None:
    model, rules = RATES["probe"]["config"], overhead_share(tmp_path, "0.06")
    before, after = estimate(model, gpu="4090"), estimate(model, gpu="4090", rules=rules)
    more = (before["weights"] + before["activations"]) / 100
    assert abs(after["total"] - before["total"] - more) <= 1


@pytest.mark.parametrize("share", [".nan", ".inf", "-.inf", "1e999", '"0.05"'])
def test_an_overhead_that_is_no_number_is_refused(tmp_path: Path, share: str) -> None:
    with pytest.raises(RuleFileError, match=r"profiles[/\\]overhead[/\\]default\.yaml"):
        estimate(RATES["probe"]["config"], rules=overhead_share(tmp_path, share))


def test_a_negative_overhead_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RuleFileError):
        estimate(RATES["probe"]["config"], rules=overhead_share(tmp_path, "-0.05"))


def test_accumulation_costs_nothing() -> None:
    assert probe({"flags": {"grad_accum": 4096}})["total"] == probe({})["total"]


@pytest.mark.parametrize("change", RATES["reserve"]["inside"], ids=str)
@pytest.mark.parametrize("kernel", RATES["reserve"]["mib"])
def test_the_reserve_of_the_t4(kernel: str, change: Data) -> None:
    reserve = RATES["reserve"]
    flags = {**reserve["flags"], "flash_attn": kernel == "flash", **change}
    report = estimate(reserve["model"], gpu=reserve["gpu"], **flags)
    assert report["safe_total"] - report["total"] == in_bytes(reserve["mib"][kernel])
    assert report["recommendation_basis"] == "validated_reserve"
    assert report.status == "safe"


@pytest.mark.parametrize("change", RATES["reserve"]["outside"], ids=str)
def test_outside_the_scope_of_the_reserve(change: Data) -> None:
    reserve = RATES["reserve"]
    flags = {**reserve["flags"], **change.get("flags", {})}
    report = estimate(reserve["model"], gpu=change.get("gpu", reserve["gpu"]), **flags)
    assert report["safe_total"] == report["total"]
    assert report["recommendation_basis"] == "point_estimate_margin"
    assert report.status == ("safe" if 5 * report["headroom"] > report["usable"] else "uncertain")


# --- section 9: parser, limits, cards ------------------------------------------------------------


def by_the_formula(case: Data) -> Data:
    """The case as one of a type that no file names, tied as the type of the case is."""
    tied = case["config"].get("tie_word_embeddings", True)
    config = {**case["config"], "model_type": "unheard-of", "tie_word_embeddings": tied}
    return {**case, "config": config}


@pytest.mark.parametrize("case", PARSER["counts"], ids=lambda c: str(c["name"]))
def test_parameter_count(case: Data, counted_estimate: Estimate) -> None:
    if "exact" in case:
        exact = counted_estimate(case["config"], None, gpu="b200")
        assert exact["parameters"] == case["exact"]
        assert exact.prepared.model.verified
        assert (exact.warnings, exact.remarks) == ((), ())
        case = by_the_formula(case)
    report = counted_estimate(case["config"], case.get("counted"), gpu="b200")
    assert report["parameters"] == case["parameters"]
    assert report.to_dict()["model"]["num_params"] == case["parameters"]
    if "float_parameters" in case:
        assert report["float_parameters"] == case["float_parameters"]
    for name, expected in case.get("fields", {}).items():
        assert report.prepared.model.fields[name] == expected
    if "caveats" in case:
        assert len(report.warnings) + len(report.remarks) == case["caveats"]


@pytest.mark.parametrize("case", PARSER["miscounts"], ids=lambda c: str(c["name"]))
def test_an_exact_count_that_disagrees(case: Data, counted_estimate: Estimate) -> None:
    if "exact" in case:
        with pytest.raises(Refusal, match=rf"{case['exact']} .*under-count.*OOM"):
            counted_estimate(case["config"], case["counted"])
        case = by_the_formula(case)
    with pytest.raises(Refusal) as caught:
        counted_estimate(case["config"], case["counted"])
    for part in case["says"]:
        assert part in str(caught.value)


def llama() -> Data:
    found: Data = next(c["config"] for c in PARSER["counts"] if c["name"] == "Llama-3.1-8B")
    return dict(found)


@pytest.mark.parametrize("key", PARSER["mixture_keys"])
@pytest.mark.parametrize("experts", [8, 1, 0])
def test_mixtures_of_an_unknown_type_are_refused(key: str, experts: int) -> None:
    with pytest.raises(Refusal, match=r"mixture-of-experts.*under-count by 80-90%.*OOM"):
        estimate({**llama(), "model_type": "unheard-of", key: experts})


@pytest.mark.parametrize("key", PARSER["mixture_keys"])
def test_a_dense_type_has_no_experts(key: str) -> None:
    for experts in (8, 1):
        with pytest.raises(
            InputProblem, match=rf"llama has experts .*{key}.*under-count by 80-90%"
        ):
            estimate({**llama(), key: experts})
    assert estimate({**llama(), key: 0})["parameters"] == 8_030_261_248


@pytest.mark.parametrize("key", PARSER["mixture_keys"])
def test_a_null_expert_count_is_none(key: str) -> None:
    assert estimate({**llama(), key: None})["parameters"] == 8_030_261_248


def test_nested_dimensions_of_an_unknown_type_are_refused() -> None:
    with pytest.raises(Refusal, match=r"nested under text_config.*OOM"):
        estimate({"model_type": "unheard-of", "text_config": llama()})


def test_nested_dimensions_of_a_known_type_are_read_with_the_tower() -> None:
    vision = {"model_type": "clip_vision_model"}
    found = estimate({"model_type": "llava", "text_config": llama(), "vision_config": vision})
    assert found["parameters"] - found["tower_parameters"] == 8_030_261_248
    assert found["tower_parameters"] > 0


@pytest.mark.parametrize("limit", PARSER["limits"], ids=lambda c: str(c["flag"]))
def test_ceiling_of_a_flag(limit: Data) -> None:
    flag, largest = limit["flag"], limit["largest"]
    assert estimate(llama(), **{flag: largest})["total"] > 0
    with pytest.raises(InputProblem, match=f"{largest + 1} is out of range"):
        estimate(llama(), **{flag: largest + 1})


@pytest.mark.parametrize("flag", PARSER["values"])
def test_values_of_a_choice(flag: str) -> None:
    for taken in PARSER["values"][flag]["takes"]:
        assert estimate(llama(), **{flag: taken})["total"] > 0
    for refused in PARSER["values"][flag]["refuses"]:
        with pytest.raises(InputProblem, match="is not modelled"):
            estimate(llama(), **{flag: refused})


@pytest.mark.parametrize("quant", PARSER["values"]["quant"]["takes"])
def test_double_quantization_needs_nf4(quant: str) -> None:
    if quant == PARSER["double_quant_needs"]:
        assert estimate(llama(), quant=quant, double_quant=True)["total"] > 0
    else:
        with pytest.raises(InputProblem, match="--double-quant"):
            estimate(llama(), quant=quant, double_quant=True)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf"), 1.5, True, "4"])
def test_only_whole_numbers(number: Any) -> None:
    for flag in ("batch_size", "seq_len", "lora_r", "grad_accum"):
        with pytest.raises(InputProblem, match="has to be a whole number"):
            estimate(llama(), **{flag: number})
    with pytest.raises(InputProblem, match="whole number of MiB"):
        estimate(llama(), vram_mib=number)


def test_the_search_for_a_batch_stops() -> None:
    tiny = {**llama(), "hidden_size": 8, "num_attention_heads": 1, "num_key_value_heads": 1}
    tiny |= {"num_hidden_layers": 1, "intermediate_size": 8, "vocab_size": 8}
    report = estimate(tiny, gpu="b200", seq_len=1, lora_r=1, flash_attn=True)
    assert report["max_batch_size"] == PARSER["most_batches"]
    assert report.run.searches["max_batch_size"].capped


@pytest.mark.parametrize("card", PARSER["cards"])
def test_card(card: str) -> None:
    total, usable = PARSER["cards"][card]
    report = estimate(llama(), gpu=card)
    assert report.prepared.card.id == PARSER["same_cards"].get(card, card)
    assert (report.prepared.card.total, report["usable"]) == (total * MIB, usable * MIB)
    gpu = report.to_dict()["gpu"]
    assert (gpu["vram_mib"], gpu["usable_mib"]) == (total, usable)
    kinds = {proof.kind for proof in report.prepared.card.evidence["total"]}
    assert ("measurement" in kinds) == (card in PARSER["measured_cards"])


def test_there_are_23_golden_cards() -> None:
    assert len(PARSER["cards"]) == 23


@pytest.mark.parametrize("vram", PARSER["custom_cards"])
def test_custom_card(vram: int) -> None:
    report = estimate(llama(), vram_mib=vram)
    assert report["usable"] == PARSER["custom_cards"][vram] * MIB == vram * 95 // 100 * MIB


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"tie_word_embeddings": "false"}, "'tie_word_embeddings' is \"false\""),
        ({"tie_word_embeddings": 0}, "'tie_word_embeddings' is 0"),
        ({"num_key_value_heads": 33}, "'num_key_value_heads' is 33, more than the 32"),
        ({"num_attention_heads": 48, "head_dim": None}, "hidden_size / num_attention_heads"),
    ],
)
def test_what_a_config_may_not_say(change: Mapping[str, Any], says: str) -> None:
    with pytest.raises(InputProblem) as caught:
        estimate({**llama(), **change})
    assert says in str(caught.value)


@pytest.mark.parametrize("kind", ["gemma", "gemma2", "gemma3_text", "llama", "unheard-of", None])
def test_missing_tie_flag(kind: str | None) -> None:
    config = {**llama(), "model_type": kind, "tie_word_embeddings": None}
    tied = str(kind).startswith("gemma")
    assert estimate(config).prepared.model.fields["tie_word_embeddings"] is tied


def test_full_fine_tune_of_a_quantized_base_is_refused() -> None:
    for quant in ("nf4", "int8"):
        with pytest.raises(InputProblem, match="not modelled"):
            estimate(llama(), quant=quant, lora=False)
