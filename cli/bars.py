"""Bars made of block characters: one for each component, and one of the whole card."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from rich.text import Text

EIGHTHS = " ▏▎▍▌▋▊▉"
FULL, OVER, FREE, RESERVED, EDGE = "█", "▓", "░", "·", "┃"


def bar(amount: int, scale: int, width: int) -> str:
    """A bar of `amount` where `scale` would be `width` columns; an arrow where it runs over."""
    if amount <= 0 or scale <= 0:
        return ""
    eighths = round(amount * width * 8 / scale)
    if eighths > width * 8:
        return FULL * (width - 1) + "→"
    eighths = max(eighths, 1)
    return FULL * (eighths // 8) + EIGHTHS[eighths % 8].strip()


def capacity_bar(parts: Sequence[tuple[int, str]], usable: int, total: int, width: int) -> Text:
    """
    What is needed against the card.

    Parameters
    ----------
    parts : sequence of (bytes, colour)
        The components that are live at the peak.
    usable, total : int
        Memory that a process can use, and that the card has. [byte]
    width : int
        Columns.

    Returns
    -------
    Text
        Filled up to what is needed, an edge where the usable memory ends.
    """
    needed = sum(size for size, _ in parts)
    scale = max(needed, total, 1)
    edge = min(width - 1, round(usable * width / scale))
    filled = max(1, round(needed * width / scale)) if needed else 0
    # What fits ends before the edge and what does not ends behind it, however small the difference.
    filled = min(filled, edge) if needed <= usable else max(filled, edge + 2)
    cells: list[tuple[str, str]] = []
    for column in range(width):
        if column == edge:
            cells.append((EDGE, "bold"))
        elif column < filled:
            sign = FULL if column < edge else OVER
            cells.append((sign, _colour(parts, column, width, scale)))
        else:
            cells.append((FREE if column < edge else RESERVED, "dim"))
    text = Text(no_wrap=True)
    for (sign, style), run in groupby(cells):
        text.append(sign * len(list(run)), style=style)
    return text


def _colour(parts: Sequence[tuple[int, str]], column: int, width: int, scale: int) -> str:
    """The colour of the component that the middle of a column falls into."""
    middle, reached = (column + 0.5) * scale / width, 0
    for size, colour in parts:
        reached += size
        if middle <= reached:
            return colour
    return parts[-1][1]
