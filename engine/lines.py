"""Exact arithmetic with straight lines in one unknown: a proof that a quantity is affine in it.

Every formula is evaluated with the unknown left open. What comes out is the largest of a few lines
`offset + slope * n`, with a slack for what was rounded on the way; a product of the unknown with
itself, a condition that is not the same for every n, or anything else that bends a line is refused.
So a result is a proof, for this run and every whole n from 1 on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any, NoReturn

from . import expression as ex
from .algebra import Algebra, Keep, Loop, Thunk, divide, modulo
from .errors import FitcheckError

MAX_LINES = 64
Exact = int | Fraction
Line = tuple[Exact, Exact]  # offset, slope
HALF = Fraction(1, 2)


class NotAffine(FitcheckError):
    """The unknown enters in a way that is no straight line."""


class Lines:
    """The largest of some lines, give or take `slack`."""

    def __init__(self, lines: Sequence[Line], slack: Exact = 0) -> None:
        self.lines, self.slack = highest(lines), slack

    def shifted(self, offset: Exact, slack: Exact = 0) -> Lines:
        return Lines([(o + offset, s) for o, s in self.lines], self.slack + slack)

    def scaled(self, factor: Exact) -> Lines | int:
        if factor == 0:
            return 0
        if factor < 0 and len(self.lines) > 1:
            raise NotAffine("the largest of several lines, turned round, is not the largest")
        size = factor if factor > 0 else -factor
        return Lines([(o * factor, s * factor) for o, s in self.lines], self.slack * size)

    def whole(self) -> bool:
        """Whether every value at a whole number is a whole number."""
        return not self.slack and all(
            Fraction(part).denominator == 1 for line in self.lines for part in line
        )

    def rounded(self, middle: Exact) -> Lines:
        """Rounded to a whole number that is at most a half from the value plus `middle`."""
        return self if self.whole() else self.shifted(middle, HALF)

    def __add__(self, other: Lines | Exact) -> Lines:
        if isinstance(other, Lines):
            pairs = [(a + c, b + d) for a, b in self.lines for c, d in other.lines]
            return Lines(pairs, self.slack + other.slack)
        return self.shifted(other)

    __radd__ = __add__

    def __neg__(self) -> Lines | int:
        return self.scaled(-1)

    def __sub__(self, other: Lines | Exact) -> Any:
        return self + (-other)

    def __rsub__(self, other: Exact) -> Any:
        return -self + other

    def __mul__(self, other: Lines | Exact) -> Lines | int:
        if isinstance(other, Lines):
            raise NotAffine("a product of the unknown with itself")
        return self.scaled(other)

    __rmul__ = __mul__

    def __pow__(self, exponent: int) -> Lines | int:
        if exponent > 1:
            raise NotAffine("a power of the unknown")
        return self if exponent else 1

    def below(self, other: Lines, strictly: bool) -> bool:
        """Whether this is at most `other` (or less) for every n, each line under one of those."""
        room = self.slack + other.slack

        def under(line: Line, roof: Line) -> bool:
            gap = sum(roof) - sum(line) - room  # at 1, and then it never shrinks
            return line[1] <= roof[1] and (gap > 0 if strictly else gap >= 0)

        return all(any(under(line, roof) for roof in other.lines) for line in self.lines)

    def _refused(self, *_: object) -> NoReturn:
        raise NotAffine("a step on the unknown")

    __bool__ = _refused


def highest(lines: Sequence[Line]) -> tuple[Line, ...]:
    """The lines that are the highest somewhere from 1 on, flattest first."""
    kept: list[Line] = []
    for offset, slope in sorted(set(lines), key=lambda line: (line[1], line[0])):
        while kept and offset + slope >= kept[-1][0] + kept[-1][1]:
            kept.pop()  # already passed at 1, and steeper
        kept.append((offset, slope))
    if len(kept) > MAX_LINES:
        raise NotAffine(f"more than {MAX_LINES} lines")
    return tuple(kept)


UNKNOWN = Lines([(0, 1)])


def largest(*values: Any) -> Any:
    """The largest of lines and numbers."""
    bent = [value for value in values if isinstance(value, Lines)]
    if not bent:
        return max(values)
    plain = [(value, 0) for value in values if not isinstance(value, Lines)]
    lines = [line for value in bent for line in value.lines]
    return Lines([*plain, *lines], max(value.slack for value in bent))


def smallest(*values: Any) -> Any:
    if any(isinstance(value, Lines) for value in values):
        raise NotAffine("the smallest of several values with the unknown")
    return min(values)


def comparison(op: str) -> Callable[[Any, Any], bool]:
    """A comparison that comes out the same for every n, or a refusal."""

    def compare(left: Any, right: Any) -> bool:
        if not (isinstance(left, Lines) or isinstance(right, Lines)):
            return bool(Algebra.compare[op](left, right))
        a, b = (v if isinstance(v, Lines) else Lines([(v, 0)]) for v in (left, right))
        if a.below(b, True):
            return op in ("<", "<=", "!=")
        if b.below(a, True):
            return op in (">", ">=", "!=")
        if op in ("<=", ">") and a.below(b, False):
            return op == "<="
        if op in ("<", ">=") and b.below(a, False):
            return op == ">="
        raise NotAffine("a condition that changes with the unknown")

    return compare


def _member(op: str, item: Any, words: Any) -> bool:
    if isinstance(item, Lines):
        raise NotAffine("a condition that changes with the unknown")
    return bool(Algebra.compare[op](item, words))


def _or_lines(function: Callable[..., Any], middle: Fraction | None) -> Callable[[Any], Any]:
    """A function of one number; of lines its rounding, or a refusal."""

    def apply(value: Any) -> Any:
        if not isinstance(value, Lines):
            return function(value)
        if middle is None:
            raise NotAffine("a step on the unknown")
        return value.rounded(middle)

    return apply


def _quotient(left: Any, right: Any) -> Any:
    if isinstance(left, Lines) and not isinstance(right, Lines) and right != 0:
        return left.scaled(1 / Fraction(right))
    if isinstance(right, Lines):
        raise NotAffine("a division by the unknown")
    return divide(left, right)


def _remainder(left: Any, right: Any) -> Any:
    if isinstance(left, Lines) or isinstance(right, Lines):
        raise NotAffine("a remainder of the unknown")
    return modulo(left, right)


class LineAlgebra(Algebra):
    """The exact operators, which lines pass through as long as they stay lines."""

    binary: Mapping[str, Callable[[Any, Any], Any]] = {
        **Algebra.binary,
        "/": _quotient,
        "%": _remainder,
    }
    compare: Mapping[str, Callable[[Any, Any], Any]] = {
        **Algebra.compare,
        "in": partial(_member, "in"),
        "not in": partial(_member, "not in"),
        **{op: comparison(op) for op in ("==", "!=", "<", "<=", ">", ">=")},
    }
    functions: Mapping[str, Callable[..., Any]] = {
        "max": largest,
        "min": smallest,
        "ceil": _or_lines(Algebra.functions["ceil"], HALF),
        "floor": _or_lines(Algebra.functions["floor"], -HALF),
        "power_of_two_floor": _or_lines(Algebra.functions["power_of_two_floor"], None),
        "selected": Algebra.functions["selected"],
        "named": Algebra.functions["named"],
        "layers_in": Algebra.functions["layers_in"],
    }

    def fold(self, node: ex.Fold, run: Any, rows: Sequence[Loop], body: Thunk, keep: Keep) -> Any:
        if node.kind not in ("max", "min"):
            return super().fold(node, run, rows, body, keep)
        values = [body(run, row) for row in rows if keep is None or keep(run, row)]
        if not any(isinstance(value, Lines) for value in values):
            return super().fold(node, run, rows, body, keep)
        return (largest if node.kind == "max" else smallest)(*values)


LINES = LineAlgebra()
