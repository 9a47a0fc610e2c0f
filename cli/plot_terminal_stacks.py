"""Stacks of components in characters: a bar for each phase, and one step for each component."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from fitcheck.cli.components import colour_of
from fitcheck.cli.plot_frame import amount
from fitcheck.cli.plot_stack_frame import (
    band_label,
    height_label,
    heights_of,
    notes,
    size_label,
    top_of,
)
from fitcheck.engine.plot_rules import PHASES

if TYPE_CHECKING:
    from fitcheck.engine.stacks import Column, Part, Stack

# One sign for each component, so that they differ without colours too.
FINE, PLAIN = "█▒▚░▓▞▬▤", "#=%:+o~*"
LINES, PLAIN_LINES = "┃┆", "|!"  # of the limit, and of other heights
LONGEST_TITLE = 28
SHORTEST_BAR = 12
Cells = list[tuple[str, str]]  # a sign and its style for each column


def fit(text: str, width: int) -> str:
    """The text, cut where it is wider."""
    return text if cell_len(text) <= width else f"{set_cell_size(text, width - 3).rstrip()}..."


def stacked(picture: Stack, width: int, fine: bool) -> Iterator[Text]:
    """One picture, each line at most `width` columns; `fine` says whether blocks can be shown."""
    yield Text(fit(picture.title, width), style="bold")
    yield from (phases if picture.kind == PHASES else steps)(picture, width, fine)
    yield from meaning(picture, width, fine)


def sign(picture: Stack, part: Part, fine: bool) -> tuple[str, str]:
    """The sign of a component and its colour."""
    place = part.place
    signs = FINE if fine else PLAIN
    return signs[place % len(signs)], colour_of(place)


def phases(picture: Stack, width: int, fine: bool) -> Iterator[Text]:
    """A bar for each phase; the highest is named."""
    left = max(len(c.id) for c in picture.columns) + 1
    ends = {
        c.id: f" {amount(c.total)}{' peak' if c.id == picture.peak else ''}"
        for c in picture.columns
    }
    room = max(width - left - max(map(len, ends.values())), SHORTEST_BAR)
    for column in picture.columns:
        style = "bold" if column.id == picture.peak else ""
        text = Text(f"{column.id:<{left}}", style=style)
        add(text, with_lines(picture, bar(picture, column, room, fine), fine))
        yield text.append(ends[column.id], style=style)


def steps(picture: Stack, width: int, fine: bool) -> Iterator[Text]:
    """A line for each component, its bar where that of the one before ends, and all in one."""
    titles = min(max(cell_len(p.title) for p in picture.parts), LONGEST_TITLE, width // 3)
    sizes = {p.id: size_label(picture, p) for p in picture.parts}
    total = (amount(picture.highest.total), "")
    numbers = max(len(size) for size, _ in [*sizes.values(), total])
    shares = max((len(share) for _, share in sizes.values()), default=0)
    room = max(width - titles - numbers - shares - 4, SHORTEST_BAR)
    reached = 0
    for part in picture.parts:
        size, share = sizes[part.id]
        cells: Cells = [(" ", "")] * room
        if part not in picture.absent:
            fill(picture, cells, reached, part, fine)
            reached += part.bytes
        text = Text(f"{fit(part.title, titles):<{titles}} ")
        add(text, with_lines(picture, cells, fine))
        yield text.append(f" {size:>{numbers}}  {share:>{shares}}".rstrip())
    text = Text(f"{fit('total', titles):<{titles}} ", style="bold")
    add(text, with_lines(picture, bar(picture, picture.highest, room, fine), fine))
    yield text.append(f" {total[0]:>{numbers}}", style="bold")


def bar(picture: Stack, column: Column, room: int, fine: bool) -> Cells:
    """The components of one phase behind each other."""
    cells: Cells = [(" ", "")] * room
    reached = 0
    for part in column.parts:
        fill(picture, cells, reached, part, fine)
        reached += part.bytes
    return cells


def fill(picture: Stack, cells: Cells, start: int, part: Part, fine: bool) -> None:
    """The cells of one component; one that is smaller than a cell keeps one where it is alone."""
    first, last = (place(picture, at, len(cells)) for at in (start, start + part.bytes))
    shown = max(last, first + 1) if cells[min(first, len(cells) - 1)][0] == " " else last
    for at in range(first, min(shown, len(cells))):
        cells[at] = sign(picture, part, fine)


def place(picture: Stack, value: int, room: int) -> int:
    """The column of an amount of bytes."""
    return round(value / top_of(picture) * room)


def with_lines(picture: Stack, cells: Cells, fine: bool) -> Cells:
    """The cells with the limit and the marks over them."""
    found = list(cells)
    for index, (_, value) in reversed([*enumerate(heights_of(picture))]):
        at = min(place(picture, value, len(cells)), len(cells) - 1)
        found[at] = ((LINES if fine else PLAIN_LINES)[min(index, 1)], "bold")
    return found


def add(text: Text, cells: Cells) -> None:
    """Append cells to a line."""
    for style, run in groupby(cells, key=lambda cell: cell[1]):
        text.append("".join(mark for mark, _ in run), style=f"not bold {style}" if style else "")


def meaning(picture: Stack, width: int, fine: bool) -> Iterator[Text]:
    """What the signs stand for, wrapped at the width."""
    parts: list[tuple[str, str]] = []
    if picture.kind == PHASES:
        for part in picture.parts:
            mark, style = sign(picture, part, fine)
            parts.append((f"{mark} {part.title}", style))
    for index, (label, value) in enumerate(heights_of(picture)):
        line = (LINES if fine else PLAIN_LINES)[min(index, 1)]
        parts.append((f"{line} {height_label(label, value)}", "bold"))
    if band := band_label(picture):
        parts.append((f"{band} at the peak" if picture.kind == PHASES else band, ""))
    parts += [(text, "dim") for text in notes(picture).split("; ")]
    row = Text()
    for text, style in parts:
        if row.plain and cell_len(row.plain) + 3 + cell_len(text) > width:
            yield row
            row = Text()
        row.append("   " if row.plain else "").append(fit(text, width), style=style)
    yield row
