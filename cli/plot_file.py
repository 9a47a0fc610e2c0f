"""The pictures as PNG or SVG on one page; this and `plot_file_*` alone import matplotlib."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any

import matplotlib
from matplotlib.figure import Figure

from fitcheck.cli import plot_file_curves, plot_file_stacks
from fitcheck.cli.plot_file_curves import DPI, NORMAL
from fitcheck.cli.plot_frame import head
from fitcheck.engine.plot_rules import PHASES
from fitcheck.engine.plots import Picture
from fitcheck.engine.stacks import Stack

if TYPE_CHECKING:
    from fitcheck.engine.pictures import AnyPicture
    from fitcheck.engine.report import Report

WIDE, TALL = 11.5, 6.4  # inches of a page of curves
STACK_WIDTH = 4.2  # inches of a stack beside curves
PANEL_WIDTH, ROW_HEIGHT = 4.7, 4.9  # inches of one of several panels in a row
ALONE = (8.6, 5.4)  # inches of one picture alone

CLIP = re.compile(rb"\bp[0-9a-f]{10}\b")

Column = list["AnyPicture"]  # pictures below each other
Row = list[tuple[float, Column]]  # columns with their widths in inches


def draw(report: Report, form: str, names: Sequence[str] = ()) -> bytes:
    """
    All pictures, or those of these names, as one file of the format `png` or `svg`.

    The same report gives the same bytes. Raises `InputProblem` for an unknown name.
    """
    return page(lambda: figure(report, names), form)


def page(make: Callable[[], Figure], form: str) -> bytes:
    """A figure as a file, made without what a person has set for other figures."""
    found = BytesIO()
    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a name in letters that the font has not
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(
            {
                "svg.hashsalt": "fitcheck",
                "text.parse_math": False,  # a dollar in the name of a model is a dollar
                "font.size": NORMAL,
                "axes.titlesize": NORMAL + 1.5,
                "hatch.linewidth": 0.8,
            }
        )
        metadata = {"Date": None} if form == "svg" else {"Software": None}
        make().savefig(found, format=form, metadata=metadata)
    return renamed(found.getvalue()) if form == "svg" else found.getvalue()


def renamed(made: bytes) -> bytes:
    """An SVG with its clip paths counted; matplotlib hashes layouts, whose last digits vary."""
    names = dict.fromkeys(CLIP.findall(made))
    places = {name: f"clip{n}".encode() for n, name in enumerate(names)}
    return CLIP.sub(lambda found: places[found[0]], made)


def figure(report: Report, names: Sequence[str] = ()) -> Figure:
    """The page, with its labels where they do not lie on each other."""
    found = report.pictures(*names)
    rows = rows_of(found)
    width = max(sum(inches for inches, _ in row) for _, row in rows)
    title, flags = head(report, found)
    fig = new_figure(width, sum(height for height, _ in rows), title, flags)
    grid = fig.add_gridspec(len(rows), 1, height_ratios=[height for height, _ in rows])
    later: list[Callable[[], None]] = []
    legend = not any(isinstance(p, Stack) and p.kind != PHASES for p in found)
    for place, (_, row) in enumerate(rows):
        columns = grid[place].subgridspec(1, len(row), width_ratios=[inches for inches, _ in row])
        for across, (_, column) in enumerate(row):
            cells = columns[across].subgridspec(len(column), 1)
            for down, picture in enumerate(column):
                axes = fig.add_subplot(cells[down])
                if isinstance(picture, Picture):
                    lowest = down == len(column) - 1
                    later.append(plot_file_curves.panel(report, picture, axes, lowest))
                else:
                    later.append(plot_file_stacks.panel(report, picture, axes, legend))
    fig.draw_without_rendering()  # lays everything out, so that labels can be measured
    fig.set_layout_engine("none")
    for axes in fig.axes:  # the solver's last digits vary from run to run
        left, bottom, width, height = axes.get_position().bounds
        axes.set_position((round(left, 5), round(bottom, 5), round(width, 5), round(height, 5)))
    for finish in later:
        finish()
    return fig


def new_figure(width: float, height: float, title: str, below: str) -> Figure:
    """An empty page of a size in inches with its title."""
    fig = Figure(figsize=(width, height), dpi=DPI, layout="constrained")
    engine: Any = fig.get_layout_engine()
    engine.set(w_pad=0.12, h_pad=0.1, wspace=0.03)
    fig.suptitle(title + (f"\n{below}" if below else ""), fontsize=NORMAL + 3, x=0.012, ha="left")
    return fig


def rows_of(found: Sequence[AnyPicture]) -> list[tuple[float, Row]]:
    """
    The page: rows with their height, each of columns with their width, in inches.

    Phases and stacks stand above curves, or a stack alone left of them. Curves with a limit stand
    side by side, or left of those that have none.
    """
    if len(found) == 1:
        return [(ALONE[1], [(ALONE[0], list(found))])]
    stacks: Column = [p for p in found if isinstance(p, Stack)]
    curves = [p for p in found if isinstance(p, Picture)]
    columns: list[Column] = [[p] for p in curves]
    below: Row = [(PANEL_WIDTH, column) for column in columns]
    height = ROW_HEIGHT
    if any(not p.limit for p in curves):
        parts: list[Column] = [[p for p in curves if p.limit], [p for p in curves if not p.limit]]
        widths = (WIDE * 1.6 / 2.6, WIDE / 2.6)
        below = [(w, part) for w, part in zip(widths, parts, strict=True) if part]
        height = TALL
    if not stacks:
        return [(height, below)]
    if below and not any(isinstance(p, Stack) and p.kind == PHASES for p in found):
        return [(height, [*((STACK_WIDTH, [p]) for p in stacks), *below])]
    width = max(PANEL_WIDTH * len(columns), 2.4 * PANEL_WIDTH)
    shares = [1.3 if p.kind == PHASES else 1.0 for p in stacks if isinstance(p, Stack)]
    above: Row = [(width * s / sum(shares), [p]) for s, p in zip(shares, stacks, strict=True)]
    return [(ROW_HEIGHT, above), *([(height, below)] if below else [])]
