"""The page of a card: its two figures, what each rests on, and which profiles are its own."""

from __future__ import annotations

from ..cards import FIELDS, Card
from ..grades import GRADES, KINDS
from ..profile import matches
from ..rules import Rules
from ..template import MIB, number
from .book import Book, evidence_table
from .everything import Everything
from .markdown import code, link, page, plain, section, table
from .profile_page import readers_of, status

FIGURES = {
    "total": "what the driver reports; the bar of an estimate is this long",
    "usable": "what one process can count on; an estimate above it does not fit",
}


def card_page(book: Book, card: Card, names: list[str]) -> str:
    """The page as Markdown; `names` are the other names under which it is found."""
    here = f"cards/{card.id}.md"
    rows = [
        (
            name,
            mib(getattr(card, name)),
            f"{getattr(card, name):,}",
            grade(card, name),
            says,
        )
        for name, says in FIGURES.items()
    ]
    known = {n: v for n, v in card.facts().items() if n in FIELDS}
    facts = [(plain(n.replace("_", " ")), plain(str(v))) for n, v in known.items()]
    assert card.mark is not None
    lines = [
        f"# {plain(card.title)}",
        "",
        f"{code(f'--gpu {card.id}')}, {status(card.status)}from "
        f"{book.file(here, card.mark, card.overlay)}. Also found as "
        f"{', '.join(code(n) for n in names) or 'nothing else'}.",
        "",
        *section("Memory", table(("figure", "MiB", "bytes", "grade", "meaning"), rows)),
        *section("Evidence", evidence(here, card)),
        *section("What it is", table(("", ""), facts)),
        *section("Profiles made for it", own(here, book.rules, card)),
        *section("Read by", readers(book, here)),
    ]
    return page(lines)


def mib(amount: int) -> str:
    return number(amount // MIB) if amount % MIB == 0 else f"{amount / MIB:,.2f}"


def grade(card: Card, name: str) -> str:
    """The best grade among what a figure rests on."""
    found = [KINDS[e.kind] for e in card.evidence.get(name, ())]
    return max(found, key=GRADES.index, default="assumed")


def evidence(here: str, card: Card) -> list[str]:
    lines: list[str] = []
    for name in FIGURES:
        proofs = list(card.evidence.get(name, ()))
        if proofs:
            lines += [f"For {name}:", "", *evidence_table(here, proofs)]
    return lines


def own(here: str, rules: Rules, card: Card) -> list[str]:
    """Profiles that ask for this card; without one the fallback of the kind is taken."""
    rows = [
        f"- {link(here, f'{Book(part).folder(kind)}/{p.id}.md', plain(p.title))} ({kind})"
        for part in (rules.parts if isinstance(rules, Everything) else (rules,))
        for kind, profiles in part.profiles.items()
        for p in profiles
        if "card" in p.matches and matches(p.matches["card"], card.id)
    ]
    kinds = " and of ".join(rules.profiles)
    return [*rows, ""] if rows else [f"None: the fallbacks of {kinds} are taken.", ""]


def readers(book: Book, here: str) -> list[str]:
    used = readers_of(book.rules, ("card.",))
    return [", ".join(book.named(here, name) for name in used), ""] if used else []
