"""Exact values as a formula editor reads them: the language's own words, bytes with their MiB."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from ..template import MIB, number

LOGICAL = ("truth", "text", "1", "")


def value_text(value: Any, unit: str = "") -> str:
    """`true`, `nf4`, `q, k`, `1,024 token`, `2,097,152 byte (2 MiB)`; a dash for None."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (tuple, list)):
        return ", ".join(map(str, value)) or "(none)"
    if not isinstance(value, (int, Fraction)):
        return str(value)
    amount = Fraction(value)
    text = number(value) if unit in LOGICAL else f"{number(value)} {unit}"
    return f"{text} ({mib_text(value)})" if unit == "byte" and abs(amount) >= MIB // 100 else text


def mib_text(value: int | Fraction, signed: bool = False) -> str:
    """Bytes as MiB, with two decimals unless they are whole, and a plus sign where `signed`."""
    amount = Fraction(value) / MIB
    decimals = 0 if amount.denominator == 1 else 2
    return f"{float(amount):{'+' if signed else ''},.{decimals}f} MiB"
