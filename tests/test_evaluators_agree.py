"""One tree, three evaluators: exact, NumPy and sympy give the same value.

Random expressions are made as text and read by the parser, so its grammar is covered too. Then the
same is asked of every expression in the formula files.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
import sympy
from hypothesis import assume, given, settings, strategies as st

from fitcheck.engine import expression as ex
from fitcheck.engine.algebra import EXACT, Algebra, EvaluationError, Keep, Loop, Thunk
from fitcheck.engine.api import rules_for
from fitcheck.engine.arrays import Coded
from fitcheck.engine.columns import floats, stacked
from fitcheck.engine.local_values import evaluate, random_values, trees
from fitcheck.engine.numpy_algebra import NUMPY
from fitcheck.engine.symbolic import TRUTH, WORD, WORDS, Names, assumptions, to_sympy
from fitcheck.engine.sympy_algebra import word
from fitcheck.engine.versions import Version

RULES = rules_for()
SPELLED = ("nf4", "none", "int8", "3b")
CONFIGURATIONS = 6


class Fragile(Exception):
    """The exact value hangs on less than float64 keeps, so the comparison says nothing."""


def steady(result: Any, *parts: Any) -> Any:
    """A sum or remainder, unless most digits of its parts cancel."""
    whole = all(isinstance(v, int) and abs(v) < 2**50 for v in (result, *parts))
    if not whole and abs(result) < max(map(abs, parts)) / 20:
        raise Fragile
    return result


def apart(left: Any, right: Any) -> None:
    """Two numbers that are equal, or different enough."""
    number = isinstance(left, (int, Fraction)) and left != right
    if number and abs(left - right) < max(abs(left), abs(right)) / 10**9:
        raise Fragile


def watched(name: str, exact: Callable[..., Any]) -> Callable[..., Any]:
    """The exact operator `name`, which raises `Fragile` where float64 could answer otherwise."""

    def operator(*values: Any) -> Any:
        if name in ("ceil", "floor", "power_of_two_floor"):
            apart(values[0], round(values[0]))
        elif name == "%" and values[1]:
            apart(quotient := Fraction(values[0]) / values[1], round(quotient))
        elif name in Algebra.compare:
            apart(*values)
        result = exact(*values)
        return steady(result, *values) if name in ("+", "-", "%") else result

    return operator


class Careful(Algebra):
    """The exact evaluator, which stops where rounding to float64 would decide the answer."""

    binary = MappingProxyType({n: watched(n, f) for n, f in Algebra.binary.items()})
    compare = MappingProxyType({n: watched(n, f) for n, f in Algebra.compare.items()})
    functions = MappingProxyType({n: watched(n, f) for n, f in Algebra.functions.items()})

    def fold(self, node: ex.Fold, run: Any, rows: Sequence[Loop], body: Thunk, keep: Keep) -> Any:
        kept = [row for row in rows if keep is None or keep(run, row)]
        if node.kind == "sum" and kept:
            values = [body(run, row) for row in kept]
            return steady(sum(values), *values)
        return super().fold(node, run, kept, body, None)


CAREFUL = Careful()


class Writer:
    """Draws expressions as text; `wild` ones may divide by zero or take the largest of nothing."""

    def __init__(self, draw: st.DrawFn, wild: bool) -> None:
        self.draw, self.wild, self.loops = draw, wild, 0

    def pick(self, *options: str) -> str:
        return self.draw(st.sampled_from(options))

    def number(self, depth: int, bound: Mapping[str, str]) -> str:
        leaves = ["a", "b", "n", "x", "0", "1", "2", "7.4", "0.25", "1_024", "3"]
        leaves += [f"{field}[{var}]" for var, fields in bound.items() for field in fields.split()]
        if depth == 0:
            return self.pick(*leaves)
        kind = self.pick(
            "leaf", "sum", "sum", "product", "product", "quotient", "power", "negative", "choice",
            "extreme", "round", "two", "remainder", "fold", "fold", "bracket",
        )  # fmt: skip
        part = self.number(depth - 1, bound)
        match kind:
            case "sum":
                return f"{part} {self.pick('+', '-')} {self.number(depth - 1, bound)}"
            case "product":
                return f"({part}) * {self.number(depth - 1, bound)}"
            case "quotient":
                return f"({part}) / {self.divisor(depth, bound)}"
            case "remainder":
                return f"({part}) % {self.divisor(depth, bound)}"
            case "power":
                return f"{self.pick(*leaves)} ** {self.pick('0', '1', '2', '3')}"
            case "negative":
                return f"-({part})"
            case "choice":
                test, other = self.truth(depth - 1, bound), self.number(depth - 1, bound)
                return f"({part} if {test} else {other})"
            case "extreme":
                return f"{self.pick('max', 'min', 'Max')}({part}, {self.number(depth - 1, bound)})"
            case "round":
                return f"{self.pick('ceil', 'floor', 'ceiling')}({part})"
            case "two":
                return f"power_of_two_floor({part if self.wild else f'max(1, {part})'})"
            case "fold":
                return self.fold(self.pick("sum", "max", "min", "count"), depth, bound)
            case "bracket":
                return f"({part})"
        return part

    def divisor(self, depth: int, bound: Mapping[str, str]) -> str:
        if self.wild and self.draw(st.booleans()):
            return f"({self.number(depth - 1, bound)})"
        return self.pick("a", "b", "4", "0.5", "(1 + x)")

    def truth(self, depth: int, bound: Mapping[str, str]) -> str:
        leaves = ["p", "q", "true", 'w == "nf4"', 'w != "none"', 'w in ["nf4", "int8"]', "w in ws",
                  '"3b" not in ws', "a > b", "not p"]  # fmt: skip
        leaves += [f"name[{var}] in ws" for var, fields in bound.items() if "u" in fields]
        kind = self.pick("leaf", "compare", "and", "or", "not", "any", "same") if depth else "leaf"
        if kind == "compare":
            op = self.pick("<", "<=", ">", ">=", "==", "!=")
            return f"{self.number(depth - 1, bound)} {op} {self.number(depth - 1, bound)}"
        if kind in ("and", "or"):
            left, right = self.truth(depth - 1, bound), self.truth(depth - 1, bound)
            return f"({left}) {kind} ({right})"
        if kind == "not":
            return f"not ({self.truth(depth - 1, bound)})"
        if kind == "any":
            return self.fold("any", depth, bound)
        if kind == "same":
            return f"({self.truth(depth - 1, bound)}) == ({self.truth(depth - 1, bound)})"
        return self.pick(*leaves)

    def fold(self, kind: str, depth: int, bound: Mapping[str, str]) -> str:
        self.loops += 1
        outer, inner = f"g{self.loops}", f"m{self.loops}"
        loops, inside = f"for {outer} in xs", {**bound, outer: "u v"}
        if self.draw(st.booleans()):
            loops, inside = f"{loops} for {inner} in {outer}.ys", {**inside, inner: "z"}
        if self.draw(st.booleans()) and (self.wild or kind not in ("max", "min")):
            loops += f" if {self.truth(depth - 1, inside)}"
        if kind == "any":
            return f"any({self.truth(depth - 1, inside)} {loops})"
        return f"{kind}({'1' if kind == 'count' else self.number(depth - 1, inside)} {loops})"


@st.composite
def expressions(draw: st.DrawFn, wild: bool) -> ex.Node:
    writer = Writer(draw, wild)
    text = draw(st.sampled_from((writer.number, writer.number, writer.truth)))(4, {})
    try:
        return ex.parse(text)
    except ex.ExpressionError as error:
        assert error.code == "F209", (text, error)  # too large, and nothing else
        assume(False)
        raise


def random_names(rng: random.Random, shortest: int) -> dict[str, Any]:
    """Values for the names that the random expressions use."""

    def part() -> Fraction:
        return Fraction(rng.randint(0, 4000), rng.choice((1, 4, 5, 30)))

    def item() -> dict[str, Any]:
        inner = [{"z": rng.randint(-9, 99)} for _ in range(rng.randint(shortest, 2))]
        return {"u": rng.randint(1, 64), "v": part(), "name": rng.choice(SPELLED), "ys": inner}

    return {
        "a": rng.randint(1, 100),
        "b": rng.choice((1, 2, 1024, rng.randint(1, 9999))),
        "n": rng.randint(-20, 20),
        "x": part(),
        "p": rng.random() < 0.5,
        "q": rng.random() < 0.5,
        "w": rng.choice(SPELLED),
        "ws": tuple(rng.sample(SPELLED, rng.randint(0, 3))),
        "xs": [item() for _ in range(rng.randint(shortest, 3))],
    }


ASSUMED = {
    **{name: {"integer": True, "positive": True} for name in ("a", "b", "u")},
    **{name: {"integer": True} for name in ("n", "z")},
    **{name: {"real": True, "nonnegative": True} for name in ("x", "v")},
    **{"p": TRUTH, "q": TRUTH, "w": WORD, "name": WORD, "ws": WORDS},
}


def check_numpy(
    tree: ex.Node, runs: Sequence[Mapping[str, Any]], algebra: Algebra = CAREFUL
) -> int:
    """Compare all runs side by side with one after the other; returns how many said something."""
    with np.errstate(all="ignore"):
        together = evaluate(tree, floats(stacked(runs)), NUMPY)
    if isinstance(together, Coded):
        together = np.array(together.values, object)[together.codes]
    together = np.broadcast_to(together, len(runs))
    compared = 0
    for values, got in zip(runs, together.tolist(), strict=True):
        compared += 1
        try:
            exact = evaluate(tree, values, algebra)
        except EvaluationError:
            assert got != got, (tree, values)
            continue
        except (Fragile, KeyError):  # KeyError: a table without this cell
            compared -= 1
            continue
        if isinstance(exact, (bool, str, tuple)):
            assert got == exact, (tree, values)
        else:
            assert got == pytest.approx(float(exact), rel=1e-9, abs=0), (tree, values)
    return compared


def split(values: Mapping[str, Any], keep: Sequence[str] = ()) -> dict[str, Any]:
    """What cannot be a symbol: lists of words, items of lists, versions, and names in `keep`."""
    found: dict[str, Any] = {n: values[n] for n in keep if n in values}
    for name, value in values.items():
        if isinstance(value, (tuple, Version)):
            found[name] = value
        elif isinstance(value, list):
            found[name] = [split(item, keep) for item in value]
    return found


def picked(tree: ex.Node) -> set[str]:
    """The names whose letters count, because targets pick a module by its path."""
    calls = [n for n in ex.walk(tree) if isinstance(n, ex.Call) and n.function == "selected"]
    return {name for call in calls for arg in call.args[1:] for name in ex.names(arg)}


def value_at(values: Mapping[str, Any], name: str, place: Sequence[int]) -> Any:
    """The value behind a symbol such as z_1_2: `name` in the place-th items of nested lists."""
    holders: list[Mapping[str, Any]] = [values]
    for number in place:
        lists = [v for h in holders for v in h.values() if isinstance(v, list)]
        holders = [items[number - 1] for items in lists if len(items) >= number]
    return next(h[name] for h in holders if name in h)


def check_sympy(tree: ex.Node, values: Mapping[str, Any], names: Names) -> None:
    """Build the sympy object with symbols, put the values in, and compare exactly."""
    symbolic = to_sympy(tree, names)
    swap = {
        symbol: word(v) if isinstance(v := value_at(values, name, place), str) else sympy.sympify(v)
        for (name, *place), symbol in names.made.items()
    }
    exact = evaluate(tree, values)
    got = symbolic
    if isinstance(got, sympy.Basic):
        got = got.xreplace(swap)
        words = sorted((s for s in got.free_symbols if s.name[0] == '"'), key=str)
        if not isinstance(exact, str):
            got = got.xreplace({text: sympy.Integer(i) for i, text in enumerate(words)})
    assert got == (word(exact) if isinstance(exact, str) else exact), (tree, values, symbolic)


@settings(max_examples=400)
@given(tree=expressions(wild=True), seed=st.integers(0, 10**6))
def test_numpy_agrees_on_random_expressions(tree: ex.Node, seed: int) -> None:
    rng = random.Random(seed)
    check_numpy(tree, [random_names(rng, 0) for _ in range(CONFIGURATIONS)])


@settings(max_examples=200)
@given(tree=expressions(wild=False), seed=st.integers(0, 10**6))
def test_sympy_agrees_on_random_expressions(tree: ex.Node, seed: int) -> None:
    values = random_names(random.Random(seed), 1)
    check_sympy(tree, values, Names(ASSUMED, split(values)))


@pytest.mark.parametrize(
    "text",
    [
        "0.1 + 0.2 == 0.3",
        "floor(a * 0.95) + ceil(a * 0.07) + ceil(a / 0.3)",
        "a * 0.1 * 3 >= a * 0.3 and a * 0.7 <= a * 0.1 * 7 and not a * 0.7 < a * 0.1 * 7",
        "a * 0.7 % 0.1",
        "power_of_two_floor(a * 0.1 * 10)",
        "1 / n > 0 and p",
        "p and 1 / n > 0",
        "p or 1 / n > 0",
        "not 1 / n > 0",
        "1 if 1 / n > 0 else a",
        "1 if p else 1 / n",
        '("nf4" if 1 / n > 0 else w) == "nf4"',
        '("nf4" if p else w) if q else "none"',
        "sum(1 / n for g in xs)",
        "sum(u[g] for g in xs if 1 / n > 0)",
        "any(1 / n > 0 for g in xs)",
        "max(u[g] for g in xs for m in g.ys if z[m] > 0)",
        "min(v[g] for g in xs)",
        "count(1 for t in ws for g in xs if name[g] == t)",
        "any(t == w for t in ws)",
        "w in [w] and not w in []",
        "n % a + -n % 7 + n % -7 + 0.5 ** 4",
    ],
)
def test_ties_and_what_has_no_value(text: str) -> None:
    rng = random.Random(text)
    runs = [random_names(rng, 0) for _ in range(200)]
    runs += [{**run, "n": 0} for run in runs[:20]] + [{**run, "a": i} for i, run in enumerate(runs)]
    assert check_numpy(ex.parse(text), runs, EXACT) == len(runs)


EXPRESSIONS = [
    pytest.param(formula, tree, id=f"{formula.id}-{index}")
    for formula in RULES.formulas.values()
    for index, tree in enumerate(trees(formula))
]


@pytest.mark.parametrize(("formula", "tree"), EXPRESSIONS)
def test_every_expression_of_the_formula_files(formula: Any, tree: ex.Node) -> None:
    rng = random.Random(f"{formula.id} {tree}")
    runs = [random_values(RULES, formula, rng) for _ in range(40)]
    assert check_numpy(tree, runs) >= 10
    known = assumptions(RULES, formula)
    told = [*formula.constants, *formula.tables, *picked(tree)]
    for values in runs[:3]:
        try:
            evaluate(tree, values)
        except (EvaluationError, KeyError):
            continue
        check_sympy(tree, values, Names(known, split(values, told)))
