"""How long a sweep of a million points takes, against ten plain starts of `fitcheck MODEL`.

    python -m fitcheck.measurement.benchmarks.advise [--runs 5]

Both are whole commands, processor time included from start to exit, in turn (A B A B ...); the
ratio is between medians and has to be at most 1.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from collections.abc import Sequence

from .startup import seconds

MODEL = "meta-llama/Llama-3.1-8B"
FIXED = [MODEL, "--source", "catalogue", "--qlora", "--flash-attn", "--gpu", "4090", "--json"]
STARTS = 10
SIDE = 100  # values of each axis
AXES = ["--batch-sizes", f"1..{SIDE}", "--seq-lens", f"64..{64 * SIDE}:64"]
RANKS = ["--lora-ranks", f"1..{SIDE}"]
BAR = 1.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Print both medians and their ratio; the exit status is 1 where that is past the bar."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args(arguments)
    program = [sys.executable, "-m", "fitcheck"]
    environment = dict(os.environ)
    plain: list[float] = []
    sweep: list[float] = []
    for turn in range(options.runs + 1):
        starts = sum(seconds([*program, *FIXED], environment) for _ in range(STARTS))
        points = seconds([*program, "advise", *FIXED, *AXES, *RANKS], environment)
        if turn:  # the first turn fills caches
            plain.append(starts)
            sweep.append(points)
    ratio = statistics.median(sweep) / statistics.median(plain)
    print(
        f"{SIDE**3:,} points in {statistics.median(sweep):.2f} s, {STARTS} plain starts in "
        f"{statistics.median(plain):.2f} s, ratio {ratio:.2f} (at most {BAR:g})"
    )
    return 0 if ratio <= BAR else 1


if __name__ == "__main__":
    sys.exit(main())
