"""Build hook: puts the folders of the repository together as the package `fitcheck`.

The repository keeps engine/, cli/, formulas/ ... at its top; installed, they are fitcheck.engine,
fitcheck.cli, and so on. For a wheel, `sources` in pyproject.toml renames the folders, and this hook
adds the files of the package itself, which lie beside it. For an editable install it makes
build/dev/fitcheck/, a folder of links into the checkout, so that an edited or a new file counts at
once. Nothing is copied: a copy would go stale without a word.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGE = "fitcheck"
PACKAGE_FILES = ("__init__.py", "__main__.py", "py.typed")


class PackageHook(BuildHookInterface[Any]):
    """Hatchling finds this class by its base."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Prepare one wheel; `version` is "editable" or "standard".

        Raises FileNotFoundError for a folder that `sources` names and the checkout lacks: without
        this, the wheel would be built without it.
        """
        root = Path(self.root)
        files = {f"{PACKAGE}/{name}": root / "engine/_fitcheck" / name for name in PACKAGE_FILES}
        sources = self.build_config.target_config["sources"]
        folders = {installed: root / folder for folder, installed in sources.items()}
        for source in (*files.values(), *folders.values()):
            if not source.exists():
                raise FileNotFoundError(f"{source} is missing: the package needs it")
        if version == "editable":
            for name, source in (files | folders).items():
                _link(root / "build/dev" / name, source)
        else:
            files |= _generated(root)
            build_data["force_include"] |= {str(source): name for name, source in files.items()}


def _generated(root: Path) -> dict[str, Path]:
    """The rule files as Python modules: an installed fitcheck starts without parsing YAML."""
    sys.path.insert(0, str(root))
    try:
        codegen = importlib.import_module("engine.codegen")
    finally:
        sys.path.remove(str(root))
    folder = root / "build/gen"
    folder.mkdir(parents=True, exist_ok=True)
    paths = [Path(path) for path in codegen.write_modules(str(folder), str(root))]
    return {f"{PACKAGE}/engine/{path.name}": path for path in paths}


def _link(link: Path, target: Path) -> None:
    """Make `link` lead to `target`, which exists; a link that does so already is left alone."""
    link.parent.mkdir(parents=True, exist_ok=True)
    if os.path.lexists(link):
        if link.exists() and link.samefile(target):
            return
        link.unlink()
    if sys.platform != "win32":
        link.symlink_to(os.path.relpath(target, link.parent))
    elif target.is_dir():  # a junction: unlike a symbolic link, it needs no privilege
        subprocess.run(["cmd", "/c", "mklink", "/J", str(link), str(target)], check=True)
    else:
        os.link(target, link)
