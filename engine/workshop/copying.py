"""Writing rule files into a person's folder: all of them or none, and never over theirs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence

from ..errors import FitcheckError, InputProblem
from ..loading import bundled_root, files_of, rule_folders
from ..rules import Rules
from .index import find

NOT_OVERLAID = ("profiles/models",)  # the catalogue is read from the package alone


def bundled_files(rules: Rules, ids: Sequence[str] = ()) -> dict[str, str]:
    """
    Bundled rule files by their place, such as `formulas/total.yaml`.

    Parameters
    ----------
    rules : Rules
        The bundled rules, in which ids are looked up.
    ids : sequence of str
        Ids, names such as `overhead/default` or aliases of cards; all files where there is none.

    Raises
    ------
    InputProblem
        An id that is unknown or that several files have.
    """
    if ids:
        found = [find(rules, text) for text in ids]
        return {f"{e.folder}/{os.path.basename(e.path)}": e.path for e in found}
    roots = [(bundled_root(), False)]
    folders = [f for f in rule_folders(roots) if f not in NOT_OVERLAID]
    return {
        f"{folder}/{os.path.basename(path)}": path
        for folder in folders
        for path, _, _ in files_of(roots, folder).values()
    }


def eject(files: Mapping[str, str], target: str, force: bool = False) -> list[str]:
    """
    Copy files into a folder under their places; returns the paths written.

    Everything is copied beside its place first and moved when all of it is there, so that a full
    disk leaves the folder as it was. Raises `InputProblem` where a file is there already and
    `force` is not given.
    """
    taken = [place for place in files if os.path.lexists(os.path.join(target, place))]
    if taken and not force:
        rest = f" and {len(taken) - 3} more" if len(taken) > 3 else ""
        raise InputProblem(
            f"{target} already has {', '.join(taken[:3])}{rest}. Nothing was written; --force "
            "replaces them, or name a new folder."
        )
    contents = {place: _bytes(path) for place, path in files.items()}
    return write(contents, target)


def _bytes(path: str) -> bytes:
    with open(path, "rb") as handle:
        return handle.read()


def write(contents: Mapping[str, bytes], target: str) -> list[str]:
    """Write files below a folder, each whole or not at all; returns their paths."""
    if os.path.lexists(target) and not os.path.isdir(target):
        raise InputProblem(f"{target} is a file; a folder is needed.")
    made = _missing(target)
    os.makedirs(target, exist_ok=True)
    staging = os.path.join(target, f".fitcheck-{os.getpid()}")
    done = False
    try:
        for place, content in contents.items():
            path = os.path.join(staging, place)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "xb") as handle:
                handle.write(content)
        for place in contents:
            path = os.path.join(target, place)
            if os.path.isdir(path):
                raise FitcheckError(f"{path} is a folder; a file belongs there.")
            os.makedirs(os.path.dirname(path), exist_ok=True)
        for place in contents:
            os.replace(os.path.join(staging, place), os.path.join(target, place))
        done = True
    finally:
        shutil.rmtree(staging, ignore_errors=True)
        if not done and made:
            shutil.rmtree(made, ignore_errors=True)
    return [os.path.join(target, place) for place in contents]


def _missing(target: str) -> str:
    """The topmost folder of a path that is not there yet; empty where all are."""
    found, path = "", os.path.abspath(target)
    while not os.path.lexists(path):
        found, path = path, os.path.dirname(path)
    return found
