"""Expressions with the values of their local names given directly, and random ones to try."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

from . import expression as ex
from .algebra import EXACT, NO_LOOP, Algebra, Loop, Thunk, compile_tree
from .formula import Formula, Symbol
from .rules import Rules

PLACES = {"selected": 2, "named": 2, "layers_in": 0}  # which argument says layers


class LocalNames:
    """A lookup that asks the run for every name, with its `name`, `item` and `items`."""

    def name(self, node: ex.Name) -> Thunk:
        return lambda run, loop: loop[node.id] if node.id in loop else run.name(node.id)

    def item(self, node: ex.Item) -> Thunk:
        return lambda run, loop: run.item(node.id, loop[node.var])

    def position(self, node: ex.Position, index: Thunk) -> Thunk:
        return lambda run, loop: run.name(node.id)[index(run, loop)]

    def items(self, loop: ex.Loop) -> Callable[[Any, Loop], Sequence[Any]]:
        return lambda run, bound: run.items(loop, bound[loop.of] if loop.of else None)


LOCAL = LocalNames()


class Values:
    """A run that knows local names by value; lists hold one mapping for each item."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self.given = given

    def name(self, name: str) -> Any:
        return self.given[name]

    def item(self, name: str, item: Mapping[str, Any]) -> Any:
        return item[name]

    def items(self, loop: ex.Loop, of: Mapping[str, Any] | None) -> Sequence[Any]:
        found: Sequence[Any] = (self.given if of is None else of)[loop.source]
        return found


def evaluate(tree: ex.Node, given: Mapping[str, Any], algebra: Algebra = EXACT) -> Any:
    """The value of an expression; raises `EvaluationError`, or `KeyError` for a missing name."""
    return compile_tree(tree, algebra, LOCAL)(Values(given), NO_LOOP)


def trees(formula: Formula) -> Iterator[ex.Node]:
    """Every expression of a formula file."""
    yield from (case.expr for case in formula.cases)
    whens = [c.when for c in formula.cases] + [limit.when for limit in formula.limits]
    yield from (when for when in whens if when is not None)


def flag_combinations(rules: Rules, formula: Formula) -> list[dict[str, Any]]:
    """Every possible combination of the discrete flags that a formula or its tables name."""
    axes = [axis for table in formula.tables.values() for axis in table.axes]
    names = [n for n in dict.fromkeys((*formula.flags, *axes)) if n in rules.flags.flags]
    flags = [rules.flags.flags[name] for name in names]
    domains = {flag.id: flag.domain for flag in flags if flag.domain is not None}
    found = [dict(zip(domains, values, strict=True)) for values in product(*domains.values())]
    return [values for values in found if rules.flags.possible(values)]


def fixed(formula: Formula, flags: Mapping[str, Any]) -> dict[str, Any]:
    """Constants, flags, and the table cells for these flags; a missing cell is left out."""
    values: dict[str, Any] = {name: c.value for name, c in formula.constants.items()}
    return {**values, **flags, **cells(formula, flags)}


def cells(formula: Formula, known: Mapping[str, Any]) -> dict[str, Any]:
    """The table cells whose axes are all known."""
    found = {
        name: table.cell(tuple(known[axis] for axis in table.axes))
        for name, table in formula.tables.items()
        if known.keys() >= {*table.axes}
    }
    return {name: cell for name, cell in found.items() if cell is not None}


def random_values(rules: Rules, formula: Formula, rng: random.Random) -> dict[str, Any]:
    """Random values for everything that a formula declares, each within its declared domain."""
    return _Sampler(rules, formula, rng).values()


