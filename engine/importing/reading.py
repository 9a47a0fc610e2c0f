"""A file or a command of another program, with the files that it names, as one configuration."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..errors import InputProblem
from ..record import record, replace
from .applying import Imported, Unpriced, apply, merged
from .document import Document, read_document
from .mapping import Importer
from .recognising import recognised, signs

if TYPE_CHECKING:
    from ..flags import FlagSet

DEPTH = 3  # files that files name


@record
class Configuration:
    """What was read, why it was taken for that format, and what it says."""

    document: Document
    why: str
    imported: Imported


def read_configuration(
    document: Document,
    known: Mapping[str, Importer],
    flags: FlagSet,
    named: str | None = None,
    typed: Mapping[str, Any] | None = None,
) -> Configuration:
    """
    A document as flags, with the parts that it names where they lie beside it.

    `named` is the format where a person gave it, `typed` the flags that were given beside it.
    Raises `InputProblem` with the place of what is wrong.
    """
    importer, why = recognised(document, known, named)
    imported = apply(document, importer, flags)
    for _ in range(DEPTH):
        if not imported.follow:
            break
        (key, path), *rest = imported.follow
        imported = replace(imported, follow=tuple(rest))
        imported = joined(document, imported, key, beside(document, path), known, flags)
    return Configuration(document, why, imported.without(typed or {}))


def joined(
    document: Document,
    imported: Imported,
    key: str,
    path: str,
    known: Mapping[str, Importer],
    flags: FlagSet,
) -> Imported:
    """A configuration with a file that it names; one that is not there is told as unread."""
    item = document.items[key]
    if not os.path.isfile(path):
        says = f"the file {path} is not there, so nothing of it is known"
        return replace(imported, unpriced=(*imported.unpriced, Unpriced(item, says, "either")))
    part = read_document(path)
    parts = {n: i for n, i in known.items() if i.part and signs(part, i)}
    if not parts:
        raise InputProblem(f"{path}, which {document.path} names: not a file that is known here.")
    chosen, _ = recognised(part, parts, None)
    elsewhere = {n: replace(item, path=path) for n, item in part.items.items()}
    part = replace(part, items=elsewhere)
    return merged(imported, apply(part, chosen, flags, imported.flags))


def beside(document: Document, named: str) -> str:
    """The path of a file that a document names, as its program would find it from its folder."""
    folder = os.path.dirname(document.path)
    here = os.path.join(folder, named)
    if os.path.isfile(here) or os.path.isabs(named):
        return here
    return next(
        (p for p in (named, os.path.join(folder, os.path.basename(named))) if os.path.isfile(p)),
        here,
    )
