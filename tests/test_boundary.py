"""The twelve runs at the predicted ceiling and one batch above it: totals, verdicts, outcomes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from fitcheck.engine.report import Report, build_report
from fitcheck.measurement.accuracy import prepare_row
from fitcheck.measurement.rows import Row, read_rows

GOLDEN: dict[str, Any] = yaml.safe_load(
    (Path(__file__).parent / "golden" / "boundary.yaml").read_text(encoding="utf-8")
)
MIB = 1 << 20
ROWS = {row.id: row for row in read_rows("verdict")}
each_row = pytest.mark.parametrize("row", ROWS.values(), ids=list(ROWS))


@pytest.fixture(scope="module")
def reports() -> dict[str, Report]:
    return {row_id: build_report(prepare_row(row)) for row_id, row in ROWS.items()}


def test_there_are_twelve_rows() -> None:
    assert len(ROWS) == 12


@each_row
def test_prediction(row: Row, reports: dict[str, Report]) -> None:
    report, registered = reports[row.id], row.data["peer_verdict"]
    total = row.data["peer_prediction_mib"]["total"]
    assert report["total"] / MIB == pytest.approx(total, rel=0, abs=1e-6)
    assert report["usable"] == GOLDEN["usable_mib"] * MIB
    assert report["fits"] is registered["fits"]
    assert report["max_batch_size"] == registered["max_batch_size"]
    assert report["recommendation_basis"] == "validated_reserve"


def test_statuses(reports: dict[str, Report]) -> None:
    assert Counter(report.status for report in reports.values()) == GOLDEN["statuses"]
    for row_id, report in reports.items():
        fits = ROWS[row_id].data["verdict"]["boundary"] == "largest_predicted_to_fit"
        assert (report.status != "does_not_fit") == fits == report["fits"]
        assert (report.exit_code == 0) == report.safe == (report.status == "safe")


def test_the_one_safe_row(reports: dict[str, Report]) -> None:
    safe = GOLDEN["safe"]
    (found,) = [row_id for row_id, report in reports.items() if report.status == "safe"]
    row, report = ROWS[found], reports[found]
    assert (found, row.model, row.run["batch_size"]) == (
        safe["row"],
        safe["model"],
        safe["batch_size"],
    )
    assert round(report["safe_total"] / MIB, 3) == safe["safe_total_mib"]
    verdict = report.to_dict()["verdict"]
    assert (verdict["safe_fits"], verdict["status"]) == (True, "safe")
    assert verdict["safe_total_mib"] == round(safe["safe_total_mib"], 2)


def test_every_point_estimate_was_right(reports: dict[str, Report]) -> None:
    budget = GOLDEN["usable_mib"]
    right = 0
    for row_id, report in reports.items():
        verdict = ROWS[row_id].data["verdict"]
        assert verdict["budget_mib"] == budget
        happened = verdict["outcome"] == "completed" and ROWS[row_id].measured["process"] <= budget
        assert happened == verdict["within_budget"]
        right += report["fits"] == happened
    assert right == GOLDEN["correct"]


def test_no_status_called_a_run_safe_that_was_not(reports: dict[str, Report]) -> None:
    for row_id, report in reports.items():
        if report.status == "safe":
            measured = ROWS[row_id].measured["process"]
            assert measured <= report["safe_total"] / MIB <= GOLDEN["usable_mib"]


def test_the_safe_row_was_measured_twice() -> None:
    twin, row = GOLDEN["twin"], ROWS[GOLDEN["twin"]["row"]]
    assert row.measured["process"] == twin["measured"]
    (earlier,) = [r for r in read_rows("holdout") if r.model == row.model and r.run["flash_attn"]]
    assert earlier.measured["process"] == twin["earlier"]
