"""A comparison as one table, with a footer that says what the cards share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from fitcheck.cli.cards_table import without_vendor
from fitcheck.cli.output import harmless
from fitcheck.cli.screen import WIDEST, console, show
from fitcheck.cli.table import flowing
from fitcheck.cli.words import count, settings_words, whole_mib

if TYPE_CHECKING:
    from fitcheck.engine.comparing import Compared
    from fitcheck.engine.report import Prepared

MOST_DOUBTS = 8  # lines of them; --json has all
ROOMY = 112  # columns from which the names of the cards have room
NARROW, NARROWEST = 74, 52  # below which only the figures that matter most have room
GRADED = 84  # and from which the evidence has


def print_comparison(
    prepared: Prepared, shown: Sequence[Compared], compared: int, no_color: bool
) -> None:
    """The run, one line a card, and what is the same on all of them."""
    target = console(no_color, piped=WIDEST)
    parts = header(prepared, compared, target.width)
    if shown:
        parts += ["", table(prepared, shown, target.width), "", *footer(shown, target.width)]
    else:
        parts += ["", f"It fits on none of the {compared} cards."]
    parts += doubts(shown)
    refused = {c.refused: None for c in shown if c.refused}
    parts += [harmless(f"not modelled: {says}") for says in refused]
    show(parts, no_color, target)


def doubts(shown: Sequence[Compared]) -> list[RenderableType]:
    """What but its headroom keeps a card from being called safe, with the cards it holds for."""
    found: dict[str, list[str]] = {}
    for card in shown:
        for says in card.unsettled:
            found.setdefault(says, []).append(card.card.id)
    lines: list[RenderableType] = []
    for says, cards in found.items():
        where = "every card" if len(cards) == len(shown) > 1 else ", ".join(cards)
        lines.append(Text(harmless(f"not settled on {where}: {says}"), style="dim"))
    return lines[:MOST_DOUBTS]


def header(prepared: Prepared, compared: int, width: int) -> list[RenderableType]:
    """What is compared: the model, its source and the settings, which hold on every card."""
    rules = prepared.rules
    kind = f", {rules.mode.block}," if rules.mode else ""
    title = Text().append(harmless(prepared.model.name), style="bold")
    title.append(f"{kind} on {compared} card{'s' * (compared != 1)}")
    facts = [(harmless(prepared.model.source), "dim")]
    if "parameters" in rules.formulas:
        number = count(prepared.run_with(()).value("parameters"))
        facts.insert(0, (f"{number} parameters", "dim"))
    settings = [
        (words, "" if changed else "dim")
        for words, changed in settings_words(rules.flags, prepared.settings)
    ]
    return [title, *flowing(facts, width), *flowing(settings, width)]


def banded(shown: Sequence[Compared]) -> bool:
    """Whether the upper end of any total is another number than the total, as printed."""
    return any(whole_mib(c.high) != whole_mib(c.total) for c in shown)


def table(prepared: Prepared, shown: Sequence[Compared], width: int) -> Table:
    """One line a card, most headroom first."""
    assert prepared.rules.hints is not None
    heads = prepared.rules.hints.data["compare"]
    roomy, graded, upper = width >= ROOMY, width >= GRADED, banded(shown)
    view = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    view.add_column("--gpu", no_wrap=True)
    names = ["capacity", "peak", "to", "headroom", "used", "most"]
    left_out = {"to"} if not upper else set()
    left_out |= {"to", "used"} if width < NARROW else set()
    left_out |= {"headroom", "capacity"} if width < NARROWEST else set()
    kept = [name for name in names if name not in left_out]
    figures = [
        heads[name]["label"] if name in heads and name != "headroom" else name for name in kept
    ]
    lines = [cells(card, kept) for card in shown]
    for place, head in enumerate(figures):
        # A head may be broken between words, a figure never.
        width = max(map(len, (*head.split(), *(line[place] for line in lines if line))))
        view.add_column(head, justify="right", min_width=width)
    view.add_column("verdict", no_wrap=True)
    if graded:
        view.add_column("evidence", no_wrap=True)
    if roomy:
        view.add_column("card", no_wrap=True, overflow="ellipsis")
    for card, line in zip(shown, lines, strict=True):
        extra = [card.grade.grade] * graded + [Text(without_vendor(card.card), "dim")] * roomy
        figure = line or [""] * len(figures)
        name = card.card.here.get("selector", card.card.id)
        view.add_row(name, *figure, Text(card.title, style=card.style), *extra)
    return view


def cells(card: Compared, kept: Sequence[str]) -> list[str]:
    """The figures of a line that there is room for; none where the run is not modelled there."""
    if card.refused:
        return []
    found = {
        "capacity": whole_mib(card.capacity),
        "peak": whole_mib(card.total),
        "to": whole_mib(card.high),
        "headroom": f"{'-' * (card.headroom < 0)}{whole_mib(abs(card.headroom))}",
        "used": f"{float(card.used) * 100:,.1f} %",
        "most": f"{card.most:,}{' or more' if card.capped else ''}",
    }
    return [found[name] for name in kept]


def footer(shown: Sequence[Compared], width: int) -> list[RenderableType]:
    """Whether the peak is the same everywhere, and what the verdict looks at."""
    priced = [c for c in shown if not c.refused]
    notes = []
    peaks = {whole_mib(c.total): c.total for c in priced}
    if len(peaks) == 1 and len(priced) > 1:
        notes.append("The peak is identical on every card, only the ceiling moves.")
    elif len(peaks) > 1:
        low, high = (whole_mib(end(peaks.values())) for end in (min, max))
        notes.append(f"The peak depends on the card: {low} to {high} MiB.")
    if banded(priced):
        column = ", in the column `to`" if width >= NARROW else ""
        notes.append(f"It has a band: the verdict looks at its upper end{column}.")
    return [Text(f"Sizes in MiB. {' '.join(notes)}".strip(), style="dim")]
