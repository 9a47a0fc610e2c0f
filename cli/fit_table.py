"""`--fit`: the cards that hold a run, with the most of each that they hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from fitcheck.cli.words import whole_mib

if TYPE_CHECKING:
    from fitcheck.engine.fit import Held
    from fitcheck.engine.rules import Rules


def fit_table(rules: Rules, cards: Sequence[Held]) -> list[RenderableType]:
    """One line a card, the smallest first; where room is short the titles are cut, no figure."""
    mode = rules.mode
    if mode is None or not cards:
        return ["No single card in the database holds it."]
    heads = ["--gpu", "usable MiB", *(name.replace("_", " ") for name in mode.fit)]
    rows = [
        [held.card.id, whole_mib(held.usable), *(amount(held, name) for name in mode.fit)]
        for held in cards
    ]
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    for column, head in enumerate(heads):
        width = max(cell_len(row[column]) for row in [heads, *rows])
        side = "right" if column else "left"
        table.add_column(head, justify=side, no_wrap=True, min_width=width)  # type: ignore[arg-type]
    table.add_column("", no_wrap=True, overflow="ellipsis")
    for held, row in zip(cards, rows, strict=True):
        table.add_row(*row, Text(held.card.title, style="dim"))
    notes = (f"{name.replace('_', ' ')}: {rules.formula(name).counts}" for name in mode.fit)
    return [table, "", *(Text(" ".join(note.split()), style="dim") for note in notes)]


def amount(held: Held, name: str) -> str:
    """What a card holds at most; `or more` where a flag accepts no larger value."""
    return f"{held.most[name]:,}{' or more' if name in held.capped else ''}"
