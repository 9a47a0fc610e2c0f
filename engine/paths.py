"""Where the bundled data folders are, in a wheel as in a source checkout."""

from __future__ import annotations

import os
from collections.abc import Iterator

from .errors import FitcheckError


def data_folder(name: str) -> str:
    """Absolute path of a bundled data folder, such as "gpus" or "profiles/models".

    The data folders lie beside `engine` in an installed package, in the link tree of an editable
    install and at the top of the repository alike, so one step up is right for all of them. Links
    are not resolved, and `importlib.resources` is not used: importing it costs more than reading
    a file. Raises FitcheckError where the folder is missing, which means a damaged installation.
    """
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    folder = os.path.join(package, *name.split("/"))
    if not os.path.isdir(folder):
        raise FitcheckError(
            f"The bundled folder {name!r} is missing (looked for {folder}); reinstall fitcheck."
        )
    return folder


def bundled_root() -> str:
    """The folder that holds formulas/, gpus/ and profiles/."""
    return os.path.dirname(data_folder("formulas"))


def rule_files(folder: str) -> Iterator[tuple[str, str]]:
    """(stem, path) of the YAML files in a folder, by name; none where there is no such folder."""
    if os.path.isdir(folder):
        with os.scandir(folder) as entries:
            found = sorted((entry.name, entry) for entry in entries)
        for name, entry in found:
            if name.endswith((".yaml", ".yml")) and entry.is_file():
                yield name.rsplit(".", 1)[0], entry.path
