"""The names of an architecture file: the fields read so far, and `pattern[i]`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from . import expression as ex
from .arithmetic import entry
from .evaluation import Loop, Thunk
from .scope import Scope


class FieldScope(Scope):
    """Fields by name, and `pattern[i]`: the entry of a list or pattern at a position."""

    def item(self, node: ex.Item) -> Thunk:
        if node.id in self.flags and node.var in self.flags:
            return self.position(
                ex.Position(node.at, node.id, ex.Name(node.at, node.var)),
                self.name(ex.Name(node.at, node.var)),
            )
        return super().item(node)

    def items(self, loop: ex.Loop) -> Callable[[Any, Loop], Sequence[Any]]:
        if loop.of is None and loop.source not in self.flags:
            raise self.unknown(loop.source, loop.at)
        return super().items(loop)

    def position(self, node: ex.Position, index: Thunk) -> Thunk:
        if node.id not in self.flags:
            raise self.unknown(node.id, node.at)
        return lambda run, loop: entry(node.id, run.flag(node.id), index(run, loop))
