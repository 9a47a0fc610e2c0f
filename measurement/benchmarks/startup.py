"""How much more a whole command costs than starting Python with click and json.

    python -m fitcheck.measurement.benchmarks.startup [--runs 15]

Builds a wheel of this checkout, installs it into a fresh environment, and runs every command in
turn with `python -c "import click, json"` of the same environment (A B A B ...). Compared is the
processor time of the whole process; the ratio is between medians. Bytecode is written, as it is
wherever nobody forbids it.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

CONFIG = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 128256,
    "tie_word_embeddings": False,
}
FLAGS = ["--qlora", "--lora-r", "64", "--batch-size", "4", "--seq-len", "2048"]
FITS, TOO_SMALL = ["--gpu", "h100"], ["--gpu", "4090"]  # for this run
CATALOGUE = "meta-llama/Llama-3.1-8B"


@dataclass(frozen=True)
class Row:
    """One command: its name, what it runs, and the ratio it may cost at most, if it has a bar."""

    name: str
    arguments: Sequence[str]
    bar: float | None


def rows(config: str, installed: bool) -> list[Row]:
    """The commands that are timed, for a wheel or for a checkout."""
    bar = 1.25 if installed else 1.8
    return [
        Row("config.json, --json", [config, *FLAGS, *TOO_SMALL, "--json"], bar),
        Row("catalogue, --json", [CATALOGUE, *FLAGS, *TOO_SMALL, "--json"], bar),
        Row("--help", ["--help"], bar),
        Row("config.json, table", [config, *FLAGS, *FITS], 2.2),
        Row(
            "config.json, table and search for what would fit",
            [config, *FLAGS, *TOO_SMALL],
            2.2 if installed else None,  # a checkout reads 123 card files for it
        ),
    ]


def seconds(command: Sequence[str], environment: dict[str, str]) -> float:
    """Processor time of one run, user and system. [s]"""
    if sys.platform == "win32":
        raise SystemExit(
            "Processor time of a child is not available here; run it on Linux or macOS."
        )
    import resource

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, env=environment, capture_output=True, check=False)
    if done.returncode not in (0, 1):  # 1: it does not fit
        raise SystemExit(f"{' '.join(command)} failed: {done.stderr.decode(errors='replace')}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def compare(binary: Path, row: Row, runs: int) -> tuple[float, float, float]:
    """(ms of the command, ms of the start it is compared with, ratio): medians of the runs."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    command = [str(binary / "fitcheck"), *row.arguments]
    start = [str(binary / "python"), "-c", "import click, json"]
    seconds(command, environment), seconds(start, environment)  # warm, not counted
    pairs = [(seconds(command, environment), seconds(start, environment)) for _ in range(runs)]
    mine, theirs = (statistics.median(side) * 1000 for side in zip(*pairs, strict=True))
    return mine, theirs, mine / theirs


def install_wheel(folder: Path) -> Path:
    """A fresh environment with a wheel of this checkout; returns its folder of programs."""
    root = Path(__file__).resolve().parents[2]
    build = [sys.executable, "-m", "build", "--wheel", "--outdir", str(folder), str(root)]
    subprocess.run(build, check=True, capture_output=True)
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
    binary = folder / "venv" / "bin"
    wheel = next(folder.glob("*.whl"))
    subprocess.run([str(binary / "python"), "-m", "pip", "install", "-q", str(wheel)], check=True)
    return binary


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; exit code 1 where a bar is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--runs", type=int, default=15, help="counted pairs of each command")
    options = parser.parse_args(arguments)
    missed = 0
    print("| command | installed as | ms | start ms | ratio | at most |")
    print("|:---|:---|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        config = folder / "config.json"
        config.write_text(json.dumps(CONFIG))
        places = {"wheel": install_wheel(folder), "checkout": Path(sys.executable).parent}
        for place, binary in places.items():
            for row in rows(str(config), place == "wheel"):
                mine, theirs, ratio = compare(binary, row, options.runs)
                missed += row.bar is not None and ratio > row.bar
                numbers = (f"{mine:.1f}", f"{theirs:.1f}", f"{ratio:.2f}", row.bar or "")
                cells = (row.name, place, *numbers)
                print("|", " | ".join(map(str, cells)), "|", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
