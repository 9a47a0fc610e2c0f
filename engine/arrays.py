"""Values for many configurations at once: plain scalars mixed with NumPy arrays that broadcast.

A scalar is the same for every configuration. Arrays are

- float64 for numbers; nan stands where the exact evaluator would raise (a division by zero, a
  missing table cell, no case);
- bool for truths, or float64 with 0, 1 and nan where one of them is undefined;
- `Coded` for words, lists of words and other objects.

Undefined values spread to what is computed from them and do no harm in branches not selected.
NumPy is imported on first use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

NAN, INFINITY = float("nan"), float("inf")
PRESENT = "(present)"  # key of a list item: where it exists, as lists differ in length


@dataclass(frozen=True, eq=False)
class Coded:
    """Objects by number: configuration i has `values[codes[i]]`; None is undefined."""

    values: tuple[Any, ...]
    codes: np.ndarray[Any, Any]

    def __iter__(self) -> Iterator[Coded]:
        """The items of lists side by side, None where a list is shorter."""
        lists = [value or () for value in self.values]
        for index in range(max(map(len, lists))):
            items = tuple(part[index] if index < len(part) else None for part in lists)
            yield Coded(items, self.codes)


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
        return np.full(codes.shape, NAN)
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


def every(truths: Iterable[Any]) -> Any:
    """The conjunction of some truths."""
    result: Any = True
    for truth in truths:
        result = both(result, truth)
    return result
