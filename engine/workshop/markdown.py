"""Pieces of Markdown pages: text that cannot turn into markup, tables, links between pages."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence

from ..template import split
from .written import MADE

_MARKUP = re.compile(r"([\\`*_\[\]<>|])")
_FILE = re.compile(r"\b(?:formulas|gpus|measurement|profiles)/[\w./-]*\w\.(?:jsonl|yaml|md)\b")
_COMMIT = re.compile(r"\b([\w.-]+/[\w.-]+)@([\w.-]+):([\w./-]+)(#L\d+(?:-L\d+)?)?")
_PAPER = re.compile(r"\barXiv:(\d{4}\.\d{4,5})\b")


def plain(text: str) -> str:
    """Text of a rule file in one line, with every character that Markdown reads made literal."""
    return _MARKUP.sub(r"\\\1", " ".join(text.split()))


def code(text: str) -> str:
    """Text in a code span, also inside a table."""
    line = " ".join(text.split())
    ticks = "``" if "`" in line else "`"
    pad = " " if "`" in line else ""
    return f"{ticks}{pad}{line}{pad}{ticks}".replace("|", "\\|") if line else ""


def sentence(text: str) -> str:
    """A sentence of a rule file; what it fills from a run is shown as the expression it is."""
    parts = [
        plain_part(part) if isinstance(part, str) else code("{" + part[0] + "}")
        for part in split(" ".join(text.split()))
    ]
    return "".join(parts)


def plain_part(text: str) -> str:
    return _MARKUP.sub(r"\\\1", text)


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], right: int = -1) -> list[str]:
    """A table, the column `right` set to the right; no lines where there are no rows."""
    if not rows:
        return []
    rules = ["---:" if i == right else ":---" for i in range(len(heads))]
    return [f"| {' | '.join(cells)} |" for cells in (heads, rules, *rows)] + [""]


def section(title: str, lines: Sequence[str]) -> list[str]:
    """A heading with its lines; nothing where there are none."""
    return [f"## {title}", "", *lines] if lines else []


def address(here: str, place: str) -> str:
    """The link from one page to another; both are places below docs/."""
    path, sign, part = place.partition("#")
    return posixpath.relpath(path, posixpath.dirname(here) or ".") + sign + part


def link(here: str, place: str, text: str) -> str:
    return f"[{text}]({address(here, place)})"


def origin(here: str, where: str) -> str:
    """Where evidence stands, with links to our files, to code at its commit, and to papers."""
    found: list[tuple[int, int, str]] = []
    for match in _COMMIT.finditer(where):
        repository, commit, path, lines = match.groups()
        url = f"https://github.com/{repository}/blob/{commit}/{path}{lines or ''}"
        found.append((*match.span(), f"[{plain(match[0])}]({url})"))
    for match in _PAPER.finditer(where):
        found.append((*match.span(), f"[{match[0]}](https://arxiv.org/abs/{match[1]})"))
    for match in _FILE.finditer(where):
        found.append((*match.span(), link(here, f"../{match[0]}", plain(match[0]))))
    shown, end = "", 0
    for start, stop, text in sorted(found):
        if start >= end:
            shown += plain_part(where[end:start]) + text
            end = stop
    return " ".join((shown + plain_part(where[end:])).split())


def page(lines: Sequence[str]) -> str:
    """The lines as a file: who made it, one empty line between parts, one newline at the end."""
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")
    return f"<!-- {MADE}; change the file that it comes from. -->\n\n{text}\n"
