"""Stacks of components as matplotlib draws them, each part with its colour and hatch."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import FixedLocator, NullLocator

from fitcheck.cli.plot_file_curves import (
    DPI,
    GROUND,
    INK,
    SMALL,
    SOFT,
    beside,
    broken,
    spread,
    titles,
)
from fitcheck.cli.plot_frame import amount, apart, even
from fitcheck.cli.plot_stack_frame import (
    band_label,
    banded,
    height_label,
    heights_of,
    notes,
    size_label,
    top_of,
)
from fitcheck.engine.plot_rules import PHASES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fitcheck.engine.report import Report
    from fitcheck.engine.stacks import Column, Part, Stack

# Okabe and Ito, so that every eye tells them apart; the hatches do so in black and white.
LOOKS = (
    ("#0072B2", ""),
    ("#E69F00", "///"),
    ("#009E73", "..."),
    ("#CC79A7", "xxx"),
    ("#56B4E9", ""),
    ("#999999", "\\\\\\"),
    ("#F0E442", "---"),
    ("#D55E00", "+++"),
)
BAR = 0.62  # width of a column, where the next one begins at 1
UNIT = 1.15  # inches from one column to the next where labels stand beside
NARROW = 4.0  # inches of a panel in which labels take two lines
THIN = 0.012  # share of the height below which there is no room for a hatch and an edge


def panel(report: Report, picture: Stack, axes: Axes, legend: bool) -> Callable[[], None]:
    """One picture; returns what moves its labels apart once the page is laid out."""
    top, named = top_of(picture), picture.kind != PHASES
    axes.set_ylim(0, top)
    axes.set_xlim(-0.5, 2.5 if named else len(picture.columns) - 0.5)
    ticks = even(0, top, 7)
    axes.yaxis.set_major_locator(FixedLocator(ticks))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_yticklabels([amount(y) for y in ticks])
    axes.xaxis.set_major_locator(FixedLocator(range(len(picture.columns))))
    axes.set_xticklabels([c.id for c in picture.columns])
    for label, column in zip(axes.get_xticklabels(), picture.columns, strict=True):
        label.set_fontweight("bold" if column.id == picture.peak else "normal")
    axes.tick_params(colors=SOFT, labelcolor=INK, labelsize=SMALL)
    axes.tick_params(axis="x", length=0, labelsize=SMALL + 1)
    axes.grid(axis="y", color="#e4e4e4", linewidth=0.7)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color("#b0b0b0")
    titles(axes, picture.title, notes(picture))
    for index, column in enumerate(picture.columns):
        bar(axes, picture, index, column)
    lines(axes, picture)
    if named:
        return lambda: name_parts(axes, picture)
    texts = [
        beside(axes, value, broken(height_label(label, value)), INK)
        for label, value in heights_of(picture)
    ]
    if legend:
        handles = [patch(picture, part) for part in reversed(picture.parts)]
        axes.legend(
            handles=handles, loc="upper left", bbox_to_anchor=(0, -0.07), ncols=3, frameon=False,
            fontsize=SMALL, handlelength=1.6, handleheight=1.1,
        )  # fmt: skip
    return lambda: spread(axes, texts)


def look(picture: Stack, part: Part, thin: bool = False) -> dict[str, Any]:
    """Colour and hatch of a component, the same in every picture of a report."""
    colour, hatch = LOOKS[part.place % len(LOOKS)]
    if thin:
        return {"facecolor": colour, "linewidth": 0}
    return {"facecolor": colour, "hatch": hatch, "edgecolor": "white", "linewidth": 0.6}


def patch(picture: Stack, part: Part) -> Patch:
    return Patch(label=part.title, **look(picture, part))


def bar(axes: Axes, picture: Stack, index: int, column: Column) -> None:
    """One column with its total above it; that of the peak is marked, and has its band."""
    reached = 0
    for part in column.parts:
        looks = look(picture, part, part.bytes < THIN * axes.get_ylim()[1])
        axes.add_patch(Rectangle((index - BAR / 2, reached), BAR, part.bytes, zorder=3, **looks))
        reached += part.bytes
    peak = column.id == picture.peak
    above = reached
    if peak and banded(picture):
        axes.errorbar(
            index, picture.highest.total, capsize=5, color=INK, linewidth=1.3, zorder=6,
            yerr=[[reached - picture.low], [picture.high - reached]],
        )  # fmt: skip
        above = picture.high
    text = amount(column.total)
    if peak and len(picture.columns) > 1:
        text = f"peak {text}"
    axes.annotate(
        text, (index, above), xytext=(0, 4), textcoords="offset points", ha="center", va="bottom",
        fontsize=SMALL + (1 if peak else 0), weight="bold" if peak else "normal", color=INK,
        zorder=8, bbox=GROUND,
    )  # fmt: skip


def lines(axes: Axes, picture: Stack) -> None:
    """The limit and the marks across the columns."""
    last = len(picture.columns) - 0.5 if picture.kind == PHASES else 0.5 * BAR + 0.1
    for index, (_, value) in enumerate(heights_of(picture)):
        style: Any = (0, (6, 3)) if index == 0 else ":"
        axes.plot([-0.5, last], [value, value], color=INK, linestyle=style, linewidth=1.4, zorder=5)


Row = tuple[float, str, "Part | None"]  # the height it stands for, its text, and its component


def rows_of(picture: Stack, between: str) -> list[Row]:
    """What is named beside a stack, from below."""
    rows: list[Row] = []
    reached = 0
    for part in picture.highest.parts:
        rows.append((reached + part.bytes / 2, label_of(picture, part, between), part))
        reached += part.bytes
    rows += [(value, height_label(label, value), None) for label, value in heights_of(picture)]
    if banded(picture):
        rows.append((picture.high, band_label(picture), None))
    rows.sort(key=lambda row: row[0])
    top = top_of(picture)
    return rows + [(top, label_of(picture, part, between), part) for part in picture.absent]


def name_parts(axes: Axes, picture: Stack) -> None:
    """Each component beside the stack with MiB and share, and what the lines stand for."""
    box = axes.get_window_extent()
    width, scale = box.width / DPI, box.height / axes.get_ylim()[1]
    axes.set_xlim(-0.5, width / UNIT - 0.5)
    rows = rows_of(picture, "\n" if width < NARROW else "  ")
    line = (SMALL + 4.5) * DPI / 72
    sizes = [line * (1 + 0.8 * text.count("\n")) for _, text, _ in rows]
    wanted = [box.y0 + height * scale for height, _, _ in rows]
    moved = apart(wanted, sizes, box.y0, box.y1)
    start, bend, written = BAR / 2 + 0.03, BAR / 2 + 0.18, BAR / 2 + 0.22
    for (height, text, part), pixels in zip(rows, moved, strict=True):
        at = (pixels - box.y0) / scale
        if part is None or part not in picture.absent:
            axes.plot([start, bend], [height, at], color=SOFT, linewidth=0.7, zorder=4)
        if part is not None:
            side = line * 0.55 / scale
            axes.add_patch(
                Rectangle((written, at - side / 2), 0.12, side, zorder=4, **look(picture, part))
            )
        axes.annotate(
            text, (written + (0.17 if part is not None else 0), at), va="center", fontsize=SMALL,
            color=INK, weight="normal" if part is not None else "bold", zorder=8,
        )  # fmt: skip


def label_of(picture: Stack, part: Part, between: str) -> str:
    return f"{part.title}{between}{', '.join(size_label(picture, part))}"
