"""Serving: every number of sections 6 and 7 of the reference, the command, and what has to hold."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from fractions import Fraction
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from hypothesis import given, settings, strategies as st

from fitcheck import InputProblem, Report, estimate
from fitcheck.cli import start
from fitcheck.cli.errors import guarded
from fitcheck.cli.main import run as run_click
from fitcheck.engine.api import prepare, rules_for
from fitcheck.engine.closed_form import closed_form
from fitcheck.engine.fit import cards_that_hold

REPO = Path(__file__).resolve().parents[1]
GOLDEN = yaml.safe_load((REPO / "tests/golden/serving.yaml").read_text(encoding="utf-8"))
ROWS = [
    json.loads(line)
    for line in (REPO / "measurement/evidence/t4_serving.jsonl").read_text().splitlines()
]
LLAMA, GEMMA, MAMBA = (
    "meta-llama/Llama-3.1-8B",
    "google/gemma-3-27b-it",
    "state-spaces/mamba-2.8b-hf",
)
MODELS = [LLAMA, GEMMA, MAMBA, "ai21labs/Jamba-v0.1", "deepseek-ai/DeepSeek-V2-Lite"]
MIB = 1 << 20


def serve(model: str | Mapping[str, Any] = LLAMA, gpu: str = "4090", **flags: Any) -> Report:
    return estimate(model, mode="serving", gpu=gpu, source="catalogue", **flags)


def in_bytes(mib: float) -> int:
    return round(Fraction(str(mib)) * MIB)


def flags_of(case: dict[str, Any]) -> dict[str, Any]:
    return {**GOLDEN["base"]["flags"], **case.get("flags", {})}


CASES = [pytest.param(case, id=case["name"]) for case in GOLDEN["cases"]]


@pytest.mark.parametrize("case", CASES)
def test_golden(case: dict[str, Any]) -> None:
    report = serve(**flags_of(case))
    expected = {name: in_bytes(mib) for name, mib in case["mib"].items()}
    assert {name: report[name] for name in expected} == expected
    data = report.to_dict()
    for name, key in (("serving_weights", "weights"), ("kv_cache", "kv_cache")):
        if name in case["mib"]:
            assert data["memory_mib"][key] == round(case["mib"][name], 2)
            assert data["memory_bytes"][key] == expected[name]
    assert data["verdict"].items() >= case.get("json", {}).items()


@pytest.mark.parametrize(
    ("case", "card", "most"),
    [
        pytest.param(case, card, most, id=f"{case['name']}-{card}")
        for case in GOLDEN["cases"]
        for card, most in case.get("most", {}).items()
    ],
)
def test_most_requests(case: dict[str, Any], card: str, most: int) -> None:
    report = serve(gpu=card, **flags_of(case))
    assert report["max_concurrent"] == most
    if most:
        assert serve(gpu=card, **{**flags_of(case), "concurrent": most})["serving_fits"]
    assert not serve(gpu=card, **{**flags_of(case), "concurrent": most + 1})["serving_fits"]


def test_the_width_of_a_head_is_read() -> None:
    report = serve(GOLDEN["wide_heads"]["config"], precision="fp16", seq_len=2048)
    assert report["kv_cache"] == in_bytes(GOLDEN["wide_heads"]["mib"]["kv_cache"])


def test_longest_requests() -> None:
    report = serve(concurrent=3)
    longest = report["max_context"]
    assert serve(concurrent=3, seq_len=longest)["serving_fits"]
    assert not serve(concurrent=3, seq_len=longest + 1)["serving_fits"]
    assert serve(gpu="t4")["max_context"] == 0


# against the measured rows


def measured(row: dict[str, Any]) -> Report:
    run, config = row["run"], {**row["model"]["config"], "_name_or_path": row["model"]["hub_id"]}
    flags = {k: run[k] for k in ("precision", "quant", "double_quant", "seq_len", "concurrent")}
    return estimate(
        config, mode="serving", gpu="t4", parameters=row["model"]["parameters"], **flags
    )


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row["source"]["row_id"]))
def test_measured_rows(row: dict[str, Any]) -> None:
    report, seen = measured(row), row["measured_mib"]
    expected = GOLDEN["measured"][row["source"]["row_id"]]
    assert report["kv_cache"] == seen["kv_cache"] * MIB
    assert round(report["serving_weights"] / MIB, 2) == expected["weights"]
    assert abs(report["serving_weights"] / MIB / seen["after_load_allocated"] - 1) < 0.001
    tensors = (report["serving_weights"] + report["kv_cache"]) / MIB / seen["peak_allocated"] - 1
    process = report["serving_total"] / MIB / seen["process"] - 1
    assert (round(tensors * 100, 1), round(process * 100, 1)) == (
        expected["tensors"],
        expected["process"],
    )


def test_every_measured_row_stands_in_the_warning() -> None:
    (warning,) = serve(concurrent=5).warnings
    for row in ROWS:
        report, peak = measured(row), row["measured_mib"]["peak_allocated"]
        tensors = (report["serving_weights"] + report["kv_cache"]) / MIB
        assert f"{(1 - tensors / peak) * 100:.1f} %" in warning
        assert f"{row['run']['concurrent']}" in warning


@pytest.mark.parametrize(("requests", "warned"), [(1, False), (4, False), (5, True), (16, True)])
def test_the_warning_begins_above_four_requests(requests: int, warned: bool) -> None:
    report = serve(concurrent=requests)
    assert bool(report.to_dict()["warnings"]) == warned
    told = [c for c in report.caveats if c.formula == "serving_total"]
    assert [(c.level, c.direction) for c in told] == [("warn" if warned else "note", "under")]
    assert ("7.7 %" in report.explain()) == warned
    assert "3.3 %" in report.explain()


# the cache


def test_windows_and_full_layers_are_told_apart() -> None:
    report = serve(GEMMA, seq_len=8192)
    derived = " ".join(report.derive("kv_cache").split())
    assert "52 sliding" in derived and "10 full" in derived
    window, elements = 1023, 2 * 16 * 128  # the newest token of a window is not kept
    assert report["kv_cache"] == 2 * elements * (52 * window + 10 * 8192)
    assert report["kv_cache_per_token"] == 2 * elements * 10
    assert serve(GEMMA, seq_len=512)["kv_cache_per_token"] == 2 * elements * 62


def test_states_do_not_grow() -> None:
    short, long = serve(MAMBA, seq_len=16), serve(MAMBA, seq_len=65536)
    assert short["kv_cache"] == long["kv_cache"] > 0
    assert long["kv_cache_per_token"] == 0
    assert "full windows, states" in " ".join(c.says for c in long.caveats)
    assert long["max_context"] == 16_777_216 and long.run.searches["max_context"].capped


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("tokens", [100, 1022, 1023, 5000])
def test_one_more_token_adds_what_is_said(model: str, tokens: int) -> None:
    before, after = serve(model, seq_len=tokens), serve(model, seq_len=tokens + 1)
    added = after["kv_cache_per_request"] - before["kv_cache_per_request"]
    assert added == before["kv_cache_per_token"]


@settings(max_examples=40)
@given(
    model=st.sampled_from(MODELS),
    tokens=st.integers(1, 100_000),
    more=st.integers(0, 100_000),
    requests=st.integers(1, 64),
    further=st.integers(0, 64),
    quant=st.sampled_from(["none", "nf4", "int8"]),
    precision=st.sampled_from(["fp16", "bf16", "fp32"]),
)
def test_what_always_holds(
    model: str, tokens: int, more: int, requests: int, further: int, quant: str, precision: str
) -> None:
    fixed = {"quant": quant, "precision": precision, "gpu": "h200"}
    one = serve(model, seq_len=tokens, concurrent=requests, **fixed)
    parts = sum(one[name] for name in ("serving_weights", "kv_cache", "serving_overhead"))
    assert one["serving_total"] == parts == one.phases["serving"]
    assert one["kv_cache"] == requests * one["kv_cache_per_request"]
    longer = serve(model, seq_len=tokens + more, concurrent=requests, **fixed)
    wider = serve(model, seq_len=tokens, concurrent=requests + further, **fixed)
    assert one["serving_total"] <= min(longer["serving_total"], wider["serving_total"])
    assert one["serving_weights"] == longer["serving_weights"] == wider["serving_weights"]
    assert one["max_concurrent"] >= longer["max_concurrent"]
    assert one["max_context"] >= wider["max_context"]
    assert (one["max_concurrent"] >= requests) == one["serving_fits"]


@pytest.mark.parametrize("model", [LLAMA, "deepseek-ai/DeepSeek-V2-Lite"])
def test_only_the_tokens_count_for_full_attention(model: str) -> None:
    totals = {serve(model, seq_len=8192 // n, concurrent=n)["serving_total"] for n in (1, 2, 4, 8)}
    assert len(totals) == 1


@pytest.mark.parametrize("name", ["max_concurrent", "max_context"])
def test_searches_have_a_closed_form(name: str) -> None:
    report = serve()
    form = closed_form(report.run, report.prepared.rules.formula(name))
    assert form is not None and form.value == report[name]


def test_arrays_agree() -> None:
    vectorized = pytest.importorskip("fitcheck.engine.vectorized")
    rules = rules_for(mode="serving")
    prepared = prepare(
        rules, GEMMA, gpu="h100", vram_mib=None, source="catalogue", flags={"quant": "nf4"}
    )
    lengths = [1, 1000, 1024, 30_000]
    for name in ("serving_total", "kv_cache_per_token", "max_concurrent"):
        found = vectorized.evaluate(rules, prepared, {"seq_len": lengths}, name)
        exact = [serve(GEMMA, "h100", quant="nf4", seq_len=n)[name] for n in lengths]
        assert found.tolist() == pytest.approx(exact, rel=1e-12)


# verdicts


def test_verdicts() -> None:
    assert (serve().status, serve().exit_code, serve().safe) == ("fits", 0, True)
    assert (serve(gpu="t4").status, serve(gpu="t4").exit_code) == ("does_not_fit", 1)
    exact = serve(concurrent=25)
    assert (exact.status, exact["serving_headroom"] >= 0) == ("fits", True)


def overlay(folder: Path, place: str, *changes: tuple[str, str]) -> str:
    """A folder with one changed rule file, under its place or flat."""
    stem = place.rpartition("/")[2]
    (path,) = [p for p in (REPO / "formulas", REPO / "profiles") for p in p.rglob(f"{place}.yaml")]
    text = path.read_text(encoding="utf-8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    target = folder / (path.relative_to(REPO) if "/" in place else f"{stem}.yaml")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")
    return str(folder)


@pytest.mark.parametrize("place", ["kv_cache", "serving/kv_cache"])
def test_a_changed_file_changes_the_answer_and_is_never_called_fitting(
    place: str, tmp_path: Path
) -> None:
    changed = ("expr: n * kv_cache_per_request", "expr: 2 * n * kv_cache_per_request")
    folder = overlay(tmp_path, place, changed, ("expect: 1_073_741_824", "expect: 2_147_483_648"))
    report = serve(rules=folder)
    assert report["kv_cache"] == 2 * serve()["kv_cache"]
    assert (report.status, report.exit_code) == ("uncertain", 1)
    # training does not read the file, and says all the same that the rules are changed
    training = estimate(LLAMA, source="catalogue", rules=folder, qlora=True)
    assert training["total"] == estimate(LLAMA, source="catalogue", qlora=True)["total"]
    assert not training.safe


def test_an_upper_end_above_the_card_is_uncertain(tmp_path: Path) -> None:
    band = ("share: {value: 0.05,", "share: {value: 0.05, low: 0.01, high: 0.9,")
    folder = overlay(tmp_path, "engines/serving/hf-transformers", band)
    report = serve(rules=folder)
    assert report["serving_total_low"] < report["serving_total"] < report["serving_total_high"]
    assert report.status == "uncertain"
    assert any("upper end of the band" in reason for reason in report.reasons)
    assert ("spread" in dict(report.facts())) and ("spread" not in dict(serve().facts()))


def test_a_draft_is_uncertain(tmp_path: Path) -> None:
    folder = overlay(tmp_path, "serving/mode", ("status: stable", "status: draft"))
    report = serve(rules=folder)
    assert report.status == "uncertain"
    assert any("mode.yaml is a draft" in text for text in report.unsettled)


# --fit


def test_cards_that_hold_it() -> None:
    report = serve(quant="nf4", seq_len=8192, concurrent=8)
    cards = cards_that_hold(report.prepared)
    assert [c.usable for c in cards] == sorted(c.usable for c in cards)
    assert all(c.card.status == "stable" for c in cards)
    held = {c.card.id: c for c in cards}
    assert "t4" not in held or serve("t4", quant="nf4", seq_len=8192, concurrent=8)["serving_fits"]
    for name in ("4090", "h100", "mi300x"):
        alone = serve(gpu=name, quant="nf4", seq_len=8192, concurrent=8)
        assert held[name].most == {n: alone[n] for n in ("max_concurrent", "max_context")}
        assert held[name].title == alone.title
    assert not cards_that_hold(estimate(LLAMA, source="catalogue").prepared)


# the command


class Outcome(NamedTuple):
    status: int
    out: str
    err: str


def call(*words: str, action: Any = run_click) -> Outcome:
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        status = guarded(lambda: action([*words]))
    return Outcome(status, out.getvalue(), err.getvalue())


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.delenv("FITCHECK_RULES", raising=False)


def test_the_json_contract() -> None:
    outcome = call("infer", LLAMA, "--seq-len", "8192", "--num-concurrent", "8", "--json")
    data = json.loads(outcome.out)
    assert outcome.status == 1
    assert {*data} >= {
        "fitcheck_version", "model", "gpu", "serving", "memory_mib", "kv_cache_mib_per_request",
        "kv_cache_mib_per_token", "verdict", "warnings", "stack", "evidence", "notes",
    }  # fmt: skip
    assert {*data["memory_mib"]} >= {"weights", "kv_cache", "overhead", "total"}
    assert {*data["verdict"]} >= {
        "fits", "gpu_capacity_mib", "headroom_mib", "headroom_pct", "max_concurrent", "status",
    }  # fmt: skip
    specified = {
        "quantization": "none", "double_quant": False, "precision": "fp16", "seq_len": 8192,
        "num_concurrent": 8,
    }  # fmt: skip
    assert {k: data["serving"][k] for k in specified} == specified
    assert data["serving"]["engine"] == "hf-transformers"
    assert "training" not in data and "trainable_params" not in data
    assert data["kv_cache_mib_per_request"] == 1024.0
    assert data["kv_cache_mib_per_token"] == 0.125
    assert len(data["warnings"]) == 1
    assert {*data["evidence"]} >= {"serving_weights", "kv_cache", "serving_overhead", "gpu"}
    assert data["proposals"][0]["command"].startswith("fitcheck infer meta-llama/Llama-3.1-8B ")


def test_six_decimals_of_a_token() -> None:
    data = json.loads(call("infer", "Qwen/Qwen2.5-0.5B", "--json").out)
    assert data["kv_cache_mib_per_token"] == round(2 * 24 * 2 * 64 * 2 / MIB, 6) == 0.011719


@pytest.mark.parametrize(
    ("words", "status"),
    [([], 0), (["--gpu", "t4"], 1), (["--gpu", "t4", "--quant", "nf4"], 0), (["--fit"], 0)],
    ids=str,
)
def test_exit_status(words: list[str], status: int) -> None:
    assert call("infer", LLAMA, *words).status == call("infer", LLAMA, *words, "--json").status
    assert call("infer", LLAMA, *words).status == status


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--double-quant"], "--double-quant quantizes the NF4 block scales and --quant none has"),
        (["--quant", "int4"], "--quant int4 is not modelled; it can be none, nf4, int8, fp8,"),
        (["--concurrent", "0"], "--concurrent 0 is out of range; it goes from 1 to 1,048,576."),
        (["--lora-r", "8"], "No such option"),
        (["--gpu", "no-such-card"], "no-such-card"),
        (["--format", "latex"], "--format is the format of --derive: give both."),
    ],
    ids=str,
)  # fmt: skip
def test_refusals(words: list[str], says: str) -> None:
    outcome = call("infer", LLAMA, *words)
    assert (outcome.status, outcome.out) == (2, "")
    assert says in outcome.err and "fitcheck infer" in outcome.err


def test_flags_of_training_are_unknown_to_the_api() -> None:
    with pytest.raises(InputProblem, match="There is no flag `lora_r`"):
        serve(lora_r=8)
    assert serve(num_concurrent=3)["kv_cache"] == serve(concurrent=3)["kv_cache"]
    with pytest.raises(InputProblem, match=r"There is no mode `servin`.*Did you mean"):
        estimate(LLAMA, mode="servin", source="catalogue")


def test_the_table_and_its_additions() -> None:
    text = call("infer", LLAMA, "--fit", "--explain", "--verbose").out
    for part in (
        "Model weights", "Cache of all requests", "16,851 MiB needed", "FITS", "25 of this length",
        "max concurrent", "max context", "most requests at once that fit: 25", "packed_bytes",
    ):  # fmt: skip
        assert part in text, part
    cards = json.loads(call("infer", LLAMA, "--fit", "--json").out)["cards"]
    assert {"key", "name", "usable_mib", "status", "max_concurrent", "max_context"} == {*cards[0]}


def test_a_notebook_shows_the_same() -> None:
    html = serve()._repr_html_()
    assert "Cache of all requests" in html and "16,851" in html


def test_help_is_that_of_serving() -> None:
    text = call("infer", "--help").out
    assert text.startswith("Usage: fitcheck infer MODEL [OPTIONS]")
    assert "--concurrent, --num-concurrent INT" in text and "fitcheck infer " in text
    assert "--lora-r" not in text and "--optimizer" not in text
    assert "fitcheck infer --help" in call("--help").out


def test_a_model_of_that_name_is_estimated_by_the_long_form(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "infer"
    folder.mkdir()
    config = GOLDEN["wide_heads"]["config"]
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert "training" in json.loads(call("estimate", "infer", "--json", "--gpu", "h200").out)
    assert "serving" in json.loads(call("infer", "infer", "--json", "--gpu", "h200").out)


@pytest.mark.parametrize(
    "words",
    [
        ["infer", LLAMA, "--json"],
        ["infer", LLAMA, "--quant", "nf4", "--num-concurrent", "6", "--gpu", "t4"],
        ["infer", "no/such-model-anywhere"],
    ],
    ids=" ".join,
)
def test_both_ways_answer_the_same(words: list[str]) -> None:
    assert start.plain(words) is not None
    assert call(*words, action=start.run) == call(*words)


@pytest.mark.parametrize(
    "words",
    [["infer"], ["infer", "--help"], ["infer", LLAMA, "--fit"], ["infer", LLAMA, "--lora-r", "8"]],
    ids=" ".join,
)
def test_everything_else_is_left_to_click(words: list[str]) -> None:
    assert start.plain(words) is None
