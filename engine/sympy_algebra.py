"""The operators of the formula language on sympy objects; sympy is imported on first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any

from . import expression as ex
from .algebra import (
    Algebra,
    EvaluationError,
    Keep,
    Loop,
    Thunk,
    power_of_two_floor as exact_power_of_two_floor,
)


@dataclass(frozen=True)
class Entry:
    """A list item: what is known of it, and its place (1, 2, ... or a symbol) in each list."""

    given: Mapping[str, Any]
    place: tuple[Any, ...]


def plain(value: Any) -> Any:
    """A number or truth as a sympy object; words stay Python text."""
    import sympy

    if isinstance(value, bool):
        return sympy.true if value else sympy.false
    if isinstance(value, (int, Fraction)):
        return sympy.Rational(value.numerator, value.denominator)
    return tuple(map(plain, value)) if isinstance(value, (list, tuple)) else value


def word(text: str) -> Any:
    """The symbol that stands for a quoted word."""
    import sympy

    return sympy.Symbol(f'"{text}"', integer=True)


@lru_cache(maxsize=1)
def power_of_two_class() -> Any:
    """The sympy function `power_of_two_floor`, which evaluates for rational numbers."""
    import sympy

    def evaluate(cls: Any, value: Any) -> Any:
        if value.is_Rational:
            exact = Fraction(int(value.p), int(value.q))
            return sympy.Integer(exact_power_of_two_floor(exact)) if exact >= 1 else sympy.nan
        return None

    body = {"eval": classmethod(evaluate), "nargs": 1, "is_integer": True, "is_positive": True}
    return type("power_of_two_floor", (sympy.Function,), body)


def _is_logical(value: Any) -> bool:
    """Whether a value is a truth: symbols of numbers and words are real."""
    from sympy.logic.boolalg import Boolean

    return isinstance(value, Boolean) and getattr(value, "is_real", None) is None


def _compare(op: str) -> Callable[[Any, Any], Any]:
    def apply(left: Any, right: Any) -> Any:
        import sympy

        symbolic = [isinstance(v, sympy.Basic) for v in (left, right)]
        if not any(symbolic):  # words and versions
            return plain(Algebra.compare[op](left, right))
        if op in ("==", "!="):
            same = _equal(left, right)
            return same if op == "==" else sympy.Not(same)
        if not all(symbolic):  # a version that is not given: true or false
            return sympy.Symbol(f"{left} {op} {right}")
        return Algebra.compare[op](left, right)

    return apply


def _equal(left: Any, right: Any) -> Any:
    import sympy

    if isinstance(left, str) and isinstance(right, str):
        return plain(left == right)
    left, right = (word(v) if isinstance(v, str) else v for v in (left, right))
    if _is_logical(left) or _is_logical(right):
        return sympy.Equivalent(left, right)
    return sympy.Eq(left, right)


def _contains(item: Any, words: Any) -> Any:
    import sympy

    if isinstance(item, str) and isinstance(words, str):
        return plain(item in words)
    if isinstance(words, tuple):
        return sympy.Or(*(_equal(item, w) for w in words))
    return sympy.Symbol(f"{item} in {words}")  # a list that is not given: true or false


def _call(name: str) -> Callable[..., Any]:
    """A function of sympy by name, looked up when it is called."""

    def call(*args: Any) -> Any:
        import sympy

        return getattr(sympy, name)(*args)

    return call


def _divide(left: Any, right: Any) -> Any:
    if right.is_zero:
        raise EvaluationError("division by zero")
    return left / right


def _modulo(left: Any, right: Any) -> Any:
    """The remainder by `floor`, because `Mod(1, a)` is wrong for a = 1 in sympy 1.12."""
    return left - right * _call("floor")(_divide(left, right))


def _picked(function: str, words: Any, path: Any, places: Any) -> Any:
    """The layers in which words pick a module: known for a given path, else a symbol."""
    import sympy

    if isinstance(words, tuple) and all(isinstance(v, str) for v in (*words, path, places)):
        return plain(Algebra.functions[function](words, path, places))
    return sympy.Symbol(f"{words} {function} {path} in {places}", nonnegative=True)


def _layers_in(places: Any, *numbers: Any) -> Any:
    """The layers at each step of a span: known for given numbers, else a symbol."""
    import sympy

    if isinstance(places, str) and all(n.is_Integer for n in numbers):
        return plain(Algebra.functions["layers_in"](places, *map(int, numbers)))
    return sympy.Symbol(f"layers of {places} in {numbers}", nonnegative=True)


class SympyAlgebra(Algebra):
    """The operators on sympy objects; truths are sympy's, words are text until compared."""

    binary: Mapping[str, Callable[[Any, Any], Any]] = {
        **Algebra.binary,
        "/": _divide,
        "%": _modulo,
    }
    compare: Mapping[str, Callable[[Any, Any], Any]] = {
        **{op: _compare(op) for op in ("==", "!=", "<", "<=", ">", ">=")},
        "in": _contains,
        "not in": lambda a, b: _call("Not")(_contains(a, b)),
    }
    functions: Mapping[str, Callable[..., Any]] = {
        "max": _call("Max"),
        "min": _call("Min"),
        "ceil": _call("ceiling"),
        "floor": _call("floor"),
        "power_of_two_floor": lambda value: power_of_two_class()(value),
        "selected": partial(_picked, "selected"),
        "named": partial(_picked, "named"),
        "layers_in": _layers_in,
    }

    def number(self, value: int | Fraction) -> Any:
        return plain(value)

    def negate(self, value: Any) -> Any:
        return _call("Not")(value)

    def logic(self, op: str, parts: Sequence[Thunk]) -> Thunk:
        join, end = _call("And" if op == "and" else "Or"), op == "or"

        def every(run: Any, loop: Loop) -> Any:
            result = plain(not end)
            for part in parts:
                result = join(result, part(run, loop))
                if result == plain(end):
                    break
            return result

        return every

    def choice(self, test: Thunk, yes: Thunk, no: Thunk) -> Thunk:
        def choose(run: Any, loop: Loop) -> Any:
            truth = test(run, loop)
            if truth in (plain(True), plain(False)):
                return (yes if truth == plain(True) else no)(run, loop)
            return _either(truth, yes(run, loop), no(run, loop))

        return choose

    def fold(self, node: ex.Fold, run: Any, rows: Sequence[Loop], body: Thunk, keep: Keep) -> Any:
        import sympy

        empty = {"max": -sympy.oo, "min": sympy.oo, "any": sympy.false}.get(node.kind, sympy.S.Zero)
        terms, places = [], []
        for bound in rows:
            truth = True if keep is None else keep(run, bound)
            truth = plain(truth) if isinstance(truth, bool) else truth
            if truth != plain(False):
                counted = sympy.S.One if node.kind == "count" else body(run, bound)
                terms.append(_either(truth, counted, empty))
                places = [e.place[-1] for e in bound.values() if isinstance(e, Entry)]
        if any(isinstance(p, sympy.Symbol) for p in places):
            return _indexed(node, terms[0], places[-len(node.loops) :])
        if node.kind in ("sum", "count"):
            return sympy.Add(*terms)
        if node.kind == "any":
            return sympy.Or(*terms)
        if node.kind == "list" or not terms:
            raise EvaluationError(f"{node.kind} over a list has no sympy form here")
        return (sympy.Max if node.kind == "max" else sympy.Min)(*terms)


def _either(truth: Any, yes: Any, no: Any) -> Any:
    import sympy

    if truth in (plain(True), plain(False)):
        return yes if truth == plain(True) else no
    yes, no = (word(v) if isinstance(v, str) else v for v in (yes, no))
    if _is_logical(yes) or _is_logical(no):
        return sympy.ITE(truth, yes, no)
    return sympy.Piecewise((yes, truth), (no, True))


def _indexed(node: ex.Fold, body: Any, places: Sequence[Any]) -> Any:
    import sympy

    if node.kind not in ("sum", "count"):
        return sympy.Function(node.kind)(body)
    ends = [sympy.Symbol(f"n_{p.source}", integer=True, nonnegative=True) for p in node.loops]
    return sympy.Sum(body, *reversed([(p, 1, n) for p, n in zip(places, ends, strict=True)]))


SYMPY = SympyAlgebra()
