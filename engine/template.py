"""Sentences in rule files: `{expression}` and `{expression | percent}` are filled with values.

Bytes are printed in MiB, counts with thousands separators, lists with commas.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from . import expression as ex

_HOLE = re.compile(r"\{([^{}]+)\}")
MIB = 1 << 20


def holes(text: str) -> list[tuple[str, str, int]]:
    """Every hole as (expression, format, offset)."""
    found = []
    for match in _HOLE.finditer(text):
        expression, _, form = match.group(1).partition("|")
        found.append((expression.strip(), form.strip(), match.start(1)))
    return found


def render(text: str, value: Callable[[ex.Node], tuple[Any, bool]]) -> str:
    """The sentence with its holes filled; `value` gives (value, whether it is in bytes)."""

    def one(match: re.Match[str]) -> str:
        expression, _, form = match.group(1).partition("|")
        result, in_bytes = value(ex.parse(expression.strip()))
        return show(result, in_bytes, form.strip())

    return " ".join(_HOLE.sub(one, text).split())


def show(value: Any, in_bytes: bool = False, form: str = "") -> str:
    """One value as a person reads it."""
    if isinstance(value, (tuple, list)):
        return ", ".join(str(v) for v in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    if form == "percent":
        return f"{float(value) * 100:+.1f}%"
    if in_bytes:
        return mib(value)
    return number(value)


def mib(value: int | Fraction) -> str:
    """Bytes as MiB with thousands separators."""
    amount = Fraction(value) / MIB
    return f"{float(amount):,.0f} MiB" if abs(amount) >= 100 else f"{float(amount):,.2f} MiB"


def number(value: int | Fraction) -> str:
    """An exact number: whole, or a decimal where it ends, or a fraction."""
    if isinstance(value, int):
        return f"{value:,}"
    exact = Fraction(value)
    if exact.denominator == 1:
        return f"{exact.numerator:,}"
    rest = exact.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    if rest == 1:
        digits = 0
        while (exact * 10**digits).denominator != 1 and digits < 12:
            digits += 1
        if digits < 12:
            return f"{float(exact):,.{digits}f}"
    return f"{float(exact):,.6g}"
