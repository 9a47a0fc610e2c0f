"""How much faster arrays are than one exact estimate after the other.

    python -m fitcheck.measurement.benchmarks.vector [--points 200000]

Both sides compute the total and every component of the same mixed configurations (models, flags and
cards) in one run, then every ceiling that is searched for (the largest batch, sequence and rank);
the scalar side is the evaluator that a wheel compiles.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from typing import Any

from fitcheck.engine import api
from fitcheck.engine.rules import Rules
from fitcheck.engine.run import Facts, Run
from fitcheck.engine.vectorized import VectorRun

MODEL, GPUS = "meta-llama/Llama-3.1-8B", ("4090", "t4")
FLAGS: dict[str, Any] = {"precision": "fp16", "grad_checkpoint": True}
CHOICES: dict[str, list[Any]] = {"quant": ["none", "nf4", "int8"], "flash_attn": [True, False]}
RANGES = {"batch_size": (1, 65), "seq_len": (128, 8193), "lora_r": (1, 257)}


def mixed(points: int) -> dict[str, Any]:
    """Flags of that many configurations, the same in every run."""
    import numpy as np

    random = np.random.default_rng(0)
    arrays: dict[str, Any] = {
        name: random.integers(low, high, points) for name, (low, high) in RANGES.items()
    }
    for name, choices in CHOICES.items():
        arrays[name] = np.array(choices)[random.integers(0, len(choices), points)]
    return arrays


def compare(rules: Rules, facts: Facts, arrays: dict[str, Any], names: Sequence[str]) -> str:
    """Configurations per second of both sides, their ratio and the largest difference."""
    points = len(arrays["batch_size"])
    began = time.perf_counter()
    run = VectorRun.over(rules, facts, arrays)
    found = {name: run.array(name) for name in names}
    vector = points / (time.perf_counter() - began)
    few, worst = min(2_000, points), 0.0
    began = time.perf_counter()
    for index in range(few):
        values = {name: array[index].item() for name, array in arrays.items()}
        settings = facts.settings.changed(**values)
        exact = Run(rules, Facts(settings, facts.records, facts.lists))
        for name in names:
            value = exact.value(name)
            worst = max(worst, abs(found[name][index] - value) / max(1, value))
    scalar = few / (time.perf_counter() - began)
    return (
        f"{vector:,.0f} configurations/s as arrays, {scalar:,.0f} one by one, "
        f"ratio {vector / scalar:.1f}, largest relative difference {worst:.1e}"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Print configurations per second of both and their ratio."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--points", type=int, default=200_000)
    options = parser.parse_args(arguments)
    rules, arrays = api.rules_for(), mixed(options.points)
    totals = [*(c.id for c in rules.components), "total"]
    ceilings = [f.id for f in rules.formulas.values() if f.search]
    for gpu in GPUS:
        prepared = api.prepare(rules, MODEL, gpu=gpu, vram_mib=None, source="auto", flags=FLAGS)
        facts = prepared.run_with(()).facts
        print(f"{gpu}, totals: {compare(rules, facts, arrays, totals)}")
        print(f"{gpu}, ceilings: {compare(rules, facts, arrays, ceilings)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
