"""Library versions: compared number by number, as conditions and profile keys write them."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import total_ordering

_VERSION = re.compile(r"[0-9]{1,5}(\.[0-9]{1,5}){0,3}")
_BOUND = re.compile(r"(==|>=|<=|<|>)\s*([0-9.]+)")
_STEP = 10**6  # parts have at most five digits


@total_ordering
class Version:
    """`4.57.1`; missing parts are zero, so 5 and 5.0 are equal. Compares with text too."""

    def __init__(self, text: str) -> None:
        if not is_version(text):
            raise ValueError(f"`{text}` is not a version such as 4.57 or 5.0.1")
        self.text = text

    @property
    def rank(self) -> Fraction:
        """A number in the order of versions."""
        return rank(self.text)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str) and is_version(other):
            return self.rank == rank(other)
        return isinstance(other, Version) and self.rank == other.rank

    def __lt__(self, other: object) -> bool:
        if isinstance(other, str) and is_version(other):
            return self.rank < rank(other)
        return self.rank < other.rank if isinstance(other, Version) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.rank)

    def __str__(self) -> str:
        return self.text

    def within(self, bounds: str) -> bool:
        """Whether it meets every bound of `>=4.57, <5`."""
        tests = {
            "==": self.__eq__,
            "<": self.__lt__,
            "<=": lambda v: self < v or self == v,
            ">": lambda v: not (self < v or self == v),
            ">=": lambda v: not self < v,
        }
        return all(tests[op](value) for op, value in parse_bounds(bounds))


def is_version(text: str) -> bool:
    """Whether the text is digits and dots, as versions are written here."""
    return bool(_VERSION.fullmatch(text))


def rank(text: str) -> Fraction:
    """A number in the order of versions."""
    return sum(
        (Fraction(int(part), _STEP**i) for i, part in enumerate(text.split("."))), Fraction(0)
    )


def parse_bounds(bounds: str) -> list[tuple[str, str]]:
    """`>=4.57, <5` as (operator, version) pairs; raises ValueError."""
    found = []
    for part in bounds.split(","):
        match = _BOUND.fullmatch(part.strip())
        if not match or not is_version(match.group(2)):
            raise ValueError(f"`{bounds}` is not a version range such as >=4.57, <5")
        found.append((match.group(1), match.group(2)))
    return found