class _Sampler:
    def __init__(self, rules: Rules, formula: Formula, rng: random.Random) -> None:
        self.rules, self.formula, self.rng = rules, formula, rng
        nodes = [node for tree in trees(formula) for node in ex.walk(tree)]
        flags = rules.flags.flags.values()
        words = {word for flag in flags for preset in flag.presets.values() for word in preset}
        words |= {*rules.phases, *(node.value for node in nodes if isinstance(node, ex.Text))}
        self.words = sorted(words)
        self.lists = {  # names on the right of `in`
            node.right.id
            for node in nodes
            if isinstance(node, ex.Compare) and isinstance(node.right, (ex.Name, ex.Item))
            if node.op in ("in", "not in")
        }
        self.places = {  # names that say which layers a group stands for
            argument.id
            for node in nodes
            if isinstance(node, ex.Call) and node.function in PLACES
            for argument in (node.args[PLACES[node.function]],)
            if isinstance(argument, (ex.Name, ex.Item))
        }
        self.fields: dict[str, list[str]] = {}
        for name, symbol in formula.symbols.items():
            self.fields.setdefault(self.local(symbol.list_path), []).append(name)
        for name in formula.reads:
            self.fields.setdefault(self.local(rules.per(name)), []).append(name)
        for path in list(self.fields):
            while path:
                path = path.rpartition(".")[0]
                self.fields.setdefault(path, [])

    def local(self, path: str | None) -> str:
        """A list path as seen from the item that the formula is for; "" for plain names."""
        per = self.formula.per
        if path is None or path == per:
            return ""
        return path[len(per) + 1 :] if per and path.startswith(f"{per}.") else path

    def values(self) -> dict[str, Any]:
        flags = self.rng.choice(flag_combinations(self.rules, self.formula))
        for name in self.formula.flags:
            if name not in flags:
                flag = self.rules.flags.flags[name]
                if flag.kind == "version":
                    value: Any = self.rules.flags.check(flag, self.rng.choice(("4.5", "unknown")))
                elif flag.kind == "share":
                    value = Fraction(self.rng.randint(1, 100), 100)
                else:
                    words = flag.kind == "words"
                    value = self.some_words() if words else self.amount(flag.low, True)
                flags[name] = value
        values = fixed(self.formula, flags)
        return {**values, **self.entry("", values)}

    def entry(self, path: str, outer: Mapping[str, Any]) -> dict[str, Any]:
        """Values for the names of one list item, and items for the lists inside it."""
        values = {name: self.value(name) for name in self.fields.get(path, ())}
        known = {**outer, **values}
        found = cells(self.formula, known)
        values.update({name: cell for name, cell in found.items() if name not in outer})
        for other in self.fields:
            parent, _, last = other.rpartition(".")
            if other and parent == path:
                items = [self.entry(other, known) for _ in range(self.rng.randint(1, 3))]
                values[last] = items
        return values

    def value(self, name: str) -> Any:
        symbol: Symbol | None = self.formula.symbols.get(name)
        if symbol is None:
            other = self.rules.formula(name)
            if other.unit.text == "truth":
                return self.rng.random() < 0.5
            if other.unit.text == "text":
                return self.rng.choice(other.oneof or self.words)
            return self.amount(0 if other.claims.get("nonnegative") else None, other.rounded)
        axis = [
            key[table.axes.index(name)]
            for table in self.formula.tables.values()
            if name in table.axes
            for key in table.cells
        ]
        if symbol.oneof or axis:
            return self.rng.choice(symbol.oneof or axis)
        if name in self.places:
            first = self.rng.randint(0, 9)
            return f"{first}-{first + self.rng.randint(0, 5)} {first + 10}"
        if symbol.unit is None and symbol.low is None and not symbol.integer:
            return self.some_words() if name in self.lists else self.rng.choice(self.words)
        return self.amount(symbol.low, symbol.integer)

    def some_words(self) -> tuple[str, ...]:
        return tuple(self.rng.sample(self.words, self.rng.randint(0, min(3, len(self.words)))))

    def amount(self, low: Any, integer: bool) -> int | Fraction:
        """A number from small to large; below 0 now and then where nothing forbids it."""
        size = int(2 ** self.rng.uniform(0, 24)) - 1
        if low is None and self.rng.random() < 0.3:
            size = -size
        return (low or 0) + (size if integer else Fraction(size, self.rng.choice((1, 1, 8, 1000))))
