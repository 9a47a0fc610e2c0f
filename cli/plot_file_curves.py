"""Curves as matplotlib draws them, with labels that do not lie on each other."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import matplotlib
from matplotlib.ticker import FixedLocator, NullLocator

from fitcheck.cli.plot_frame import (
    FEW,
    TOO_LOW,
    Frame,
    Line,
    amount,
    apart,
    count,
    end_label,
    frame,
    grades,
    limit_label,
    none_fits,
    run_labels,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Text

    from fitcheck.engine.plots import Picture
    from fitcheck.engine.report import Report

DPI = 150  # dots an inch
# Colours that differ in lightness too, so that they stay apart in print and for every eye; the two
# strong ones are vermilion and blue of Okabe and Ito.
CHOSEN, SECOND, INK, SOFT = "#D55E00", "#0072B2", "#222222", "#6b6b6b"
UNDER = 62  # letters of the line under a title
SMALL, NORMAL = 8.5, 9.5  # points
HEADROOM = 0.25  # share of the height above a limit: two rows of labels, and that of the run
STYLES = ("-", (0, (4, 2)), ":", "-.")


def panel(report: Report, picture: Picture, axes: Axes, lowest: bool) -> Callable[[], None]:
    """One picture; returns what moves its labels apart once the page is laid out."""
    drawn = frame(picture, headroom=HEADROOM)
    picture = drawn.picture
    axes.set_xscale("log", base=2)
    if picture.scale == "log":
        axes.set_yscale("log", base=2)
    axes.set_xlim(picture.first, picture.last)
    axes.set_ylim(drawn.bottom, drawn.top)
    xs, ys = drawn.x_ticks(10), drawn.y_ticks(7)
    axes.xaxis.set_major_locator(FixedLocator(xs))
    axes.yaxis.set_major_locator(FixedLocator(ys))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_xticklabels([count(x) for x in xs])
    axes.set_yticklabels([amount(y) for y in ys])
    axes.tick_params(colors=SOFT, labelcolor=INK, labelsize=SMALL)
    axes.grid(color="#e4e4e4", linewidth=0.7)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color("#b0b0b0")
    if lowest:
        axes.set_xlabel(picture.axis)
    titles(axes, picture.title, under_title(picture))
    axes.axvline(picture.here, color=CHOSEN, linewidth=0.8, alpha=0.35)
    texts = [*curves(drawn, axes), *limit(report, drawn, axes)]

    def finish() -> None:
        spread(axes, texts)
        lift(axes, drawn)

    return finish


def titles(axes: Axes, title: str, below: str) -> None:
    """The title of a panel, and a smaller line under it."""
    lines = textwrap.wrap(below, UNDER)  # a longer line would take room from the panel
    axes.set_title(title, loc="left", pad=8 + 12 * max(len(lines), 1), color=INK)
    axes.annotate(
        "\n".join(lines), (0, 1), xycoords="axes fraction", xytext=(0, 6),
        textcoords="offset points", fontsize=SMALL, color=SOFT,
    )  # fmt: skip


def under_title(picture: Picture) -> str:
    """The evidence, and what dashes mean where there are any."""
    dashed = picture.limit and any(s.too_low for s in picture.series)
    return grades(picture) + (f"; dashed: {TOO_LOW}" if dashed else "")


def curves(drawn: Frame, axes: Axes) -> list[Text]:
    """The lines, their band, and the points of the run; returns labels for the right edge."""
    texts, picture = [], drawn.picture
    for index, line in enumerate(drawn.lines):
        series, colour = line.series, shade(drawn, index)
        xs, ys = zip(*line.points, strict=True)
        strong = series.chosen and bool(picture.limit)
        style: Any = STYLES[index % len(STYLES)]
        if picture.limit:
            style = STYLES[1] if series.too_low else STYLES[0]
        thick = strong or (index == 0 and not picture.limit)
        axes.plot(
            xs, ys, color=colour, linestyle=style, linewidth=2.4 if thick else 1.6,
            zorder=4 if strong else 3, solid_capstyle="round",
            marker="." if strong and len(xs) <= FEW and not series.at else "",
        )  # fmt: skip
        if strong and banded(drawn, series.low, series.high):
            size = len(xs)
            low, high = (list(map(float, band[:size])) for band in (series.low, series.high))
            axes.fill_between(xs, low, high, color=colour, alpha=0.18, linewidth=0)
        if line.end:
            axes.plot(*line.end, "o", color=colour, markersize=5, zorder=6)
            if not series.at:
                wall(drawn, line, axes)
        if index in drawn.at_edge():
            texts.append(beside(axes, ys[-1], series.label, colour))
    for x, y in drawn.here:
        axes.plot(
            x, y, "D", color=CHOSEN, markersize=6.5, zorder=7, markeredgecolor="white",
            clip_on=False,
        )  # fmt: skip
    left = drawn.across(picture.here) < 0.62
    below = not picture.limit and runs_high(drawn, left)
    axes.annotate(
        "\n".join(run_labels(drawn)), (picture.here, 0 if below else 1),
        xycoords=("data", "axes fraction"), xytext=(6 if left else -6, 6 if below else -4),
        textcoords="offset points", ha="left" if left else "right", va="bottom" if below else "top",
        fontsize=SMALL, color=CHOSEN, weight="bold", zorder=8, bbox=GROUND,
    )  # fmt: skip
    return texts


def runs_high(drawn: Frame, right: bool) -> bool:
    """Whether there is more room below the lines than above them, right or left of the run."""
    here = drawn.across(drawn.picture.here)
    first, last = (here, here + 0.45) if right else (here - 0.45, here)
    near = [
        drawn.up(y)
        for line in drawn.lines
        for x, y in line.points
        if first <= drawn.across(x) <= last
    ]
    return min(near) > 1 - max(near)


GROUND = {"boxstyle": "square,pad=0.12", "facecolor": "white", "edgecolor": "none", "alpha": 0.82}


def banded(drawn: Frame, low: Sequence[Any], high: Sequence[Any]) -> bool:
    """Whether a band is wide enough to be seen."""
    height = (drawn.top - drawn.bottom) / 500
    return any(float(b - a) > height for a, b in zip(low, high, strict=True))


def shade(drawn: Frame, index: int) -> str:
    """Vermilion for the run; the others from dark to light, or blue where there are two."""
    series = drawn.lines[index].series
    if not drawn.picture.limit:
        return (SECOND, INK, "#009E73", "#CC79A7")[index % 4]
    if series.chosen:
        return CHOSEN
    share = index / max(len(drawn.lines) - 1, 1)
    colour: tuple[float, ...] = matplotlib.colormaps["cividis"](0.05 + 0.62 * share)
    return "#" + "".join(f"{round(part * 255):02x}" for part in colour[:3])


def limit(report: Report, drawn: Frame, axes: Axes) -> list[Text]:
    """The line that the curves should stay below, with its name at the right edge."""
    if drawn.picture.limit is None:
        return []
    value = float(drawn.picture.limit[1])
    axes.axhline(value, color=INK, linestyle=(0, (6, 3)), linewidth=1.4, zorder=5)
    axes.axhspan(value, drawn.top, color=INK, alpha=0.045, linewidth=0)
    if none := none_fits(drawn.picture):
        axes.annotate(
            none, (0, value), xycoords=("axes fraction", "data"), xytext=(6, -5), va="top",
            textcoords="offset points", fontsize=SMALL, color=INK, weight="bold", zorder=9,
            bbox=GROUND,
        )  # fmt: skip
    size, card = limit_label(report, drawn.picture)
    whose = wrapped(card) if any(s.at for s in drawn.picture.series) else ""
    return [beside(axes, value, f"{size}\n{whose}" if whose else broken(size), INK)]


def broken(text: str) -> str:
    """An amount, and below it what it is."""
    value, unit, *rest = text.split(" ")
    return f"{value} {unit}\n{' '.join(rest)}"


def wall(drawn: Frame, line: Line, axes: Axes) -> None:
    """Where the only curve meets the limit; beyond it is nothing, so its name stands there."""
    assert line.end is not None
    x, y = line.end
    axes.plot([x, x], [drawn.bottom, y], color=INK, linewidth=1.2, linestyle=STYLES[2], zorder=3)
    right = drawn.across(x) < 0.6
    axes.annotate(
        end_label(line), (x, 0), xycoords=("data", "axes fraction"),
        xytext=(5 if right else -5, 6), textcoords="offset points",
        ha="left" if right else "right", va="bottom", fontsize=SMALL, color=INK, weight="bold",
        zorder=9, bbox=GROUND,
    )  # fmt: skip


def wrapped(text: str, widest: int = 18) -> str:
    """A name on as few lines as it needs, which are about equally long."""
    fewest = len(textwrap.wrap(text, widest))
    widths = (w for w in range(4, widest + 1) if len(textwrap.wrap(text, w)) == fewest)
    return "\n".join(textwrap.wrap(text, next(widths, widest)))


def beside(axes: Axes, y: float, text: str, colour: str) -> Text:
    """A label right of the picture, at the height of what it names."""
    return axes.annotate(
        text, (1, y), xycoords=("axes fraction", "data"), xytext=(5, 0), va="center",
        textcoords="offset points", fontsize=SMALL, color=colour, annotation_clip=False,
    )  # fmt: skip


def spread(axes: Axes, texts: Sequence[Text]) -> None:
    """Move the labels right of a picture apart."""
    box = axes.get_window_extent()
    extents = [text.get_window_extent() for text in texts]
    places = [(e.y0 + e.y1) / 2 for e in extents]
    moved = apart(places, [e.height + 2 for e in extents], box.y0, box.y1)
    for text, old, new in zip(texts, places, moved, strict=True):
        note: Any = text
        note.xyann = (5, (new - old) * 72 / DPI)


def lift(axes: Axes, drawn: Frame) -> None:
    """Labels above the points where curves meet the limit, in as many rows as they need."""
    box, rows, gap = axes.get_window_extent(), [-math.inf] * 4, 4
    for line in drawn.ends:
        assert line.end is not None
        series = line.series
        if not series.at:
            continue  # named at its wall
        label = axes.annotate(
            end_label(line).replace(": ", "\n"), line.end, xytext=(0, 8),
            textcoords="offset points", ha="center", va="bottom", fontsize=SMALL - 0.5,
            color=CHOSEN if series.chosen else INK, weight="bold" if series.chosen else "normal",
            linespacing=1.05, zorder=9, bbox=GROUND,
        )  # fmt: skip
        extent = label.get_window_extent()
        left = min(max(extent.x0, box.x0), box.x1 - extent.width)
        row = next((i for i, end in enumerate(rows) if left > end + gap), len(rows) - 1)
        rows[row] = left + extent.width
        step = (extent.height + gap) * 72 / DPI
        note: Any = label
        note.xyann = ((left - extent.x0) * 72 / DPI, 8 + row * step)
        if row:
            axes.annotate(
                "", line.end, xytext=(0, 8 + row * step), textcoords="offset points", zorder=2,
                arrowprops={"arrowstyle": "-", "color": SOFT, "linewidth": 0.6},
            )  # fmt: skip
