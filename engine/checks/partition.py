"""Do conditions cut the space of runs so that exactly one holds everywhere?

Discrete names are enumerated; comparisons of one name with numbers or versions become intervals,
and an unknown version is a point of its own; any other comparison of amounts is taken as free to
be smaller, equal or larger. Combinations of flags that `flags.yaml` refuses are left out.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from .. import expression as ex, versions
from ..printer import TEXT, Printer

MAX_COMBINATIONS = 20_000

Domain = Callable[[str], tuple[Any, ...] | None]  # values of a discrete name, None for a number


class TooMany(Exception):
    """More combinations than can be enumerated."""


@dataclass
class Space:
    """The independent choices that a set of conditions depends on."""

    words: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    points: dict[str, list[Fraction]] = field(default_factory=dict)  # name -> thresholds
    versions: dict[str, list[str]] = field(default_factory=dict)  # name -> thresholds as written
    pairs: dict[tuple[str, str], None] = field(default_factory=dict)  # (left, right) as text

    def combinations(self) -> Iterator[dict[Any, Any]]:
        """Every combination; a pair is -1, 0 or 1 for smaller, equal, larger."""
        axes: list[tuple[Any, Sequence[Any]]] = [(n, v) for n, v in self.words.items()]
        axes += [(n, samples(p)) for n, p in self.points.items()]
        axes += [(n, versions.samples(p)) for n, p in self.versions.items()]
        axes += [(pair, (-1, 0, 1)) for pair in self.pairs]
        size = 1
        for _, values in axes:
            size *= len(values)
        if size > MAX_COMBINATIONS:
            raise TooMany(f"{size:,}")
        keys = [key for key, _ in axes]
        for values in itertools.product(*(v for _, v in axes)):
            yield dict(zip(keys, values, strict=True))


def samples(thresholds: Sequence[Fraction]) -> list[Fraction]:
    """One number below, on, between and above the thresholds."""
    cuts = sorted(set(thresholds))
    found = [cuts[0] - 1]
    for left, right in itertools.pairwise(cuts):
        found += [left, (left + right) / 2]
    return [*found, cuts[-1], cuts[-1] + 1]


class Conditions:
    """Conditions over one space, each a three-valued-free evaluation of its tree."""

    def __init__(
        self,
        conditions: Mapping[str, ex.Node | None],
        domain: Domain,
        number: Callable[[str], Fraction | None],
    ) -> None:
        self.conditions, self.domain, self.number = conditions, domain, number
        self.space = Space()
        for tree in conditions.values():
            if tree is not None:
                self.collect(tree)

    def collect(self, node: ex.Node) -> None:
        if isinstance(node, ex.Compare):
            self.comparison(node)
        elif isinstance(node, ex.Name):
            values = self.domain(node.id)
            self.space.words[node.id] = values if values is not None else (True, False)
        elif isinstance(node, ex.Fold):
            self.space.words[text_of(node)] = (True, False)
        else:
            for part in ex.children(node):
                self.collect(part)

    def comparison(self, node: ex.Compare) -> None:
        discrete = False
        for side in (node.left, node.right):
            values = self.domain(side.id) if isinstance(side, ex.Name) else None
            if values is not None and isinstance(side, ex.Name):
                self.space.words[side.id] = values
                discrete = True
        if discrete:
            return
        threshold, version = self.threshold(node), self.version(node)
        if threshold is not None:
            name, value = threshold
            self.space.points.setdefault(name, []).append(value)
        elif version is not None:
            name, text = version
            self.space.versions.setdefault(name, []).append(text)
        elif node.op in ("in", "not in"):
            self.space.words[text_of(node).replace(" not in ", " in ")] = (True, False)
        else:
            self.space.pairs[self.pair(node)[0]] = None

    def constant(self, node: ex.Node) -> Fraction | None:
        if isinstance(node, ex.Number):
            return Fraction(node.value)
        return self.number(node.id) if isinstance(node, ex.Name) else None

    def threshold(self, node: ex.Compare) -> tuple[str, Fraction] | None:
        """(name, number) of a comparison of one name with a number."""
        for side, other in ((node.left, node.right), (node.right, node.left)):
            value = self.constant(other)
            if isinstance(side, ex.Name) and value is not None and self.constant(side) is None:
                return side.id, value
        return None

    @staticmethod
    def version(node: ex.Compare) -> tuple[str, str] | None:
        """(name, text) of a comparison of one name with a version or the word `unknown`."""
        if node.op in ("in", "not in"):
            return None
        for side, other in ((node.left, node.right), (node.right, node.left)):
            if isinstance(side, ex.Name) and isinstance(other, ex.Text):
                text = other.value
                if text == versions.UNKNOWN or versions.is_version(text):
                    return side.id, text
        return None

    @staticmethod
    def pair(node: ex.Compare) -> tuple[tuple[str, str], int]:
        """The compared texts in a fixed order, and -1 if they were swapped."""
        left, right = text_of(node.left), text_of(node.right)
        return ((left, right), 1) if left <= right else ((right, left), -1)

    def holds(self, name: str, point: Mapping[Any, Any]) -> bool:
        """Whether one condition holds at a point of the space."""
        tree = self.conditions[name]
        return True if tree is None else bool(self.value(tree, point))

    def value(self, node: ex.Node, point: Mapping[Any, Any]) -> Any:
        if isinstance(node, ex.Logic):
            parts = (self.value(p, point) for p in node.parts)
            return all(parts) if node.op == "and" else any(parts)
        if isinstance(node, ex.Not):
            return not self.value(node.value, point)
        if isinstance(node, ex.Compare):
            return self.compare(node, point)
        if isinstance(node, ex.Name):
            return point[node.id] if node.id in point else self.number(node.id)
        if isinstance(node, (ex.Text, ex.Truth, ex.Number)):
            return node.value
        if isinstance(node, ex.Words):
            return tuple(self.value(i, point) for i in node.items)
        if isinstance(node, ex.Choice):
            return self.value(node.yes if self.value(node.test, point) else node.no, point)
        return point[text_of(node)]

    def compare(self, node: ex.Compare, point: Mapping[Any, Any]) -> bool:
        discrete = any(
            isinstance(s, ex.Name) and self.domain(s.id) is not None
            for s in (node.left, node.right)
        )
        ranged = self.threshold(node) is not None or self.version(node) is not None
        if not discrete and not ranged:
            if node.op in ("in", "not in"):
                found = bool(point[text_of(node).replace(" not in ", " in ")])
                return found if node.op == "in" else not found
            pair, sign = self.pair(node)
            return apply(node.op, point[pair] * sign, 0)
        return apply(node.op, self.value(node.left, point), self.value(node.right, point))


def apply(op: str, left: Any, right: Any) -> bool:
    """One comparison of plain values."""
    if op == "in":
        return left in right
    if op == "not in":
        return left not in right
    return (
        bool({"==": left == right, "!=": left != right}.get(op))
        if op in ("==", "!=")
        else bool(
            {
                "<": lambda: left < right,
                "<=": lambda: left <= right,
                ">": lambda: left > right,
                ">=": lambda: left >= right,
            }[op]()
        )
    )


def text_of(node: ex.Node) -> str:
    """A canonical spelling of a tree."""
    return Printer(TEXT).show(node)


@dataclass(frozen=True)
class Verdict:
    """What the enumeration found: a point where none holds, where two do, and which never hold."""

    gap: Mapping[Any, Any] | None
    overlap: tuple[str, str, Mapping[Any, Any]] | None
    never: tuple[str, ...]


def partition(conditions: Conditions, possible: Callable[[Mapping[Any, Any]], bool]) -> Verdict:
    """Enumerate the space; raises `TooMany` where it is too large."""
    gap, overlap = None, None
    seen: set[str] = set()
    for point in conditions.space.combinations():
        if not possible(point):
            continue
        held = [name for name in conditions.conditions if conditions.holds(name, point)]
        seen.update(held)
        if not held and gap is None:
            gap = point
        if len(held) > 1 and overlap is None:
            overlap = (held[0], held[1], point)
    return Verdict(gap, overlap, tuple(n for n in conditions.conditions if n not in seen))


def describe(point: Mapping[Any, Any]) -> str:
    """A point in words: `quant=nf4, A_logits < A_layer`."""
    signs = {-1: "<", 0: "==", 1: ">"}
    parts = []
    for key, value in point.items():
        if isinstance(key, tuple):
            parts.append(f"{key[0]} {signs[value]} {key[1]}")
        elif isinstance(value, bool):
            parts.append(f"{key}={str(value).lower()}")
        else:
            parts.append(f"{key}={value}")
    return ", ".join(parts) or "any run"
