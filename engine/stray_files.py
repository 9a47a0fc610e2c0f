"""Files of an overlay folder that look like rule files and lie where nothing reads them."""

from __future__ import annotations

import os
from collections.abc import Sequence

from .loading import Roots, files_of, rule_folders

DEEPEST, MOST = 3, 500  # somebody's home may be an overlay


def not_read(folders: Sequence[str]) -> list[str]:
    """
    YAML files of overlay folders that are not read: in a folder with another name, with an ending
    in capitals, or a link that leads nowhere.
    """
    found: list[str] = []
    for folder in folders:
        roots: Roots = [(folder, True)]
        read = {
            path for place in rule_folders(roots) for path, *_ in files_of(roots, place).values()
        }
        for seen, (place, inner, names) in enumerate(os.walk(folder)):
            depth = place[len(folder) :].count(os.sep)
            inner[:] = sorted(n for n in inner if n[0] != "." and depth < DEEPEST)
            if seen > MOST or len(found) > MOST:
                break
            paths = (os.path.join(place, name) for name in sorted(names))
            found += [p for p in paths if p.lower().endswith((".yaml", ".yml")) and p not in read]
    return found[:MOST]


def says(path: str) -> str:
    """The sentence about one of them."""
    return (
        f"{path} is not read: rule files lie in formulas/, gpus/ or profiles/KIND/, as NAME.yaml."
    )
