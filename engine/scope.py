"""The names of one rule file, bound to where their values come from.

A `Scope` answers the compiler: given a name, a function of (run, loop) that fetches its value. The
run (`run.py`) holds flags, facts, lists and profiles; the loop holds the current list items.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from . import expression as ex
from .errors import FitcheckError
from .evaluation import CURRENT as CURRENT, Loop, Thunk
from .formula import Constant, Symbol, Table
from .suggest import suggest as suggest


class NameProblem(FitcheckError):
    """A name that the file does not declare, or does not use the way it is declared."""

    def __init__(self, code: str, name: str, message: str, at: int) -> None:
        super().__init__(message)
        self.code, self.name, self.message, self.at = code, name, message, at


class Scope:
    """Names a file declares: symbols, constants, tables, flags, other quantities."""

    def __init__(
        self,
        symbols: Mapping[str, Symbol],
        constants: Mapping[str, Constant],
        tables: Mapping[str, Table],
        flags: Collection[str],
        reads: Mapping[str, str | None],
        per: str | None = None,
        loops: Mapping[str, str | None] | None = None,
    ) -> None:
        self.symbols, self.constants, self.tables = symbols, constants, tables
        self.flags, self.reads, self.per = flags, reads, per
        self.loops: dict[str, str | None] = dict(
            loops or {}
        )  # loop variable -> list path, None for words

    def inside(self, tree: ex.Node) -> Scope:
        """This scope with the loop variables of `tree`, which are unique within an expression."""
        scope = type(self)(
            self.symbols, self.constants, self.tables, self.flags, self.reads, self.per, self.loops
        )
        for node in ex.walk(tree):
            for loop in node.loops if isinstance(node, ex.Fold) else ():
                scope.loops[loop.var] = scope.list_path(loop)
        return scope

    def declared(self) -> set[str]:
        return {*self.symbols, *self.constants, *self.tables, *self.flags, *self.reads}

    def list_path(self, loop: ex.Loop) -> str | None:
        """`layer_groups.modules` for `g.modules`; None where the loop runs over plain words."""
        if loop.of is not None:
            outer = self.loops.get(loop.of)
            if not outer:
                raise NameProblem(
                    "F201",
                    "unknown-symbol",
                    f"`{loop.of}` is no loop variable before `{loop.of}.{loop.source}`.",
                    loop.at,
                )
            return f"{outer}.{loop.source}"
        if loop.source in self.flags or loop.source in self.symbols:
            return None
        if self.per and self.has_list(f"{self.per}.{loop.source}"):
            return f"{self.per}.{loop.source}"
        return loop.source

    def has_list(self, path: str) -> bool:
        return any(s.list_path == path for s in self.symbols.values())

    def unknown(self, name: str, at: int) -> NameProblem:
        return NameProblem(
            "F201",
            "unknown-symbol",
            f"`{name}` is not declared under symbols, constants, tables, flags or "
            f"reads.{suggest(name, self.declared())}",
            at,
        )

    def name(self, node: ex.Name) -> Thunk:
        """A bare name."""
        name = node.id
        if name in self.loops:
            return lambda run, loop: loop[name]
        if name in self.symbols:
            return self._symbol(self.symbols[name], node.at)
        if name in self.constants:
            band = self.constants[name].band
            return lambda run, loop: band[run.band]
        if name in self.tables:
            return self._table(self.tables[name], node.at, None)
        if name in self.flags:
            return lambda run, loop: run.flag(name)
        if name in self.reads:
            per = self.reads[name]
            if per is None:
                return lambda run, loop: run.value(name)
            if per == self.per:
                return lambda run, loop: run.value_at(name, loop[CURRENT])
            raise NameProblem(
                "F210",
                "needs-index",
                f"`{name}` has a value for each of {per}: write "
                f"sum({name}[g] for g in {per}) or max(...).",
                node.at,
            )
        raise self.unknown(name, node.at)

    def _table(self, table: Table, at: int, var: str | None) -> Thunk:
        """A cell by flags, or by fields of a list item: `bits[m]` with an axis that is one."""
        if all(axis in self.flags for axis in table.axes):
            return lambda run, loop: run.cell(table)
        axes = [
            self.item(ex.Item(at, axis, var))
            if var is not None and axis in self.symbols and self.symbols[axis].list_path
            else self.name(ex.Name(at, axis))
            for axis in table.axes
        ]
        return lambda run, loop: run.cell(table, tuple(axis(run, loop) for axis in axes))

    def _symbol(self, symbol: Symbol, at: int) -> Thunk:
        path, record, field = symbol.list_path, symbol.source.partition(".")[0], symbol.field
        if path is not None:
            if path == self.per:
                return _field(CURRENT, field, symbol.source)
            raise NameProblem(
                "F210",
                "needs-index",
                f"`{symbol.name}` is a field of {path}: write {symbol.name}[g] with "
                "g from a `for g in ...`.",
                at,
            )
        if record == "flags":
            return lambda run, loop: run.flag(field)
        if record == "profiles":
            kind = symbol.source.split(".")[1]
            return lambda run, loop: run.profile_value(kind, field)
        return lambda run, loop: run.fact(record, field)

    def item(self, node: ex.Item) -> Thunk:
        """`name[g]`."""
        name, var = node.id, node.var
        if var not in self.loops:
            raise NameProblem(
                "F201", "unknown-symbol", f"`{var}` is not bound by a `for {var} in ...`.", node.at
            )
        path = self.loops[var]
        if name in self.tables:
            return self._table(self.tables[name], node.at, var)
        if name in self.symbols:
            symbol = self.symbols[name]
            if symbol.list_path != path:
                raise NameProblem(
                    "F210",
                    "wrong-list",
                    f"`{name}` is a field of {symbol.list_path or 'no list'}, and `{var}` "
                    f"runs over {path or 'words'}.",
                    node.at,
                )
            return _field(var, symbol.field, symbol.source)
        if name in self.reads:
            if self.reads[name] != path:
                raise NameProblem(
                    "F210",
                    "wrong-list",
                    f"`{name}` has one value for each of {self.reads[name] or 'nothing'}, "
                    f"and `{var}` runs over {path}.",
                    node.at,
                )
            return lambda run, loop: run.value_at(name, loop[var])
        raise self.unknown(name, node.at)

    def position(self, node: ex.Position, index: Thunk) -> Thunk:
        """`pattern[i + 1]`, which only architecture files have."""
        raise NameProblem(
            "F210",
            "needs-index",
            f"`{node.id}[...]`: write {node.id}[g] with g from a `for g in ...`; other positions "
            "are for architecture files.",
            node.at,
        )

    def items(self, loop: ex.Loop) -> Callable[[Any, Loop], Sequence[Any]]:
        """The list a loop runs over."""
        source, of = loop.source, loop.of
        if of is not None:
            return _field(of, source, f"{self.loops.get(of)}[].{source}")
        if source in self.symbols:
            return self._symbol(self.symbols[source], loop.at)
        if source in self.flags:
            return lambda run, bound: run.flag(source)
        if self.per and self.has_list(f"{self.per}.{source}"):
            return _field(CURRENT, source, f"{self.per}[].{source}")
        return lambda run, bound: run.items(source)


def _field(var: str, field: str, source: str) -> Thunk:
    """A field of the item bound to a loop variable; raises `FitcheckError` where it has none."""

    def value(run: Any, loop: Loop) -> Any:
        try:
            return loop[var][field]
        except KeyError:
            message = f"`{source}` is read here, and an item of this run's list does not give it."
            raise FitcheckError(message) from None

    return value
