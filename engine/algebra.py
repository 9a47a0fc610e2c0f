"""One tree, several evaluators: an algebra gives the operators, `compile_tree` does the rest.

`EXACT` computes with integers and fractions and evaluates only the branch that is taken;
`vectorized.py` supplies the NumPy algebra and `symbolic.py` the sympy one. Compiling makes nested
closures: no text is ever executed.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Protocol

from . import expression as ex
from .arithmetic import (
    divide as divide,
    greatest,
    least,
    modulo as modulo,
    power_of_two_floor as power_of_two_floor,
)
from .evaluation import (
    NO_LOOP as NO_LOOP,
    EvaluationError as EvaluationError,
    Loop as Loop,
    Thunk as Thunk,
)
from .selecting import layers_in, named, selected

MAX_ROWS = 100_000
Keep = Thunk | None  # the condition of the rows that count; None where all do


class Lookup(Protocol):
    """Where the names of one file come from."""

    def name(self, node: ex.Name) -> Thunk: ...

    def item(self, node: ex.Item) -> Thunk: ...

    def position(self, node: ex.Position, index: Thunk) -> Thunk: ...

    def items(self, loop: ex.Loop) -> Callable[[Any, Loop], Sequence[Any]]: ...


class Algebra:
    """The meaning of the operators; this base class is the exact one."""

    binary: Mapping[str, Callable[[Any, Any], Any]] = {
        "+": operator.add,
        "-": operator.sub,
        "*": operator.mul,
        "/": divide,
        "%": modulo,
        "**": operator.pow,
    }
    compare: Mapping[str, Callable[[Any, Any], Any]] = {
        "==": operator.eq,
        "!=": operator.ne,
        "<": operator.lt,
        "<=": operator.le,
        ">": operator.gt,
        ">=": operator.ge,
        "in": lambda a, b: a in b,
        "not in": lambda a, b: a not in b,
    }
    functions: Mapping[str, Callable[..., Any]] = {
        "max": max,
        "min": min,
        "ceil": math.ceil,
        "floor": math.floor,
        "power_of_two_floor": power_of_two_floor,
        "selected": selected,
        "named": named,
        "layers_in": layers_in,
    }

    def number(self, value: int | Fraction) -> Any:
        return value

    def negative(self, value: Any) -> Any:
        return -value

    def negate(self, value: Any) -> Any:
        return not value

    def logic(self, op: str, parts: Sequence[Thunk]) -> Thunk:
        first, *rest = parts
        if not rest:
            return first
        others = self.logic(op, rest)
        if op == "and":
            return lambda run, loop: first(run, loop) and others(run, loop)
        return lambda run, loop: first(run, loop) or others(run, loop)

    def choice(self, test: Thunk, yes: Thunk, no: Thunk) -> Thunk:
        return lambda run, loop: yes(run, loop) if test(run, loop) else no(run, loop)

    def fold(self, node: ex.Fold, run: Any, rows: Sequence[Loop], body: Thunk, keep: Keep) -> Any:
        """Combine the rows of a list; a value is asked for only where its condition holds."""
        if keep is None:
            values = [body(run, row) for row in rows]
        else:
            values = [body(run, row) for row in rows if keep(run, row)]
        kind = node.kind
        if kind == "sum":
            return sum(values)
        if kind == "count":
            return len(values)
        if kind == "any":
            return any(values)
        if kind == "list":
            return tuple(dict.fromkeys(values))
        return greatest(values) if kind == "max" else least(values)


EXACT = Algebra()


def compile_tree(node: ex.Node, algebra: Algebra, lookup: Lookup) -> Thunk:
    """A function of (run, loop) that evaluates `node` in `algebra`."""

    def build(part: ex.Node) -> Thunk:
        return compile_tree(part, algebra, lookup)

    if isinstance(node, ex.Number):
        number = algebra.number(node.value)
        return lambda run, loop: number
    if isinstance(node, (ex.Text, ex.Truth)):
        plain = node.value
        return lambda run, loop: plain
    if isinstance(node, ex.Words):
        parts = [build(i) for i in node.items]
        return lambda run, loop: tuple(p(run, loop) for p in parts)
    if isinstance(node, ex.Name):
        return lookup.name(node)
    if isinstance(node, ex.Item):
        return lookup.item(node)
    if isinstance(node, ex.Position):
        return lookup.position(node, build(node.index))
    if isinstance(node, (ex.Binary, ex.Compare)):
        table = algebra.binary if isinstance(node, ex.Binary) else algebra.compare
        apply, left, right = table[node.op], build(node.left), build(node.right)
        return lambda run, loop: apply(left(run, loop), right(run, loop))
    if isinstance(node, ex.Negative):
        value = build(node.value)
        return lambda run, loop: algebra.negative(value(run, loop))
    if isinstance(node, ex.Not):
        truth = build(node.value)
        return lambda run, loop: algebra.negate(truth(run, loop))
    if isinstance(node, ex.Logic):
        return algebra.logic(node.op, [build(p) for p in node.parts])
    if isinstance(node, ex.Choice):
        return algebra.choice(build(node.test), build(node.yes), build(node.no))
    if isinstance(node, ex.Call):
        function, args = algebra.functions[node.function], [build(a) for a in node.args]
        return lambda run, loop: function(*(a(run, loop) for a in args))
    if isinstance(node, ex.Fold):
        return _fold(node, algebra, lookup)
    raise TypeError(f"no such node: {node!r}")


def _fold(node: ex.Fold, algebra: Algebra, lookup: Lookup) -> Thunk:
    body = compile_tree(node.body, algebra, lookup)
    keep = compile_tree(node.condition, algebra, lookup) if node.condition else None
    sources = [(loop.var, lookup.items(loop)) for loop in node.loops]

    def rows(run: Any, loop: Loop) -> list[Loop]:
        bound = [loop]
        for var, items in sources:
            outer, bound = bound, []
            for row in outer:
                bound += [{**row, var: item} for item in items(run, row)]
                if len(bound) > MAX_ROWS:
                    raise EvaluationError(f"more than {MAX_ROWS:,} rows in one aggregate")
        return bound

    return lambda run, loop: algebra.fold(node, run, rows(run, loop), body, keep)
