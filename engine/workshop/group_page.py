"""Layers, blocks and their parts as Markdown, for the pages of architecture files and of blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .markdown import code, link, plain, table

PARTS: Mapping[str, tuple[str, Sequence[tuple[str, str]]]] = {  # section to head, keys with heads
    "modules": (
        "weight matrix",
        (
            ("kind", "kind"),
            ("role", "role"),
            ("d_in", "input width"),
            ("d_out", "output width"),
            ("bias", "bias"),
            ("copies", "how many"),
            ("instances", "built"),
            ("when", "when"),
        ),
    ),
    "parameters": ("other parameter", (("part", "is"), ("count", "elements"), ("when", "when"))),
    "caches": (
        "cache",
        (
            ("per_token", "elements of a token"),
            ("window", "tokens kept at most"),
            ("fixed", "fixed elements"),
            ("fixed_fp32", "fixed elements in fp32"),
            ("when", "when"),
        ),
    ),
}


def filled(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table without the columns in which no row says anything."""
    kept = [i for i in range(len(heads)) if i == 0 or any(row[i] for row in rows)]
    return table([heads[i] for i in kept], [[row[i] for i in kept] for row in rows])


def word(entry: Mapping[str, Any], key: str) -> str:
    """An expression of an entry as code; nothing where it has none."""
    value = entry.get(key, "")
    return code(str(value).lower() if isinstance(value, bool) else str(value))


def parts(holder: Mapping[str, Any]) -> list[str]:
    """The weight matrices, other parameters, caches and sums of a block or group."""
    lines: list[str] = []
    for section, (head, keys) in PARTS.items():
        rows = [
            (word(entry, "name"), *(word(entry, key) for key, _ in keys))
            for entry in holder.get(section, ())
        ]
        lines += filled((head, *(shown for _, shown in keys)), rows)
    adds = holder.get("adds", {})
    return lines + table(("adds up over a layer", ""), [(code(n), word(adds, n)) for n in adds])


def groups(here: str, entries: Sequence[Mapping[str, Any]]) -> list[str]:
    """Each group of a section, one after the other."""
    return [line for entry in entries for line in group(here, entry)]


def group(here: str, entry: Mapping[str, Any]) -> list[str]:
    """Equal layers: how many, their fields, their blocks, and what they have of their own."""
    rows = []
    for used in entry.get("blocks", ()):
        used = {"use": used} if isinstance(used, str) else used
        given = [
            code(f"{name} = {text}".lower() if isinstance(text, bool) else f"{name} = {text}")
            for name, text in used.get("set", {}).items()
        ]
        name = str(used["use"])
        rows.append(
            (
                link(here, f"profiles/blocks/{name}.md", code(name)),
                word(used, "at"),
                word(used, "when"),
                ", ".join(given),
            )
        )
    fields = entry.get("fields", {})
    return [
        headline(entry),
        "",
        *table(("field of the layer", "is"), [(code(n), word(fields, n)) for n in fields]),
        *filled(("block", "below", "when", "with"), rows),
        *parts(entry),
    ]


def headline(entry: Mapping[str, Any]) -> str:
    """`**Vision layers** (vision): `vision_layers` of them, when `...`.`"""
    title = f"**{plain(str(entry['title']))}**" if "title" in entry else ""
    title += f" ({plain(str(entry['tower']))})" if "tower" in entry else ""
    facts = [f"{word(entry, 'count')} layers" if "count" in entry else "once"]
    facts += [f"built one by one as {word(entry, 'each')}"] if "each" in entry else []
    facts += [f"when {word(entry, 'when')}"] if "when" in entry else []
    text = ", ".join(facts)
    return f"{title}: {text}." if title else f"{text[:1].upper()}{text[1:]}."
