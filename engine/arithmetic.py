"""Exact arithmetic beyond what Python's operators do with integers and fractions."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from .evaluation import EvaluationError


def divide(left: Any, right: Any) -> int | Fraction:
    """Exact quotient; an integer where it divides evenly."""
    if right == 0:
        raise EvaluationError("division by zero")
    value: Fraction = Fraction(left) / right
    return value.numerator if value.denominator == 1 else value


def modulo(left: Any, right: Any) -> Any:
    """Remainder with the sign of the divisor."""
    if right == 0:
        raise EvaluationError("division by zero")
    return left % right


def power_of_two_floor(value: Any) -> int:
    """The largest power of two that is at most `value` (which is at least 1)."""
    if value < 1:
        raise EvaluationError("power_of_two_floor needs a value of at least 1")
    whole: int = math.floor(value)
    return 1 << (whole.bit_length() - 1)


def greatest(values: Iterable[Any]) -> Any:
    """The largest of a list, which must not be empty."""
    try:
        return max(values)
    except ValueError:
        raise EvaluationError("max over an empty list") from None


def least(values: Iterable[Any]) -> Any:
    """The smallest of a list, which must not be empty."""
    try:
        return min(values)
    except ValueError:
        raise EvaluationError("min over an empty list") from None


def entry(name: str, values: Any, index: Any) -> Any:
    """`values[index]`, or `EvaluationError` where there is no such entry."""
    if not isinstance(values, (tuple, str)):
        raise EvaluationError(f"`{name}` is no list or pattern")
    if not isinstance(index, int) or not 0 <= index < len(values):
        raise EvaluationError(f"`{name}` has {len(values)} entries and no entry {index}")
    return values[index]
