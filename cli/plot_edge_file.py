"""The edge of a sweep as matplotlib draws it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

from fitcheck.cli.plot_file import new_figure, page
from fitcheck.cli.plot_file_curves import CHOSEN, INK, SMALL, SOFT
from fitcheck.cli.plot_frame import amount
from fitcheck.cli.words import is_changed
from fitcheck.engine.edge import FITS, NOTHING, SAFE, Edge
from fitcheck.engine.spelling import spelled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fitcheck.engine.advice import Advice

# Shape and filling differ, so that the states are told apart without colours.
LOOKS = {
    SAFE: ("o", "#009E73", "#009E73", "safe"),
    FITS: ("o", "white", "#0072B2", "fits by the point estimate, uncertain"),
    NOTHING: ("x", "#bbbbbb", "#bbbbbb", "does not fit"),
}
MOST_TICKS = 10
MOST_SPLITS = 4
MOST_NAMED = 3  # rows of the frontier
WIDTH, HEIGHT = 9.2, 5.8  # inches


def draw(edge: Edge, advice: Advice, form: str) -> bytes:
    """The picture as a file of the format `png` or `svg`; the same sweep gives the same bytes."""
    return page(lambda: figure(edge, advice), form)


def figure(edge: Edge, advice: Advice) -> Figure:
    """Every pair of objectives with what fits there, the frontier named, and the ceilings."""
    prepared = advice.anchor.prepared
    title = f"{prepared.model.name} on {where(advice)}: what fits"
    fits = f"{advice.fitting_count:,} of {advice.grid_size:,} points fit"
    below = ", ".join([fits, *held(advice)])
    fig = new_figure(WIDTH, HEIGHT, title, below)
    axes = fig.add_subplot()
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    size = max(12.0, 90.0 - len(edge.spots) / 8)
    for state, (marker, face, line, label) in LOOKS.items():
        spots = [spot for spot in edge.spots if spot.state == state]
        places = [spot.x for spot in spots], [spot.y for spot in spots]
        if marker == "x":
            axes.scatter(*places, s=size, marker=marker, c=line, label=label, linewidths=1.3)
            continue
        axes.scatter(
            *places,
            s=size,
            marker=marker,
            facecolors=face,
            edgecolors=line,
            label=label,
            linewidths=1.3,
            zorder=3,
        )
    ceilings(edge, axes)
    if edge.marks:
        at = [mark.x for mark in edge.marks], [mark.y for mark in edge.marks]
        faces = [CHOSEN if mark.safe else "white" for mark in edge.marks]
        axes.scatter(
            *at, s=1.3 * size, marker="D", c=faces, edgecolors=CHOSEN, zorder=4, label="the edge"
        )
    named = {(mark.x, mark.y): mark for mark in reversed(edge.marks)}  # the cheapest of equals
    for number, mark in enumerate(reversed(named.values())):
        if number < MOST_NAMED:
            axes.annotate(
                f"{amount(mark.total)}\n{split_words(mark.splits)}",
                (mark.x, mark.y),
                xytext=(0, 10),
                textcoords="offset points",
                ha="center",
                fontsize=SMALL,
                color=INK,
                bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.9, "pad": 1.5},
                zorder=5,
            )
    for axis, values, name in (
        (axes.xaxis, edge.xs, edge.x_title),
        (axes.yaxis, edge.ys, edge.y_title),
    ):
        shown = ticks(values)
        axis.set_major_locator(FixedLocator(shown))
        axis.set_major_formatter(FixedFormatter([f"{value:,}" for value in shown]))
        axis.set_minor_locator(NullLocator())
        axis.set_label_text(name)
    axes.margins(0.08, 0.16)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=4, frameon=False)
    return fig


def ceilings(edge: Edge, axes: Axes) -> None:
    """Lines where each objective ends with all else as at the anchor."""
    for number, (axis, value) in enumerate(edge.ceilings):
        text = f"ceiling of {axis.replace('_', ' ')} at the anchor: {value:,}"
        line = axes.axvline if number == 0 else axes.axhline
        line(value, color=SOFT, linestyle=(0, (4, 3)), linewidth=1.1, zorder=1)
        upright = number == 0
        axes.annotate(
            text,
            (value, 1.0) if upright else (0.995, value),
            xycoords=("data", "axes fraction") if upright else ("axes fraction", "data"),
            xytext=(0, 3),
            textcoords="offset points",
            ha="center" if upright else "right",
            fontsize=SMALL,
            color=SOFT,
        )


def held(advice: Advice) -> list[str]:
    """The flags that were held fixed and are not the defaults."""
    settings = advice.anchor.prepared.settings
    return [
        " ".join(spelled(flag, settings.values[flag.id]))
        for flag in advice.rules.flags.flags.values()
        if flag.id not in (*advice.axes, *advice.others) and is_changed(flag, settings)
    ]


def ticks(values: Sequence[int]) -> list[int]:
    """Values that have room for their labels on a logarithmic axis."""
    wide = (values[-1] / values[0]) ** (1 / MOST_TICKS)
    found = values[:1]
    for value in values[1:]:
        if value >= found[-1] * max(wide, 1.05):
            found = [*found, value]
    return list(found)


def where(advice: Advice) -> str:
    """The card, or how many."""
    cards = {block.prepared.card.title for block in advice.blocks}
    return next(iter(cards)) if len(cards) == 1 else f"{len(cards)} cards"


def split_words(splits: tuple[tuple[int, ...], ...]) -> str:
    """The splits of a row, the first few."""
    found = [" × ".join(f"{part:,}" for part in split) for split in splits[:MOST_SPLITS]]
    return ", ".join(found) + (" ..." if len(splits) > MOST_SPLITS else "")
