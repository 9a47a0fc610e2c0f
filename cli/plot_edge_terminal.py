"""The edge of a sweep in characters: one sign for each pair of objectives."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from fitcheck.cli.plot_frame import amount
from fitcheck.cli.plot_terminal import signs_for
from fitcheck.engine.edge import FITS, NOTHING, SAFE, Edge

SIGNS = {NOTHING: "·", FITS: "○", SAFE: "●"}
PLAIN = {NOTHING: ".", FITS: "o", SAFE: "#"}
STYLES = {NOTHING: "dim", FITS: "yellow", SAFE: "green"}
MARK, PLAIN_MARK = "◆", "@"
WIDEST = 9  # columns of one value along the axis


def drawing(edge: Edge, width: int, encoding: str | None) -> Iterator[Text]:
    """Lines of at most `width` columns; values are left out evenly where there are too many."""
    left = max(max(len(f"{y:,}") for y in edge.ys), len(edge.y_title)) + 1
    labels = {x: f"{x:,}" for x in edge.xs}
    cell = min(max(map(len, labels.values())) + 1, WIDEST)
    room = max((width - left) // cell, 1)
    marked = {(mark.x, mark.y) for mark in edge.marks}
    xs = thinned(edge.xs, room, {x for x, _ in marked})
    fine = signs_for(encoding).dots
    signs, mark = (SIGNS, MARK) if fine else (PLAIN, PLAIN_MARK)
    states = {(spot.x, spot.y): spot.state for spot in edge.spots}
    yield Text(f"What fits: {edge.y_title} over {edge.x_title}", style="bold")
    yield Text(f"{edge.y_title:>{left - 1}}", style="dim")
    for y in reversed(edge.ys):
        line = Text(f"{y:>{left - 1},} ")
        for x in xs:
            state = states.get((x, y))
            sign = " " if state is None else mark if (x, y) in marked else signs[state]
            style = "bold" if (x, y) in marked else STYLES.get(state or "", "")
            line.append(f"{sign:^{cell}}", style=style)
        yield line
    yield Text(f"{'':<{left}}{''.join(f'{labels[x]:^{cell}}' for x in xs)}".rstrip())
    yield Text(f"{edge.x_title:^{left + cell * len(xs)}}".rstrip(), style="dim")
    legend = Text()
    for state in (SAFE, FITS, NOTHING):
        says = "fits, uncertain" if state == FITS else state
        legend.append(f"{signs[state]} {says}   ", style=STYLES[state])
    yield legend.append(f"{mark} edge", style="bold")
    for row in edge.marks:
        yield Text(f"{mark} {mark_words(row.x, row.y, edge)}: {amount(row.total)}", style="bold")
    for axis, value in edge.ceilings:
        yield Text(f"ceiling of {axis.replace('_', ' ')} at the anchor: {value:,}", style="dim")


def thinned(values: list[int], room: int, kept: set[int]) -> list[int]:
    """At most `room` of the values, spread evenly, among them those that have to stay."""
    if len(values) <= room:
        return values
    chosen = sorted(kept)[:room]
    rest = room - len(chosen)
    others = [value for value in values if value not in chosen]
    even = [others[round(n * (len(others) - 1) / max(rest - 1, 1))] for n in range(rest)]
    return sorted({*chosen, *even})


def mark_words(x: int, y: int, edge: Edge) -> str:
    return f"{x:,} {edge.x_title}, {edge.y_title} {y:,}"
