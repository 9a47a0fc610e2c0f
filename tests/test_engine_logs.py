"""What engines printed: exact where it is arithmetic, within the band where ours is a fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from fitcheck import Report, estimate
from fitcheck.engine.formula import HIGH, LOW

TEXT = (Path(__file__).resolve().parents[1] / "tests/golden/engine_logs.yaml").read_text("utf-8")
DATA = yaml.safe_load(TEXT)
# the same as text, because 3.70 says more than 3.7
PRINTED = {case["id"]: case for case in yaml.load(TEXT, yaml.BaseLoader)["cases"]}
RUNS = {case["id"]: case["run"] for case in DATA["cases"]}
ABOUT = {"id", "source", "run", "misses", "too_low", "slots", "over"}
UNITS = {"mib": 1 << 20, "gib": 1 << 30, "bytes": 1, "tokens": 1}


@lru_cache(maxsize=1)
def last(name: str) -> Report:
    flags = dict(RUNS[name])
    model, gpu = flags.pop("model"), flags.pop("gpu", "h100")
    return estimate(
        DATA["configs"].get(model, model), mode="serving", source="catalogue", gpu=gpu, **flags
    )


def figure(text: str, unit: str = "bytes") -> tuple[Fraction, Fraction]:
    """A printed figure in its unit, and half of its last digit."""
    size, digits = UNITS[unit], len(text.partition(".")[2])
    return Fraction(text) * size, Fraction(size, 2 * 10**digits)


def layers(report: Report, quantity: str) -> Fraction:
    """A quantity of one layer, summed over all layers."""
    run = report.run
    groups = run.items("layer_groups")
    return Fraction(sum(g["count"] * run.value_at(quantity, g) for g in groups))


def beside(run: Any) -> Fraction:
    parts = ("prefill_activations", "serving_overhead", "cuda_graphs", "serving_adapters")
    return Fraction(sum(run.value(part) for part in parts))


# figures that are exact arithmetic: what the report says in the unit of the figure

EXACT: dict[str, Callable[[Report, dict[str, Any]], Fraction]] = {
    "cache": lambda report, case: Fraction(report["kv_cache"]),
    "halves": lambda report, case: Fraction(report["kv_cache"], 2),
    "windows": lambda report, case: layers(report, "layer_windows") * report.run.flag("concurrent"),
    "token": lambda report, case: Fraction(report["kv_cache_per_token"]),
    "page": lambda report, case: Fraction(report["page_tokens"]),
    "states": lambda report, case: (
        layers(report, "layer_state")
        / Fraction(report.run.profile_value("engines", "state_slots"))
        * int(case["slots"])
    ),
}
# figures of one term that is a fit or a rule of thumb
FITTED: dict[str, Callable[[Any], Fraction]] = {
    "compute": lambda run: Fraction(run.value("prefill_activations")),
    "context": lambda run: Fraction(run.value("serving_overhead")),
    "graphs": lambda run: Fraction(run.value("cuda_graphs")),
    "beside": beside,
}
# what the engine has, where an estimate above it would be the dangerous one
HELD = {"budget": "serving_budget", "pool": "cache_pool"}


def checks() -> Iterator[Any]:
    for name, case in PRINTED.items():
        for check in case.keys() - ABOUT:
            low = check in case.get("too_low", ())
            marks = [pytest.mark.xfail(strict=True, reason=case["misses"])] if low else []
            yield pytest.param(name, check, id=f"{name}-{check}", marks=marks)


CHECKS = sorted(checks(), key=lambda found: str(found.id))


@pytest.mark.parametrize(("name", "check"), CHECKS)
def test_what_was_printed(name: str, check: str) -> None:
    case, report = PRINTED[name], last(name)
    missed = "misses" in case
    kind, _, unit = check.rpartition("_")
    if check == "printed_token_bytes":
        of_the_log_and_ours(report, *case[check])
    elif check == "concurrency":
        requests_of_a_pool(report, *case[check], missed=missed)
    elif kind in HELD:
        value, half = figure(case[check], unit)
        assert report[HELD[kind]] <= value + half
    elif kind == "weights":
        value, half = figure(case[check], unit)
        assert report["serving_weights"] >= value - half
    elif kind in FITTED:
        for text in case[check] if isinstance(case[check], list) else [case[check]]:
            in_the_band(report, kind, *figure(text, unit), missed=missed)
    else:
        value, half = figure(case[check], unit)
        found = EXACT[kind](report, case)
        if missed and abs(found - value) > half:
            assert value < found <= value * Fraction(case.get("over", "1.1"))
        else:
            assert abs(found - value) <= half, float(found / UNITS[unit])


def in_the_band(report: Report, kind: str, value: Fraction, half: Fraction, missed: bool) -> None:
    of, run = FITTED[kind], report.run
    assert value - half <= of(run.at_band(HIGH))
    if kind not in ("context", "graphs"):  # the whole band of these is said to be possible
        assert value - half <= of(run)
    if kind != "graphs" and not missed:  # graphs that were smaller than any are no danger
        assert of(run.at_band(LOW)) <= value + half


def of_the_log_and_ours(report: Report, pool: str, tokens: str) -> None:
    """Bytes of the pool for each token of the log's figure, however large the pool is."""
    value, half = figure(pool, "gib")
    page, held = int(report["page_tokens"]), int(report["pool_tokens"])
    # both figures are whole pages, so what is left of one may be nearly a page
    assert Fraction(report["cache_pool"], held + page) <= (value + half) / int(tokens)
    assert (value - half) / (int(tokens) + page) <= Fraction(report["cache_pool"], held)


def requests_of_a_pool(report: Report, pool: str, requests: str, missed: bool) -> None:
    value, half = figure(pool, "gib")
    printed, last_digit = figure(requests)
    one_block = Fraction(1, 80)  # of a request, which the engine rounds down to
    ours = [(value + sign * half) / report["kv_cache_per_request"] for sign in (-1, 1)]
    assert ours[0] <= printed + last_digit + one_block
    assert printed - last_digit <= ours[1]


def test_every_log_is_named_once() -> None:
    names = [case["id"] for case in DATA["cases"]]
    assert len(names) == len({*names}) and not {*names} & DATA["left_out"].keys()
    for case in DATA["cases"]:
        assert case["source"] and case.keys() - ABOUT, case["id"]
        assert case.get("misses") or not case.get("too_low")
        assert {*case.get("too_low", ())} <= case.keys()
