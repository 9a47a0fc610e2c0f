"""The names of an architecture file: the fields read so far, and `pattern[i]`."""

from __future__ import annotations

from typing import Any

from . import expression as ex
from .evaluation import EvaluationError, Thunk
from .scope import Scope
from .template import show


class FieldScope(Scope):
    """Fields by name, and `pattern[i]`: the entry of a list or pattern at a position."""

    def item(self, node: ex.Item) -> Thunk:
        if node.id in self.flags and node.var in self.flags:
            return self.position(
                ex.Position(node.at, node.id, ex.Name(node.at, node.var)),
                self.name(ex.Name(node.at, node.var)),
            )
        return super().item(node)

    def position(self, node: ex.Position, index: Thunk) -> Thunk:
        if node.id not in self.flags:
            raise self.unknown(node.id, node.at)
        return lambda run, loop: entry(node.id, run.flag(node.id), index(run, loop))


def entry(name: str, values: Any, index: Any) -> Any:
    """`values[index]`, or `EvaluationError` where there is no such entry."""
    if not isinstance(values, (tuple, str)):
        raise EvaluationError(f"`{name}` is no list or pattern")
    if not isinstance(index, int) or not 0 <= index < len(values):
        raise EvaluationError(f"`{name}` has {len(values)} entries and no entry {show(index)}")
    return values[index]
