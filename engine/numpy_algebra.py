"""The operators of the formula language on arrays (`arrays.py` says what an array holds)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

from . import expression as ex
from .algebra import Algebra, EvaluationError, Keep, Loop, Thunk
from .arrays import (
    INFINITY,
    NAN,
    PRESENT,
    Coded,
    array_like,
    both,
    every,
    lookup,
    negate,
    possible,
    select,
    settled,
)

SLACK = 2.0**-50
"""Numbers closer than this, relative to the larger, count as equal: float64 keeps 53 bits, so a
half, a whole number or a tie that is exact with fractions can come out a few units too low."""


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


def modulo(left: Any, right: Any) -> Any:
    """The remainder with the sign of the divisor; a multiple leaves 0."""
    import numpy as np

    quotient = divide(left, right)
    whole = below(quotient)
    multiple = abs(quotient - whole) <= SLACK * abs(quotient)
    return np.where(multiple, 0.0, left - right * whole)[()]


def _defined(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda a, b: None if a is None or b is None else function(a, b)


def is_number(value: Any) -> bool:
    """Whether a value is a number or a truth, or an array of them."""
    return hasattr(value, "dtype") or isinstance(value, (bool, int, float))


def compare(op: str) -> Callable[[Any, Any], Any]:
    """A comparison of numbers, truths or words."""

    def apply(left: Any, right: Any) -> Any:
        import numpy as np

        if not (is_number(left) and is_number(right)):
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
    whole = isinstance(words, (str, Coded)) or not any(map(array_like, words))
    if whole and not is_number(item):
        return lookup(_defined(Algebra.compare["in"]), item, words)
    return settled(negate(every(negate(EQUAL(item, word)) for word in words)))


def counted(function: str, words: Any, path: Any, places: Any) -> Any:
    """In how many layers words pick a module; each word, or all of them, may differ."""
    exact = Algebra.functions[function]

    def found(*values: Any) -> Any:
        where, layers = values[-2:]
        targets = values[0] if isinstance(values[0], tuple) else values[:-2]
        return None if None in (where, layers, *targets) else exact(targets, where, layers)

    several = words if isinstance(words, tuple) and any(map(array_like, words)) else (words,)
    return lookup(found, *several, path, places)


def layers_in(places: Any, *numbers: Any) -> Any:
    """How many layers lie at each step of a span; all of it may differ between configurations."""
    exact = Algebra.functions["layers_in"]
    return lookup(lambda *v: None if None in v else exact(*v), places, *numbers)


def present(bound: Loop) -> Any:
    """Where every list item of a loop exists."""
    found = []
    for item in bound.values():
        if isinstance(item, Mapping):
            found.append(item.get(PRESENT, True))
        elif isinstance(item, Coded):
            found.append(lookup(lambda word: word is not None, item))
    return every(found)


def _largest(*values: Any) -> Any:
    import numpy as np

    result = values[0]
    for value in values[1:]:
        result = np.maximum(result, value)
    return result


def _smallest(*values: Any) -> Any:
    return -_largest(*(-v for v in values))


def _kept(
    run: Any, rows: Sequence[Loop], body: Thunk, keep: Keep
) -> Iterator[tuple[Any, Callable[[], Any]]]:
    """The rows that some configuration keeps: where, and their value."""
    for row in rows:
        mask = settled(present(row))
        if keep is not None and possible(mask):
            mask = settled(both(mask, keep(run, row)))
        if possible(mask):
            yield mask, partial(body, run, row)


def _finite(value: Any) -> Any:
    """Undefined where nothing was kept, so that the largest of nothing is left as infinity."""
    import numpy as np

    return np.where(np.isinf(value), NAN, value)[()]


class NumpyAlgebra(Algebra):
    """The operators on arrays and scalars mixed; only branches that some configuration takes."""

    binary: Mapping[str, Callable[[Any, Any], Any]] = {
        **Algebra.binary,
        "/": divide,
        "%": modulo,
    }
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
        "selected": partial(counted, "selected"),
        "named": partial(counted, "named"),
        "layers_in": layers_in,
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

    def fold(self, node: ex.Fold, run: Any, rows: Sequence[Loop], body: Thunk, keep: Keep) -> Any:
        kept = _kept(run, rows, body, keep)
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
