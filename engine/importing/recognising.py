"""Which program a document is for."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase

from ..errors import InputProblem
from ..suggest import suggest
from .document import Document
from .mapping import COMMAND, Importer


def recognised(
    document: Document, known: Mapping[str, Importer], named: str | None
) -> tuple[Importer, str]:
    """
    The importer of a document, and why it is that one.

    `named` is the format that a person gave. Raises `InputProblem` where none fits, or two do.
    """
    if named is not None:
        return named_importer(known, named), "as --format says"
    started = document.items.get(COMMAND)
    if started is not None:
        chosen = next(i for i in known.values() if started.value in i.commands)
        return chosen, f"`{started.value}` starts it"
    found_in = {name: signs(document, importer) for name, importer in known.items()}
    scored = sorted((len(found), name, found) for name, found in found_in.items() if found)[::-1]
    if not scored:
        formats = ", ".join(known)
        raise InputProblem(
            f"{document.path}: no training configuration of a program that is known here. Known "
            f"are {formats}; --format NAME takes one of them anyway."
        )
    if len(scored) > 1 and scored[0][0] == scored[1][0]:
        both = " or ".join(name for _, name, _ in scored[:2])
        raise InputProblem(
            f"{document.path}: this may be for {both}. Say which with --format {scored[0][1]}."
        )
    _, name, found = scored[0]
    return known[name], f"it has {', '.join(found[:4])}"


def named_importer(known: Mapping[str, Importer], named: str) -> Importer:
    """The importer that --format names; raises `InputProblem` for another word."""
    if named not in known:
        formats = ", ".join(known)
        raise InputProblem(f"--format {named}: known are {formats}.{suggest(named, known)}")
    return known[named]


def signs(document: Document, importer: Importer) -> list[str]:
    """The keys by which a document is one of an importer; empty where it is none."""
    if not all(has(document, key) for key in importer.all):
        return []
    if any(has(document, key) for key in importer.none):
        return []
    found = [key for key in importer.any if has(document, key)]
    return [*importer.all, *found] if found or not importer.any else []


def has(document: Document, key: str) -> bool:
    """Whether a document has a key, or one of a pattern."""
    if "*" in key:
        return any(fnmatchcase(name, key) for name in document.items)
    return key in document.items
