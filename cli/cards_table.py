"""`--list-gpus`: the database of cards, as a table or as JSON."""

from __future__ import annotations

from typing import Any

from fitcheck.cli.output import write
from fitcheck.cli.words import whole_mib
from fitcheck.engine.cards import Card, cards_of
from fitcheck.engine.grades import Grade, grade_of, weakest
from fitcheck.engine.json_kinds import json_text
from fitcheck.engine.rules import Rules
from fitcheck.engine.run import Facts, Run
from fitcheck.engine.template import MIB

CLASSES = ("consumer", "laptop", "workstation", "datacenter")
ROOMY = 100  # columns from which both grades and the full names have room
GRADED = 72  # columns from which the weaker grade has


def list_cards(rules: Rules, as_json: bool, no_color: bool) -> None:
    """Print every card, by class and then by usable memory."""
    cards = cards_of(rules)
    grades = card_grades(rules, cards)
    if as_json:
        write(json_text("gpus", {"gpus": [_record(c, grades[c.id]) for c in cards]}))
        return
    _print(cards, grades, no_color)


def card_grades(rules: Rules, cards: list[Card]) -> dict[str, dict[str, Grade]]:
    """For each card the grades of its figures, `total` and `usable`."""
    run = Run(rules, Facts(rules.flags.resolve({}), {}, {}))
    return {
        card.id: {
            name: weakest(grade_of(proof, run) for proof in proofs)
            for name, proofs in card.evidence.items()
        }
        for card in cards
    }


def _mib(value: int) -> int | float:
    return value // MIB if value % MIB == 0 else round(value / MIB, 2)


def _record(card: Card, grades: dict[str, Grade]) -> dict[str, Any]:
    return {
        "key": card.id,
        "name": card.title,
        **card.fields,
        "vram_mib": _mib(card.total),
        "usable_mib": _mib(card.usable),
        "status": card.status,
        "evidence": {name: grade.to_dict() for name, grade in grades.items()},
    }


def _print(cards: list[Card], grades: dict[str, dict[str, Grade]], no_color: bool) -> None:
    from rich.table import Table
    from rich.text import Text

    from fitcheck.cli.screen import WIDEST, console, show

    target = console(no_color, piped=WIDEST)
    roomy, graded = target.width >= ROOMY, target.width >= GRADED
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("--gpu", no_wrap=True)
    table.add_column("total MiB", justify="right", no_wrap=True)
    table.add_column("usable", justify="right", no_wrap=True)
    if graded:
        table.add_column("evidence", no_wrap=True)
    # What does not fit goes on in a second line: a name that is cut may be that of another card.
    table.add_column("card", overflow="fold")
    for title, members in by_class(cards).items():
        if table.row_count:
            table.add_row("")
        table.add_row(Text(title, style="bold"))
        for card in members:
            found = [*grades[card.id].values()]
            words = [" / ".join(g.grade for g in found) if roomy else weakest(found).grade]
            draft = "" if card.status == "stable" else f" ({card.status})"
            name = card.title + draft if roomy else without_vendor(card) + draft
            figures = (whole_mib(card.total), whole_mib(card.usable))
            table.add_row(card.id, *figures, *(words if graded else ()), name)
    note = "of the total / of the usable memory" if roomy else "the weaker of both figures"
    footer = f"{len(cards)} cards{f'; evidence: {note}' if graded else ''}"
    show([table, "", footer], no_color, target)


def by_class(cards: list[Card]) -> dict[str, list[Card]]:
    """Cards by class, in each by memory; classes that are not known here come last."""
    groups: dict[str, list[Card]] = {name: [] for name in CLASSES}
    for card in sorted(cards, key=lambda c: (c.usable, c.total, c.id)):
        groups.setdefault(str(card.fields.get("class", "other")), []).append(card)
    return {name: members for name, members in groups.items() if members}


def without_vendor(card: Card) -> str:
    """The title without the vendor's name in front, which the narrow table has no room for."""
    first, _, rest = card.title.partition(" ")
    return rest if rest and first.casefold() == card.fields.get("vendor") else card.title
