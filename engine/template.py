"""Sentences in rule files: `{expression}` and `{expression | percent}` are filled with values.

Bytes are printed in MiB, counts with thousands separators, lists with commas.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

from .evaluation import NO_LOOP, Loop, Thunk
from .record import record
from .versions import Version

MIB = 1 << 20


def _hole() -> re.Pattern[str]:
    return re.compile(r"\{([^{}]+)\}")  # cached by the re module, compiled when first needed


def holes(text: str) -> list[tuple[str, str, int]]:
    """Every hole as (expression, format, offset)."""
    found = []
    for match in _hole().finditer(text):
        expression, _, form = match.group(1).partition("|")
        found.append((expression.strip(), form.strip(), match.start(1)))
    return found


def split(text: str) -> list[str | tuple[str, str]]:
    """The sentence as literal parts and (expression, format) holes."""
    parts: list[str | tuple[str, str]] = []
    end = 0
    for match in _hole().finditer(text):
        parts.append(text[end : match.start()])
        expression, _, form = match.group(1).partition("|")
        parts.append((expression.strip(), form.strip()))
        end = match.end()
    return [*parts, text[end:]]


@record
class Hole:
    """A hole of a sentence: its value, whether that is in bytes, and the format asked for."""

    value: Thunk
    in_bytes: bool
    form: str


class Sentence:
    """A sentence of a rule file, ready to be filled from a run."""

    def __init__(self, parts: list[str | Hole]) -> None:
        self.parts = parts

    def render(self, run: Any, loop: Loop = NO_LOOP) -> str:
        """The sentence with its holes filled."""
        text = "".join(
            part if isinstance(part, str) else show(part.value(run, loop), part.in_bytes, part.form)
            for part in self.parts
        )
        return " ".join(text.split())


def show(value: Any, in_bytes: bool = False, form: str = "") -> str:
    """One value as a person reads it."""
    if isinstance(value, (tuple, list)):
        return ", ".join(str(v) for v in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (str, Version)):
        return str(value)
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
