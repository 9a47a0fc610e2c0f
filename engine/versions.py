"""Library versions: compared part by part, as conditions and profile keys write them.

`2.4.0+cu121`, `5.0.0rc1` and `0.50.0.dev0` are read as libraries print them: a local part is
dropped, and a development, alpha, beta or candidate release comes before the release itself.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

UNKNOWN = "unknown"

_STEP = 10**6  # parts have at most five digits
_STAGES = {"dev": -4, "a": -3, "b": -2, "rc": -1, "": 0, "post": 1}
_TESTS: Mapping[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Version:
    """
    `4.57.1`; missing parts are zero, so 5 and 5.0 are equal. Compares with text too.

    An unknown version is smaller, larger and equal to nothing but the word `unknown`, so that a
    condition on it never holds by accident.
    """

    def __init__(self, text: str) -> None:
        if text != UNKNOWN and not is_version(text):
            raise ValueError(f"`{text}` is not a version such as 4.57 or 5.0.1")
        self.text = text

    def _test(self, op: str, other: object) -> Any:
        text = other.text if isinstance(other, Version) else other
        if not isinstance(text, str):
            return NotImplemented
        if UNKNOWN in (self.text, text):
            return op == "==" and self.text == text
        return is_version(text) and _TESTS[op](rank(self.text), rank(text))

    def __eq__(self, other: object) -> bool:
        result: bool = self._test("==", other)
        return result

    def __lt__(self, other: object) -> bool:
        result: bool = self._test("<", other)
        return result

    def __le__(self, other: object) -> bool:
        result: bool = self._test("<=", other)
        return result

    def __gt__(self, other: object) -> bool:
        result: bool = self._test(">", other)
        return result

    def __ge__(self, other: object) -> bool:
        result: bool = self._test(">=", other)
        return result

    def __hash__(self) -> int:
        return hash(self.text if self.text == UNKNOWN else rank(self.text))

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Version({self.text!r})"

    def within(self, bounds: str) -> bool:
        """Whether it meets every bound of `>=4.57, <5`."""
        return all(self._test(op, value) for op, value in parse_bounds(bounds))


def ranges_meet(first: str, second: str) -> bool:
    """Whether some version lies in both ranges; raises ValueError for what is no range."""
    bounds = [(op, rank(value)) for op, value in parse_bounds(first) + parse_bounds(second)]
    cuts = sorted({value for _, value in bounds})
    inner = [(low + high) / 2 for low, high in pairwise(cuts)]
    points = [cuts[0] - 1, *cuts, *inner, cuts[-1] + 1]
    return any(all(_TESTS[op](point, value) for op, value in bounds) for point in points)


def samples(thresholds: Sequence[str]) -> list[Version]:
    """The unknown version, and one below, on, between and above the thresholds."""
    cuts = [text for _, text in sorted({rank(t): t for t in thresholds if t != UNKNOWN}.items())]
    found = [between(low, high) for low, high in pairwise(["0.dev0", *cuts, "99999.99999"])]
    return [Version(text) for text in (UNKNOWN, *cuts, *found) if text is not None]


def between(low: str, high: str) -> str | None:
    """A version strictly between two, such as 4.57.1 for 4.57 and 4.58; None if there is none."""
    found, limit = _match(low), _match(high)
    if found is None or limit is None:
        return None
    base, stage, count = found["number"], found["stage"] or "post", int(found["count"] or 0)
    major = int(base.partition(".")[0])
    tries = [f"{major + 1}", *(f"{base}{zeros}.1" for zeros in ("", ".0", ".0.0")), base]
    tries += [f"{base}.{stage}{count + 1}", f"{limit['number']}.dev0"]
    return next((t for t in tries if is_version(t) and rank(low) < rank(t) < rank(high)), None)


def _match(text: str) -> re.Match[str] | None:
    number = r"(?P<number>[0-9]{1,5}(?:\.[0-9]{1,5}){0,3})"
    stage = r"(?:[.-]?(?P<stage>dev|a|b|rc|post)(?P<count>[0-9]{0,5}))?"
    return re.fullmatch(number + stage + r"(?:\+[A-Za-z0-9.]{1,40})?", text)


def is_version(text: str) -> bool:
    """Whether the text reads as a version."""
    return _match(text) is not None


def rank(text: str) -> Fraction:
    """A number in the order of versions; raises ValueError for other text."""
    found = _match(text)
    if found is None:
        raise ValueError(f"`{text}` is not a version")
    parts = found["number"].split(".")
    release = sum((Fraction(int(p), _STEP**i) for i, p in enumerate(parts)), Fraction(0))
    stage = _STAGES[found["stage"] or ""] * _STEP + int(found["count"] or 0)
    return release + Fraction(stage, _STEP**6)


def parse_bounds(bounds: str) -> list[tuple[str, str]]:
    """`>=4.57, <5` as (operator, version) pairs; raises ValueError."""
    found = []
    for part in bounds.split(","):
        match = re.fullmatch(r"(==|>=|<=|<|>)\s*(\S+)", part.strip())
        if not match or not is_version(match.group(2)):
            raise ValueError(f"`{bounds}` is not a version range such as >=4.57, <5")
        found.append((match.group(1), match.group(2)))
    return found
