"""Units: exponents of base dimensions, plus labels that are printed and never block a sum.

Which dimensions, labels and sizes exist is data (`formulas/units.yaml`). Counts of parameters,
tokens, layers and heads are labels: the same width is a matrix side in one formula and a per-token
count in another, so only dimensions such as byte are checked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction

from .record import record

_QUANTITY = r"([0-9][0-9_]*(?:\.[0-9]+)?)\s+([A-Za-z]+)"


class UnitError(Exception):
    """A unit or quantity that cannot be read."""


@record
class Unit:
    """
    `powers` are the checked dimensions with their exponents, `text` is what is printed.
    """

    powers: tuple[tuple[str, int], ...]
    text: str

    def same(self, other: Unit) -> bool:
        """Whether two values in these units can be added or compared."""
        return self.powers == other.powers

    def __str__(self) -> str:
        return self.text


ONE = Unit((), "1")


@record
class Units:
    """The declared dimensions, labels and sizes (size name -> factor, dimension)."""

    dimensions: frozenset[str]
    labels: frozenset[str]
    sizes: Mapping[str, tuple[int, str]]

    def parse(self, text: str | int) -> Unit:
        """`byte`, `byte/param`, `1`, `token*layer` to a `Unit`."""
        words = str(text).replace(" ", "")
        powers: dict[str, int] = {}
        sign = 1
        for part in words.replace("*", " * ").replace("/", " / ").split(" "):
            if part in ("*", "/"):
                sign = -1 if part == "/" else 1
                continue
            if part != "1" and not (part.isascii() and part.replace("_", "a").isalpha()):
                raise UnitError(f"`{text}` is not a unit")
            if part in self.dimensions:
                powers[part] = powers.get(part, 0) + sign
            elif part != "1" and part not in self.labels:
                known = ", ".join(sorted(self.dimensions | self.labels))
                raise UnitError(f"`{part}` is not a declared unit; declared are {known}")
        return Unit(tuple(sorted((k, v) for k, v in powers.items() if v)), words)

    def quantity(self, text: str) -> tuple[int | Fraction, Unit]:
        """`24576 MiB` to exact bytes and its unit."""
        found = re.fullmatch(_QUANTITY, text.strip())
        if not found:
            raise UnitError(f"`{text}` is not a number with a unit, such as 24576 MiB")
        number, size = found.groups()
        if size not in self.sizes:
            known = ", ".join(self.sizes)
            raise UnitError(f"`{size}` is not a size used in arithmetic; write one of {known}")
        factor, dimension = self.sizes[size]
        exact = Fraction(number.replace("_", "")) * factor
        value = exact.numerator if exact.denominator == 1 else exact
        return value, Unit(((dimension, 1),), dimension)


def multiply(left: Unit, right: Unit, sign: int = 1) -> Unit:
    """The unit of a product (`sign` 1) or quotient (`sign` -1)."""
    powers = dict(left.powers)
    for name, power in right.powers:
        powers[name] = powers.get(name, 0) + sign * power
    kept = tuple(sorted((k, v) for k, v in powers.items() if v))
    return Unit(kept, describe(kept))


def describe(powers: tuple[tuple[str, int], ...]) -> str:
    """A readable name for derived units."""
    if not powers:
        return "1"
    return "*".join(name if power == 1 else f"{name}^{power}" for name, power in powers)
