"""Types without a published config among the collected ones: exact counts of small configs.

`golden/more_families.yaml` has what transformers builds; its head says what the numbers are.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from fitcheck import Report, estimate

GOLDEN = Path(__file__).parent / "golden" / "more_families.yaml"
ROWS: list[dict[str, Any]] = yaml.safe_load(GOLDEN.read_text(encoding="utf-8"))["configs"]
VERSIONS = {"newer": "5.24.0", "older": "4.57.6"}
CASES = [
    pytest.param(
        row["config"], version, row[key], id=f"{index}-{row['config']['model_type']}-{key}"
    )
    for index, row in enumerate(ROWS, 1)
    for key, version in VERSIONS.items()
    if key in row
]


def facts(report: Report) -> list[Any]:
    """The numbers of one row, in its order, from the canonical model."""
    linears: Counter[tuple[str, int, int, int]] = Counter()
    embedding = head = 0
    for group in report.prepared.model.lists["all_groups"]:
        for m in group["modules"]:
            if m["kind"] == "head":
                head += group["count"] * m["d_out"] * (m["d_in"] + m["bias"])
            elif m["kind"] in ("linear", "kept", "subclass"):
                name = "N" if m["name"].isdigit() else m["name"]  # a place in a list
                key = (name, m["d_in"], m["d_out"], int(m["bias"]))
                linears[key] += group["count"] * m["instances"]
        for p in group["parameters"]:
            embedding += group["count"] * p["count"] * (p["name"] == "embed_tokens")
            head += group["count"] * p["count"] * (p["part"] == "head")
    lines = "\n".join(f"{a} {i} {o} {b} {n}" for (a, i, o, b), n in sorted(linears.items()))
    return [
        report["parameters"],
        embedding,
        head,
        sum(linears.values()),
        sum(n * i * o for (_, i, o, _), n in linears.items()),
        sum(n * o * b for (_, _, o, b), n in linears.items()),
        hashlib.sha256(lines.encode()).hexdigest()[:8],
    ]


@pytest.mark.parametrize(("config", "version", "expected"), CASES)
def test_counts(config: dict[str, Any], version: str, expected: list[Any]) -> None:
    report = estimate(config, lora_targets="all-linear", transformers=version)
    assert report.prepared.model.verified
    assert facts(report) == expected
    assert report["total"] > 0


def test_every_type_has_two_configs() -> None:
    types = Counter(row["config"]["model_type"] for row in ROWS)
    assert len(types) >= 50
    assert set(types.values()) == {2}
