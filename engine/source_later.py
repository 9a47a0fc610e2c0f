"""A bundled rule file that is only read when somebody asks for its text or for a place in it."""

from __future__ import annotations

import os
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .errors import Mark, Problem
    from .yaml_problems import Path
    from .yaml_source import Source


class SourceLater:
    """Stands for a `Source` whose `data` may be known already."""

    def __init__(self, path: str, data: Any = None) -> None:
        self.path = path
        if data is not None:
            self.__dict__["data"] = data

    @cached_property
    def _source(self) -> Source:
        from .loading import bundled_root
        from .yaml_source import read

        return read(os.path.join(bundled_root(), *self.path.split("/")), self.path)

    @cached_property
    def data(self) -> Any:
        return self._source.data

    @property
    def text(self) -> str:
        return self._source.text

    def mark(self, path: Path = ()) -> Mark:
        return self._source.mark(path)

    def key_mark(self, path: Path) -> Mark:
        return self._source.key_mark(path)

    def inside(self, path: Path, offset: int) -> Mark:
        return self._source.inside(path, offset)

    def problem(self, code: str, name: str, mark: Mark, message: str) -> Problem:
        return self._source.problem(code, name, mark, message)
