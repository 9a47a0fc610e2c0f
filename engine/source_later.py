"""A rule file that is only read when somebody asks for its text or for a place in it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from .errors import Mark

if TYPE_CHECKING:
    from .errors import Problem
    from .yaml_problems import Path
    from .yaml_source import Source


class MarkLater(Mark):
    """A place that is looked up in its file when somebody asks for line or column."""

    def __init__(self, path: str, find: Callable[[], Mark]) -> None:
        self.__dict__.update(path=path, _find=find)

    def __getattr__(self, name: str) -> Any:
        if name not in ("line", "column"):
            raise AttributeError(name)
        found = self.__dict__["_find"]()
        self.__dict__.update(line=found.line, column=found.column)
        return self.__dict__[name]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mark) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash((self.path, self.line, self.column))


class SourceLater:
    """
    Stands for a `Source` whose `data` may be known already.

    `path` is the name in messages; `file` says where it lies, without it below the bundled root.
    `head` are a few of its fields, known before `later()` gives the whole.
    """

    def __init__(
        self,
        path: str,
        data: Any = None,
        file: str | None = None,
        head: Mapping[str, Any] | None = None,
        later: Callable[[], Any] | None = None,
    ) -> None:
        self.path, self._file, self._head, self._later = path, file, head, later
        if data is not None:
            self.__dict__["data"] = data

    @property
    def head(self) -> Mapping[str, Any]:
        """The fields that are known without reading the file, or all of them."""
        known: Mapping[str, Any] = self.data if self._head is None else self._head
        return known

    @cached_property
    def _source(self) -> Source:
        from .paths import bundled_root
        from .yaml_source import read

        file = self._file or os.path.join(bundled_root(), *self.path.split("/"))
        return read(file, self.path)

    @cached_property
    def data(self) -> Any:
        return self._source.data if self._later is None else self._later()

    @property
    def text(self) -> str:
        return self._source.text

    def mark(self, path: Path = ()) -> Mark:
        return MarkLater(self.path, lambda: self._source.mark(path))

    def key_mark(self, path: Path) -> Mark:
        return MarkLater(self.path, lambda: self._source.key_mark(path))

    def inside(self, path: Path, offset: int) -> Mark:
        return self._source.inside(path, offset)

    def problem(self, code: str, name: str, mark: Mark, message: str) -> Problem:
        return self._source.problem(code, name, mark, message)


def head_of(source: Source) -> Mapping[str, Any]:
    """What is known of a file without reading all of it."""
    known: Mapping[str, Any] = source.head if isinstance(source, SourceLater) else source.data
    return known
