"""Draw the pictures of the documentation from the program itself: `python docs/make_images.py`.

Writes below docs/img/: estimate.svg, the table of one estimate as a terminal shows it, and what
--plot draws of training, serving and a sweep.
"""

from __future__ import annotations

import io
import shlex
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from fitcheck.cli.answer import Request
from fitcheck.cli.plot_edge_file import draw as draw_edge
from fitcheck.cli.plot_file import draw as draw_pictures
from fitcheck.cli.table import estimate_view
from fitcheck.engine.advisor import advise
from fitcheck.engine.api import estimate, rules_for
from fitcheck.engine.edge import edge

WIDTH = 100
MODEL = "meta-llama/Llama-3.1-8B"
FLAGS = {"qlora": True, "lora_r": 64, "batch_size": 4, "flash_attn": True}
COMMAND = ("--qlora", "--lora-r", "64", "--batch-size", "4", "--flash-attn", "--gpu", "4090")
SERVED, SERVING = "google/gemma-3-27b-it", {"concurrent": 12, "seq_len": 8192}
SWEEP = {"qlora": True, "flash_attn": True, "seq_lens": "512,1024,2048,4096,8192"}
GROUND, INK = (24, 26, 31), (208, 212, 220)
COLOURS = [
    *((88, 94, 106), (224, 96, 96), (86, 164, 98), (214, 158, 74)),
    *((91, 141, 239), (184, 119, 219), (42, 161, 152), (208, 212, 220)),
]


def draw() -> str:
    """The SVG of the estimate above."""
    report = estimate(MODEL, gpu="4090", **FLAGS)
    console = Console(
        record=True,
        width=WIDTH,
        file=io.StringIO(),
        force_terminal=True,
        color_system="truecolor",
        highlight=False,
        markup=False,
    )
    console.print(Text(f"$ fitcheck {shlex.join((MODEL, *COMMAND))}\n", style="bold"))
    for part in estimate_view(report, Request(MODEL, FLAGS, {"gpu": "4090"}), WIDTH):
        console.print(part)
    console.print()
    theme = TerminalTheme(GROUND, INK, COLOURS, COLOURS)
    return console.export_svg(title="fitcheck", theme=theme)


def main() -> None:
    """Write every picture."""
    folder = Path(__file__).parent / "img"
    folder.mkdir(exist_ok=True)
    serving = estimate(SERVED, mode="serving", gpu="h100", source="catalogue", **SERVING)
    advice = advise(rules_for(), MODEL, SWEEP, {}, gpu="4090")
    made = {
        "estimate.svg": draw().encode("utf-8"),
        "serving.svg": draw_pictures(serving, "svg"),
        "training.svg": draw_pictures(estimate(MODEL, gpu="4090", **FLAGS), "svg"),
        "edge.svg": draw_edge(edge(advice), advice, "svg"),
    }
    for name, content in made.items():
        (folder / name).write_bytes(content)
        print(folder / name)


if __name__ == "__main__":
    main()
