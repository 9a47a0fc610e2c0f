"""How much overlay folders may hold, so that any folder gets its answer within a second."""

from __future__ import annotations

import os

from ..errors import Mark, Problem
from ..loading import Roots, files_of, profile_kinds, rule_folders
from ..yaml_source import MAX_BYTES

MAX_FILES = 1_200  # all bundled files that can be replaced are less than two thirds of it
MAX_TOTAL = 2_250_000  # bytes; all those files together have two thirds of it


def check_amount(roots: Roots) -> tuple[Problem, ...]:
    """F105: overlays of more files or bytes than anybody writes; none of them is read then."""
    overlays = [(root, overlay) for root, overlay in roots if overlay]
    if not overlays:
        return ()
    kinds = len(profile_kinds(overlays))
    if kinds > MAX_FILES:
        return (_too_many(os.path.join(overlays[0][0], "profiles")),)
    count, size = kinds, 0
    for folder in rule_folders(overlays):
        for path, said, _ in files_of(overlays, folder).values():
            count += 1
            size += _bytes(path)
            if count > MAX_FILES:
                return (_too_many(said),)
            if size > MAX_TOTAL:
                message = (
                    f"With this file the folders given as rules hold over {MAX_TOTAL:,} bytes. "
                    "None of them was read; leave out what you do not change."
                )
                return (Problem("F105", "too-large", Mark(said, 1, 1), message),)
    return ()


def _bytes(path: str) -> int:
    """The bytes that will be read of a file; none where it is too large by itself."""
    try:
        size = os.stat(path).st_size
    except OSError:
        return 0
    return size if size <= MAX_BYTES else 0


def _too_many(place: str) -> Problem:
    message = (
        f"The folders given as rules hold more than {MAX_FILES:,} files, counted up to here. "
        "None of them was read; leave out what you do not change."
    )
    return Problem("F105", "too-many", Mark(place, 1, 1), message)
