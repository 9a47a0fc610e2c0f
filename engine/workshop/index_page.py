"""docs/README.md: from a printed number to its page, and a list of every page."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..cards import Card
from ..formula import Formula
from ..rules import Rules
from ..yaml_source import read
from .book import Book, graph_of
from .card_page import grade, mib
from .codes import Page
from .markdown import code, link, page, plain, sentence, table

HERE = "README.md"
_FOLDER = os.path.dirname(os.path.abspath(__file__))


def index_page(book: Book, cards: Sequence[Card], codes: Mapping[str, Page]) -> str:
    """The page as Markdown: `index.md` with its tables filled in."""
    data = read(os.path.join(_FOLDER, "printed.yaml"), "engine/workshop/printed.yaml").data
    rules = book.rules
    others = sorted(
        (f for f in rules.formulas.values() if not f.live), key=lambda f: f.id.casefold()
    )
    tables = {
        "terminal": terminal(book, data["terminal"]),
        "json": json_keys(book, data["json"]),
        "components": quantities(book, list(rules.components)),
        "quantities": quantities(book, others),
        "verdicts": verdicts(book),
        "profiles": profiles(book),
        "architectures": architectures(book),
        "blocks": blocks(book),
        "cards": card_table(cards),
        "codes": code_table(codes),
        "modes": [
            line for part in rules.modes.values() for line in mode_section(Book(part), rules)
        ],
    }
    with open(os.path.join(_FOLDER, "index.md"), encoding="utf-8") as handle:
        text = handle.read()
    return page([re.sub(r"^@(\w+)$", lambda m: "\n".join(tables[m[1]]), text, flags=re.M)])


def terminal(book: Book, entries: Sequence[Mapping[str, Any]]) -> list[str]:
    """What stands on the screen, from top to bottom."""
    rows = [
        (plain(f.title), "", link(HERE, book.quantity(f.id), code(f.id)))
        for f in book.rules.components
    ]
    split = 2  # the two lines above the components
    found = [pointed(book, e) for e in entries]
    rows = [*found[:split], *rows, *found[split:]]
    return table(("printed", "", "explained by"), [r for r in rows if r[2]])


def pointed(book: Book, entry: Mapping[str, Any]) -> tuple[str, str, str]:
    """One line of `printed.yaml`; quantities that an overlay took away are left out."""
    places = [place(book, str(at)) for at in entry["at"]]
    return (
        plain(str(entry["printed"])),
        plain(str(entry.get("says", ""))),
        ", ".join(p for p in places if p),
    )


def place(book: Book, at: str) -> str:
    if at.startswith("#"):
        return f"[{at[1:]}]({at})"
    if "." in at:
        return link(HERE, at, at.removeprefix("../"))
    return link(HERE, book.quantity(at), code(at)) if at in book.rules.formulas else ""


def json_keys(book: Book, entries: Sequence[Mapping[str, Any]]) -> list[str]:
    """Every key of an estimate by its dotted name."""
    rules = book.rules
    rows = [
        (code(key), plain(shown), link(HERE, book.quantity(f.id), code(f.id)))
        for f in sorted(rules.formulas.values(), key=lambda f: (f.order, f.id))
        for key, shown in f.json.items()
    ]
    fields: dict[str, list[str]] = {}
    extended = {a.own.get("extends") for a in rules.architectures}
    for found in rules.architectures:
        shared = found.id in extended and "extends" not in found.own
        for name in found.own.get("fields", {}) if shared else ():
            fields.setdefault(name, []).append(found.id)
    for name, files in fields.items():
        pages = [link(HERE, f"profiles/architectures/{i}.md", code(i)) for i in files]
        rows.append((code(f"model.{name}"), "", ", ".join(pages)))
    for flag in rules.flags.flags.values():
        if flag.json is not None:
            where = link(HERE, "glossary.md#flags", f"flag {code(flag.option)}")
            rows.append((code(f"training.{flag.json}"), "", where))
    for entry in entries:
        _, says, places = pointed(book, entry)
        names = ", ".join(code(n) for n in str(entry["printed"]).split(", "))
        rows.append((names, says, places))
    return table(("key", "shown in", "explained by"), [r for r in rows if r[2]])


def mode_section(book: Book, training: Rules) -> list[str]:
    """What a mode adds: its command, flags, quantities, keys of the JSON, verdicts and profiles."""
    rules = book.rules
    mode = rules.mode
    assert mode is not None
    mine = [f for f in rules.formulas.values() if f.id not in training.formulas]
    place = book.file(HERE, mode.formula.source.mark(), mode.formula.overlay)
    flags = [(code(f.option), plain(f.help)) for f in rules.flags.flags.values()]
    keys = [
        (code(key), plain(shown), link(HERE, book.quantity(f.id), code(f.id)))
        for f in sorted(mine, key=lambda f: (f.order, f.id))
        for key, shown in f.json.items()
    ]
    flag_keys = [code(f"{mode.block}.{f.json}") for f in rules.flags.flags.values() if f.json]
    return [
        f"### {plain(mode.title)}",
        "",
        f"{code(f'fitcheck {mode.command} MODEL ...')}, from {place}. In the JSON its flags are "
        f"{', '.join(flag_keys)}; further keys are those above that belong to no quantity of "
        f"training. [Which quantity reads which]({graph_of(rules)}).",
        "",
        *table(("flag", "meaning"), flags),
        *quantities(book, sorted(mine, key=lambda f: (not f.live, f.order, f.id))),
        *table(("key", "shown in", "explained by"), keys),
        *verdicts(book),
        *profiles(book),
    ]


def quantities(book: Book, formulas: Sequence[Formula]) -> list[str]:
    rows = [
        (link(HERE, book.quantity(f.id), code(f.id)), plain(f.title), sentence(f.counts))
        for f in formulas
    ]
    return table(("id", "title", "what it counts"), rows)


def verdicts(book: Book) -> list[str]:
    rows = [
        (
            link(HERE, f"{book.folder('statuses')}/{s.id}.md", code(s.id)),
            plain(s.title),
            str(s.exit_code),
        )
        for s in book.rules.statuses
    ]
    return table(("id", "printed", "exit status"), rows)


def profiles(book: Book) -> list[str]:
    rows = [
        (
            link(
                HERE,
                f"{book.folder(kind)}/{p.id}.md",
                code(f"{book.folder(kind).removeprefix('profiles/')}/{p.id}"),
            ),
            plain(p.title),
        )
        for kind, found in book.rules.profiles.items()
        for p in found
    ]
    return table(("profile", "for"), rows)


def architectures(book: Book) -> list[str]:
    rows = [
        (
            link(HERE, f"profiles/architectures/{a.id}.md", code(a.id)),
            plain(str(a.own.get("title", ""))),
            ", ".join(code(str(n)) for n in a.own.get("matches", {}).get("model_type", ())),
            "refused" if "refuse" in a.own else "modelled" if "matches" in a.own else "extended",
        )
        for a in book.rules.architectures
    ]
    return table(("architecture", "", "model_type", ""), rows)


def blocks(book: Book) -> list[str]:
    rows = [
        (
            link(HERE, f"profiles/blocks/{name}.md", code(name)),
            plain(str(source.data.get("title", ""))),
        )
        for name, source in book.rules.blocks.items()
    ]
    return table(("block", ""), rows)


def card_table(cards: Sequence[Card]) -> list[str]:
    rows = [
        (
            link(HERE, f"cards/{c.id}.md", code(c.id)),
            plain(c.title) + ("" if c.status == "stable" else f" ({c.status})"),
            f"{mib(c.usable)} of {mib(c.total)}",
            f"{grade(c, 'usable')}, {grade(c, 'total')}",
        )
        for c in cards
    ]
    return table(("card", "", "usable of total, MiB", "grades"), rows)


def code_table(codes: Mapping[str, Page]) -> list[str]:
    rows = [
        (
            link(HERE, f"codes/{p.code}.md", p.code),
            plain(p.title),
            ", ".join(code(n) for n in p.names),
        )
        for p in codes.values()
    ]
    return table(("code", "", "names in messages"), rows)
