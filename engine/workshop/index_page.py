"""docs/README.md: from a printed number to its page, and a list of every page."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from ..cards import Card
from ..formula import Formula
from ..yaml_source import read
from .book import Book
from .card_page import grade, mib
from .codes import Page
from .markdown import code, link, page, plain, section, sentence, table

HERE = "README.md"
_FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "printed.yaml")

HEAD = """\
# Documentation

Every number that fitcheck prints comes from a rule file, and every rule file has a page here with
its formula, its reasons and its evidence. `fitcheck MODEL ... --derive ID` prints the same with
your numbers. From a number to its page: the two tables below.
"""
GUIDES = """\
## Guides

- [Tutorial](tutorial.md): add an optimizer and a component, in YAML only.
- [The formula language](language.md): every key of a file, and what an expression may hold.
- [The JSON of an estimate](json.md): its keys and types.
- [The path of a number](architecture.md): which module does what.
- [Glossary](glossary.md): symbols, quantities, flags, phases.
- [Golden appendix](golden.md): every number of the reference configurations, exact to the byte.
- [Dependency graph](graph.svg): which quantity reads which; each box leads to its page.
"""
EDITOR = """\
## In an editor

[schema/](schema) holds a JSON Schema for each kind of rule file: the schemas that
`fitcheck rules lint` uses, with the flags, phases, units and quantities that exist as completions.
An editor with a YAML language server (in VS Code the extension *YAML*) completes fields and says
what they mean, if the first line of a file names its schema, absolute or relative to the file:

```yaml
# yaml-language-server: $schema=../docs/schema/formula.json
```

Formula files take `formula.json`; `flags.yaml`, `units.yaml`, `phases.yaml`, `lists.yaml` and
`hints.yaml` the schema of their own name; cards `card.json`, profiles `profile.json`, statuses
`status.json`, architectures `architecture.json`. Outside a checkout,
`fitcheck rules docs --to DIR` writes the schemas and all pages into a folder.
"""
CHECKED = """\
This page and those it lists below are generated: `fitcheck rules docs` writes them, and
`fitcheck rules docs --check` says which are out of date.
"""


def index_page(book: Book, cards: Sequence[Card], codes: Mapping[str, Page]) -> str:
    """The page as Markdown."""
    data = read(_FILE, "engine/workshop/printed.yaml").data
    rules = book.rules
    others = sorted(
        (f for f in rules.formulas.values() if not f.live), key=lambda f: f.id.casefold()
    )
    lines = [
        HEAD,
        *section("Find a number of the table", terminal(book, data["terminal"])),
        *section("Find a key of the JSON", json_keys(book, data["json"])),
        GUIDES,
        EDITOR,
        CHECKED,
        *section("Components", quantities(book, list(rules.components))),
        *section("Quantities", quantities(book, others)),
        *section("Verdicts", verdicts(book)),
        *section("Profiles", profiles(book)),
        *section("Architectures", architectures(book)),
        *section("Cards", card_table(cards)),
        *section("Lint codes", code_table(codes)),
    ]
    return page(lines)


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
    for found in rules.architectures:
        for name in found.data.get("fields", {}):
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


def quantities(book: Book, formulas: Sequence[Formula]) -> list[str]:
    rows = [
        (link(HERE, book.quantity(f.id), code(f.id)), plain(f.title), sentence(f.counts))
        for f in formulas
    ]
    return table(("id", "title", "what it counts"), rows)


def verdicts(book: Book) -> list[str]:
    rows = [
        (
            link(HERE, f"profiles/statuses/{s.id}.md", code(s.id)),
            plain(s.title),
            str(s.exit_code),
        )
        for s in book.rules.statuses
    ]
    return table(("id", "printed", "exit status"), rows)


def profiles(book: Book) -> list[str]:
    rows = [
        (
            link(HERE, f"profiles/{kind}/{p.id}.md", code(f"{kind}/{p.id}")),
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
            plain(str(a.data.get("title", ""))),
            "refused" if "refuse" in a.data else "modelled",
        )
        for a in book.rules.architectures
    ]
    return table(("architecture", "", ""), rows)


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
