"""Generated pages on disk: which differ, which are left over from files that are gone."""

from __future__ import annotations

import os
from collections.abc import Mapping

from .copying import write

MADE = "Made by `fitcheck rules docs`"  # stands at the beginning of every page and schema


def differing(pages: Mapping[str, str], folder: str) -> dict[str, str]:
    """The pages that are missing below a folder or read differently; line ends do not count."""
    return {n: text for n, text in pages.items() if text_of(os.path.join(folder, n)) != text}


def text_of(path: str) -> str | None:
    """The text of a page; None where there is no such file."""
    try:
        with open(path, encoding="utf-8") as handle:
            return handle.read()
    except FileNotFoundError:
        return None


def left_over(pages: Mapping[str, str], folder: str) -> list[str]:
    """
    Generated files that no page accounts for, in the subfolders that pages lie in.

    Only files that say of themselves that they are generated: the folder may be anybody's.
    """
    found = []
    for inner in sorted({os.path.dirname(name) for name in pages} - {""}):
        place = os.path.join(folder, inner)
        names = sorted(os.listdir(place)) if os.path.isdir(place) else []
        left = [n for n in names if n.endswith((".md", ".json")) and f"{inner}/{n}" not in pages]
        found += [f"{inner}/{name}" for name in left if made_here(os.path.join(place, name))]
    return found


def made_here(path: str) -> bool:
    """Whether a file begins as generated ones do."""
    try:
        with open(path, "rb") as handle:
            return MADE.encode() in handle.read(100)
    except OSError:
        return False


def bring_up_to_date(pages: Mapping[str, str], folder: str) -> tuple[list[str], list[str]]:
    """Write the pages that differ, remove those left over; returns the names of both."""
    stale, gone = differing(pages, folder), left_over(pages, folder)
    if stale:
        write({name: text.encode() for name, text in stale.items()}, folder)
    for name in gone:
        os.remove(os.path.join(folder, name))
    return list(stale), gone
