"""The NumPy meaning of the formula language: one value for each of many configurations.

A value is a plain scalar, the same for every configuration, or an array that broadcasts:

- numbers are float64; nan stands where the exact evaluator would raise (a division by zero, a
  missing table cell, no case);
- truths are bool, or float64 with 0, 1 and nan where one of them is undefined;
- words, lists of words and other objects are `Coded`.

Undefined values spread to what is computed from them and do no harm in branches not selected.
NumPy is imported on first use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Any

from . import expression as ex
from .algebra import Algebra, EvaluationError, Loop, Row, Thunk

if TYPE_CHECKING:
    import numpy as np

NAN, INFINITY = float("nan"), float("inf")
PRESENT = "(present)"  # key of a list item: where it exists, as lists differ in length
SLACK = 2.0**-50
"""Numbers closer than this, relative to the larger, count as equal: float64 keeps 53 bits, so a
half, a whole number or a tie that is exact with fractions can come out a few units too low."""


@dataclass(frozen=True, eq=False)
class Coded:
    """Objects by number: configuration i has `values[codes[i]]`; None is undefined."""

    values: tuple[Any, ...]
    codes: np.ndarray[Any, Any]

    def __iter__(self) -> Iterator[Any]:
        raise EvaluationError("a loop over a list that differs between configurations")


def array_like(value: Any) -> bool:
    """Whether a value can differ between configurations."""
    return isinstance(value, Coded) or hasattr(value, "dtype")


def coded(value: Any) -> Coded:
    """Any value as `Coded`; a number array gets a code for each distinct number."""
    import numpy as np

    if isinstance(value, Coded):
        return value
    if not isinstance(value, np.ndarray):
        undefined = isinstance(value, float) and value != value
        return Coded((None if undefined else value,), np.zeros((), np.intp))
    if value.dtype == bool:
        return Coded((False, True), value.astype(np.intp))
    distinct, codes = np.unique(value.ravel(), return_inverse=True)
    return Coded(tuple(distinct.tolist()), codes.reshape(value.shape))


def packed(values: Sequence[Any], codes: np.ndarray[Any, Any]) -> Any:
    """`values[codes]`: an array of numbers or truths, or `Coded` words; None is undefined."""
    import numpy as np

    known = [v for v in values if v is not None]
    if not known:
        return NAN
    if not all(isinstance(v, (bool, int, float, Fraction)) for v in known):
        return Coded(tuple(values), codes)
    if len(known) == len(values) and all(isinstance(v, bool) for v in known):
        return np.array(values)[codes]
    return np.array([NAN if v is None else float(v) for v in values])[codes]


def lookup(function: Callable[..., Any], *args: Any) -> Any:
    """A function of scalars and objects, called once for each combination of their values."""
    if not any(map(array_like, args)):
        result = function(*args)
        if isinstance(result, (int, Fraction)) and not isinstance(result, bool):
            return float(result)
        return NAN if result is None else result
    parts = [coded(a) for a in args]
    codes: Any = 0
    for part in parts:
        codes = codes * len(part.values) + part.codes
    return packed([function(*c) for c in product(*(p.values for p in parts))], codes)


def is_truth(value: Any) -> bool:
    """Whether a truth is defined everywhere."""
    return isinstance(value, bool) or (hasattr(value, "dtype") and value.dtype == bool)


def possible(truth: Any) -> bool:
    """Whether a truth holds, or is undefined, in some configuration."""
    return bool(truth.any()) if hasattr(truth, "any") else bool(truth)


def settled(truth: Any) -> Any:
    """A truth as a plain bool where it is the same in every configuration."""
    if not hasattr(truth, "dtype"):
        return truth
    if truth.dtype != bool:
        return truth if truth.ndim else float(truth)
    return bool(truth.flat[0]) if truth.size and (truth.all() or not truth.any()) else truth


def negate(truth: Any) -> Any:
    if isinstance(truth, bool):
        return not truth
    return ~truth if is_truth(truth) else 1.0 - truth


def both(left: Any, right: Any) -> Any:
    """`left and right`; undefined only where `left` is, or where `left` holds and `right` is."""
    import numpy as np

    if isinstance(left, bool):
        return right if left else False
    if is_truth(left) and is_truth(right):
        return left & right
    return np.where(left == 0, 0.0, np.where(np.isnan(left), NAN, right))


def select(test: Any, yes: Any, no: Any) -> Any:
    """`yes` where the test holds, `no` where it does not, undefined where the test is."""
    import numpy as np

    if isinstance(test, bool):
        return yes if test else no
    if any(isinstance(v, (str, tuple, Coded)) or v is None for v in (yes, no)):
        one, two = coded(yes), coded(no)
        size = len(one.values)
        codes = np.where(test == 1, one.codes, two.codes + size)
        if not is_truth(test):
            codes = np.where(np.isnan(test), size + len(two.values), codes)
        return Coded((*one.values, *two.values, None), codes)
    chosen = np.where(test == 1, yes, no)
    return chosen if is_truth(test) else np.where(np.isnan(test), NAN, chosen)


def below(value: Any) -> Any:
    """The largest whole number that is at most `value`."""
    import numpy as np

    return np.floor(value + SLACK * abs(value))


def above(value: Any) -> Any:
    """The smallest whole number that is at least `value`."""
    import numpy as np

    return np.ceil(value - SLACK * abs(value))


def power_of_two_floor(value: Any) -> Any:
    """The largest power of two that is at most `value`; undefined below 1."""
    import numpy as np

    whole = below(np.asarray(value, float))
    return np.where(whole >= 1, np.ldexp(0.5, np.frexp(whole)[1]), NAN)[()]


def divide(left: Any, right: Any) -> Any:
    import numpy as np

    return left / np.where(np.equal(right, 0), NAN, right)[()]


def _defined(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda a, b: None if a is None or b is None else function(a, b)


def compare(op: str) -> Callable[[Any, Any], Any]:
    """A comparison of numbers, truths or words."""

    def apply(left: Any, right: Any) -> Any:
        import numpy as np

        if any(isinstance(v, (str, tuple, Coded)) for v in (left, right)):
            return lookup(_defined(Algebra.compare[op]), left, right)
        left, right = np.asarray(left, float), np.asarray(right, float)
        gap, slack = left - right, SLACK * np.maximum(abs(left), abs(right))
        if op in ("==", "!="):
            result = (abs(gap) <= slack) == (op == "==")
        elif op in ("<", "<="):
            result = gap < -slack if op == "<" else gap <= slack
        else:
            result = gap > slack if op == ">" else gap >= -slack
        undefined = np.isnan(gap)
        return settled(np.where(undefined, NAN, result) if undefined.any() else result)

    return apply


EQUAL = compare("==")


def contains(item: Any, words: Any) -> Any:
    """`item in words`; each word, or the whole list, may differ between configurations."""
    whole = isinstance(words, Coded) or not any(map(array_like, words))
    if whole and isinstance(item, (str, Coded)):
        return lookup(_defined(Algebra.compare["in"]), item, words)
    return settled(negate(_all(negate(EQUAL(item, word)) for word in words)))


def _all(truths: Iterable[Any]) -> Any:
    result: Any = True
    for truth in truths:
        result = both(result, truth)
    return result


def present(bound: Loop) -> Any:
    """Where every list item of a loop exists."""
    return _all(i.get(PRESENT, True) for i in bound.values() if isinstance(i, Mapping))


def _largest(*values: Any) -> Any:
    import numpy as np

    result = values[0]
    for value in values[1:]:
        result = np.maximum(result, value)
    return result


def _smallest(*values: Any) -> Any:
    return -_largest(*(-v for v in values))


def _kept(rows: Iterator[Row]) -> Iterator[tuple[Any, Callable[[], Any]]]:
    """The rows that some configuration keeps: where, and their value."""
    for value, keep, bound in rows:
        mask = settled(present(bound))
        if possible(mask):
            mask = settled(both(mask, keep()))
        if possible(mask):
            yield mask, value


def _finite(value: Any) -> Any:
    """Undefined where nothing was kept, so that the largest of nothing is left as infinity."""
    import numpy as np

    return np.where(np.isinf(value), NAN, value)[()]


class NumpyAlgebra(Algebra):
    """The operators on arrays and scalars mixed; only branches that some configuration takes."""

    binary: Mapping[str, Callable[[Any, Any], Any]] = {**Algebra.binary, "/": divide}
    compare: Mapping[str, Callable[[Any, Any], Any]] = {
        **{op: compare(op) for op in ("==", "!=", "<", "<=", ">", ">=")},
        "in": contains,
        "not in": lambda a, b: negate(contains(a, b)),
    }
    functions: Mapping[str, Callable[..., Any]] = {
        "max": _largest,
        "min": _smallest,
        "ceil": above,
        "floor": below,
        "power_of_two_floor": power_of_two_floor,
    }

    def number(self, value: int | Fraction) -> Any:
        return float(value)

    def negate(self, value: Any) -> Any:
        return negate(value)

    def logic(self, op: str, parts: Sequence[Thunk]) -> Thunk:
        def every(run: Any, loop: Loop, turn: Callable[[Any], Any]) -> Any:
            result: Any = True
            for part in parts:
                result = settled(both(result, turn(part(run, loop))))
                if not possible(result):
                    break
            return result

        if op == "and":
            return lambda run, loop: every(run, loop, lambda truth: truth)
        return lambda run, loop: negate(every(run, loop, negate))

    def choice(self, test: Thunk, yes: Thunk, no: Thunk) -> Thunk:
        def choose(run: Any, loop: Loop) -> Any:
            truth = settled(test(run, loop))
            if isinstance(truth, bool):
                return (yes if truth else no)(run, loop)
            return select(truth, yes(run, loop), no(run, loop))

        return choose

    def fold(self, node: ex.Fold, rows: Iterator[Row]) -> Any:
        kept = _kept(rows)
        if node.kind == "sum":
            return sum((select(mask, value(), 0.0) for mask, value in kept), 0.0)
        if node.kind == "count":
            return sum((select(mask, 1.0, 0.0) for mask, _ in kept), 0.0)
        if node.kind == "any":
            hits = sum((select(mask, 1.0 * value(), 0.0) for mask, value in kept), 0.0)
            return self.compare[">"](hits, 0.0)
        if node.kind == "list":
            found = [(mask, value()) for mask, value in kept]
            if any(array_like(part) for pair in found for part in pair):
                raise EvaluationError("a list that differs between configurations")
            return tuple(dict.fromkeys(value for _, value in found))
        pick, nothing = (_largest, -INFINITY) if node.kind == "max" else (_smallest, INFINITY)
        return _finite(pick(nothing, *(select(mask, value(), nothing) for mask, value in kept)))


NUMPY = NumpyAlgebra()
