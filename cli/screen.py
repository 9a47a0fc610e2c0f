"""Consoles and the order of what is printed; the only way from here to rich."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TextIO

from rich.console import Console, RenderableType

from fitcheck.cli.output import wants_colour, write

if TYPE_CHECKING:
    from fitcheck.cli.answer import Request
    from fitcheck.engine.report import Report

NARROWEST, WIDEST = 60, 120


def console(
    no_color: bool = False,
    piped: int | None = None,
    narrowest: int = NARROWEST,
    stream: TextIO | None = None,
) -> Console:
    """A console as wide as the terminal, within what the tables are made for.

    `piped` is the width where there is no terminal and COLUMNS does not say one (a pipe, a file);
    `stream` is where it will be written, standard output if it is not given.
    """
    stream = stream or sys.stdout
    colour = wants_colour(stream, no_color)
    found = Console(
        force_terminal=colour,
        color_system="auto" if colour else None,
        no_color=not colour,
        highlight=False,
        markup=False,
        emoji=False,
    )
    terminal = stream is not None and stream.isatty()
    width = found.width if terminal or os.environ.get("COLUMNS") else piped or found.width
    found.width = min(max(width, narrowest), WIDEST)
    return found


def show(
    parts: Iterable[RenderableType],
    no_color: bool = False,
    target: Console | None = None,
    to: Callable[[str], None] = write,
) -> None:
    """Print parts one below the other, without the blanks that tables leave at line ends."""
    target = target or console(no_color)
    shown = []
    for part in parts:
        if isinstance(part, str):  # printed as it is, however wide
            shown.append(f"{part}\n")
            continue
        with target.capture() as captured:
            target.print(part)
        shown.append(captured.get())
    to("\n".join(line.rstrip() for line in "".join(shown).split("\n")).rstrip("\n"))


def print_estimate(report: Report, request: Request, values: Mapping[str, Any]) -> None:
    """The table, and below it what --verbose, --explain and --fit add."""
    from fitcheck.cli.table import estimate_view

    target = console(values["no_color"])
    width = target.width
    parts = estimate_view(report, request, width)
    if values["verbose"]:
        from fitcheck.cli.verbose import verbose_view

        parts += verbose_view(report)
    if values["explain"]:
        from fitcheck.engine.explain import explain as explained

        parts += ["", explained(report, width)]
    if values.get("fit"):
        from fitcheck.cli.fit_table import fit_table
        from fitcheck.engine.fit import cards_that_hold

        parts += ["", *fit_table(report.prepared.rules, cards_that_hold(report.prepared))]
    show(parts, target=target)
