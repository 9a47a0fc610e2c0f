"""`fitcheck --help` as it was laid out last; laying it out takes click and half of a start.

The text is kept in the user's cache folder beside what it was made from: the rule files, the
command line's own files, click, the width and the language. After any change it is laid out anew.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import sys
from collections.abc import Callable
from typing import Any

from fitcheck.cli.output import write
from fitcheck.engine import data_cache
from fitcheck.engine.modes import modes_of
from fitcheck.engine.paths import bundled_root

FOLDERS = ("formulas", "profiles/statuses", "cli", "engine")
LANGUAGE = ("LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG")


def show(lay_out: Callable[[], int]) -> int:
    """Print the help; `lay_out` prints it where none is kept, and its exit status is returned."""
    if os.environ.get(data_cache.REFUSED):
        return lay_out()
    root = bundled_root()
    path = data_cache.file_for(os.path.join(root, "help"))
    key = made_from(root)
    kept = data_cache.load(path)
    if isinstance(kept, dict) and kept.get("key") == key and isinstance(kept.get("text"), str):
        write(kept["text"])
        return 0
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        status = lay_out()
    write(printed.getvalue())
    if status == 0:
        data_cache.store(path, {"key": key, "text": printed.getvalue()})
    return status


def made_from(root: str) -> list[Any]:
    """Whatever can change the text."""
    found = importlib.util.find_spec("click")
    folders = [*FOLDERS, *(f"formulas/{mode}" for mode in modes_of([(root, False)]))]
    files = [entry for folder in folders for entry in _files(os.path.join(root, folder))]
    click = data_cache.stamp(found.origin) if found is not None and found.origin else []
    words = [os.environ.get(name, "") for name in LANGUAGE]
    return [files, click, words, _columns(), sys.version]


def _files(folder: str) -> list[list[Any]]:
    if not os.path.isdir(folder):
        return []
    return [
        [name, *data_cache.stamp(os.path.join(folder, name))]
        for name in sorted(os.listdir(folder))
        if name.endswith((".py", ".yaml", ".yml"))
    ]


def _columns() -> list[Any]:
    """What the width of the text follows from: COLUMNS, and the terminal's own."""
    try:
        terminal = os.get_terminal_size(sys.__stdout__.fileno()).columns if sys.__stdout__ else 0
    except (OSError, ValueError, AttributeError):
        terminal = 0
    return [os.environ.get("COLUMNS", ""), terminal]
