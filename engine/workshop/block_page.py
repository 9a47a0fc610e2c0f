"""The page of a block: a part that architecture files put into their layers or around them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..architecture import Architecture
from ..checks.composition_checks import block_names
from ..composing import GROUPS
from ..rules import Rules
from ..yaml_source import Source
from .book import Book
from .group_page import parts, word
from .markdown import code, link, origin, page, plain, section, sentence, table


def block_page(book: Book, name: str, source: Source, overlay: bool) -> str:
    """One block: its arguments, what it is made of, and who uses it."""
    here, data = f"profiles/blocks/{name}.md", source.data
    defaults = data.get("defaults", {})
    given = [(code(n), word(defaults, n)) for n in defaults]
    fields = sorted(block_names(source) - set(defaults))
    below = f", below {word(data, 'at')}" if "at" in data else ""
    files = [
        link(here, f"profiles/architectures/{a.id}.md", code(a.id)) for a in users(book.rules, name)
    ]
    lines = [
        f"# {plain(str(data.get('title', name)))}",
        "",
        f"{code(name)}, a block from {book.file(here, source.mark(), overlay)}{below}. "
        "Architecture files name it under `blocks`.",
        "",
        *section("Arguments", table(("argument", "where nothing else says so"), given)),
        *section("Fields it reads", [", ".join(map(code, fields)), ""] if fields else []),
        *section("What it is made of", parts(data)),
        *section("Evidence", evidence(here, data.get("evidence", {}))),
        *section("Used by", [", ".join(files), ""] if files else []),
    ]
    return page(lines)


def users(rules: Rules, name: str) -> list[Architecture]:
    """The architecture files that name a block."""
    return [a for a in rules.architectures if name in blocks_of(a.own)]


def blocks_of(data: Mapping[str, Any]) -> list[str]:
    """The blocks that a file itself names, each once."""
    entries = [e for kind in GROUPS for g in data.get(kind, ()) for e in g.get("blocks", ())]
    return list(dict.fromkeys(e if isinstance(e, str) else e["use"] for e in entries))


def evidence(here: str, entries: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """What a file rests on, as it says."""
    rows = [
        (
            plain(name),
            plain(str(entry.get("kind", ""))),
            sentence(str(entry.get("says", ""))),
            origin(here, str(entry.get("where", ""))),
        )
        for name, entry in entries.items()
    ]
    return table(("name", "kind", "what it says", "where"), rows)
