"""Sentences in rule files: `{expression}` and `{expression | percent}` are filled with values.

Bytes are printed in MiB, counts with thousands separators, lists with commas.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .scope import Scope

from .evaluation import NO_LOOP, Loop, Thunk

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


class Sentence:
    """A sentence whose holes are compiled: literal parts and (function, in bytes, format) holes."""

    def __init__(self, parts: list[str | tuple[Thunk, bool, str]]) -> None:
        self.parts = parts

    def render(self, run: Any, loop: Loop = NO_LOOP) -> str:
        """The sentence with its holes filled from a run."""
        text = "".join(
            part if isinstance(part, str) else show(part[0](run, loop), part[1], part[2])
            for part in self.parts
        )
        return " ".join(text.split())


def prepare(text: str, scope: Scope, unit: Callable[[str], str]) -> Sentence:
    """Compile the holes of a sentence; raises `ExpressionError` or `NameProblem`."""
    from . import expression as ex
    from .algebra import EXACT, compile_tree

    parts: list[str | tuple[Thunk, bool, str]] = []
    end = 0
    for match in _hole().finditer(text):
        parts.append(text[end : match.start()])
        expression, _, form = match.group(1).partition("|")
        tree = ex.parse(expression.strip())
        in_bytes = isinstance(tree, ex.Name) and unit(tree.id) == "byte"
        parts.append((compile_tree(tree, EXACT, scope.inside(tree)), in_bytes, form.strip()))
        end = match.end()
    parts.append(text[end:])
    return Sentence(parts)


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
