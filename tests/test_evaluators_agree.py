"""One tree, three evaluators: exact, NumPy and sympy give the same value.

Random expressions are made as text and read by the parser, so its grammar is covered too. Then the
same is asked of every expression in the formula files.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import sympy
from hypothesis import assume, given, settings, strategies as st

from fitcheck.engine import expression as ex
from fitcheck.engine.algebra import Algebra, EvaluationError, Row
from fitcheck.engine.api import rules_for
from fitcheck.engine.arrays import Coded
from fitcheck.engine.columns import floats, stacked
from fitcheck.engine.local_values import evaluate, random_values, trees
from fitcheck.engine.numpy_algebra import NUMPY
from fitcheck.engine.symbolic import LOGICAL, Names, assumptions, to_sympy
from fitcheck.engine.sympy_algebra import word

RULES = rules_for()
WORDS = ("nf4", "none", "int8", "3b")
CONFIGURATIONS = 6


class Fragile(Exception):
    """The exact value hangs on less than float64 keeps, so the comparison says nothing."""


def _whole(*values: Any) -> bool:
    return all(isinstance(v, int) and abs(v) < 2**50 for v in values)


def _steady(result: Any, *parts: Any) -> Any:
    """The sum, unless most digits of its parts cancel."""
    if not _whole(result, *parts) and abs(result) < max(map(abs, parts)) / 20:
        raise Fragile
    return result


def _apart(left: Any, right: Any) -> None:
    if isinstance(left, (int, Fraction)) and left != right:
        if abs(left - right) < max(abs(left), abs(right)) / 10**9:
            raise Fragile


def _steps(value: Any) -> Any:
    _apart(value, round(value))
    return value


class Careful(Algebra):
    """The exact evaluator, which stops where rounding to float64 would decide the answer."""

    binary = {
        **Algebra.binary,
        "+": lambda a, b: _steady(a + b, a, b),
        "-": lambda a, b: _steady(a - b, a, b),
        "%": lambda a, b: (
            _steps(Fraction(a) / b if b else 1) and _steady(Algebra.binary["%"](a, b), a)
        ),
    }
    compare = {
        op: (lambda a, b, test=test: (_apart(a, b), test(a, b))[1])
        for op, test in Algebra.compare.items()
    }
    functions = {
        **Algebra.functions,
        **{
            name: (lambda value, exact=Algebra.functions[name]: exact(_steps(value)))
            for name in ("ceil", "floor", "power_of_two_floor")
        },
    }

    def fold(self, node: ex.Fold, rows: Iterator[Row]) -> Any:
        kept = [(value, lambda: True, bound) for value, keep, bound in rows if keep()]
        if node.kind == "sum" and kept:
            values = [value() for value, _, _ in kept]
            return _steady(sum(values), *values)
        return super().fold(node, iter(kept))


CAREFUL = Careful()


class Writer:
    """Draws expressions as text. `wild` ones may divide by zero or ask for the largest of nothing."""

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
    text = draw(st.sampled_from((writer.number, writer.number, writer.truth)))(3, {})
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
        return {"u": rng.randint(1, 64), "v": part(), "name": rng.choice(WORDS), "ys": inner}

    return {
        "a": rng.randint(1, 100),
        "b": rng.choice((1, 2, 1024, rng.randint(1, 9999))),
        "n": rng.randint(-20, 20),
        "x": part(),
        "p": rng.random() < 0.5,
        "q": rng.random() < 0.5,
        "w": rng.choice(WORDS),
        "ws": tuple(rng.sample(WORDS, rng.randint(0, 3))),
        "xs": [item() for _ in range(rng.randint(shortest, 3))],
    }


ASSUMED = {
    **{name: {"integer": True, "positive": True} for name in ("a", "b", "u")},
    **{name: {"integer": True} for name in ("n", "z")},
    **{name: {"real": True, "nonnegative": True} for name in ("x", "v")},
    **dict.fromkeys(("p", "q", "w", "ws", "name"), LOGICAL),
}


def careful(tree: ex.Node, values: Mapping[str, Any]) -> Any:
    """The exact value; None where there is none."""
    try:
        return evaluate(tree, values, CAREFUL)
    except EvaluationError:
        return None


def check_numpy(tree: ex.Node, runs: Sequence[Mapping[str, Any]]) -> int:
    """Compare all runs side by side with one after the other; returns how many said something."""
    with np.errstate(all="ignore"):
        together = evaluate(tree, floats(stacked(runs)), NUMPY)
    if isinstance(together, Coded):
        together = np.array(together.values, object)[together.codes]
    together = np.broadcast_to(together, len(runs))
    compared = 0
    for values, got in zip(runs, together.tolist(), strict=True):
        try:
            exact = careful(tree, values)
        except (Fragile, KeyError):  # KeyError: a table without this cell
            continue
        compared += 1
        if exact is None:
            assert got != got, (tree, values)
        elif isinstance(exact, (bool, str, tuple)):
            assert got == exact, (tree, values)
        else:
            assert got == pytest.approx(float(exact), rel=1e-9, abs=0), (tree, values)
    return compared


def split(values: Mapping[str, Any], keep: Sequence[str] = ()) -> dict[str, Any]:
    """What sympy cannot have as a symbol: lists of words and the items of lists."""
    found: dict[str, Any] = {n: values[n] for n in keep if n in values}
    for name, value in values.items():
        if isinstance(value, tuple):
            found[name] = value
        elif isinstance(value, list):
            found[name] = [split(item) for item in value]
    return found


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
    codes = {w: sympy.Integer(i) for i, w in enumerate(("", *WORDS))}
    swap = {word(w): code for w, code in codes.items()}
    for (name, *place), symbol in names.made.items():
        value = value_at(values, name, place)
        if isinstance(value, str):
            swap[word(value)] = swap[symbol] = codes.setdefault(value, sympy.Integer(len(codes)))
        else:
            swap[symbol] = sympy.sympify(value)
    for text in (n.value for n in ex.walk(tree) if isinstance(n, ex.Text)):
        swap[word(text)] = codes.setdefault(text, sympy.Integer(len(codes)))
    exact = evaluate(tree, values)
    got = symbolic if isinstance(symbolic, (str, tuple)) else symbolic.xreplace(swap)
    want = codes.get(exact, exact) if isinstance(exact, str) and got != exact else exact
    assert got == want, (tree, values, symbolic)


@settings(max_examples=250)
@given(tree=expressions(wild=True), seed=st.integers(0, 10**6))
def test_numpy_agrees_on_random_expressions(tree: ex.Node, seed: int) -> None:
    rng = random.Random(seed)
    check_numpy(tree, [random_names(rng, 0) for _ in range(CONFIGURATIONS)])


@settings(max_examples=150)
@given(tree=expressions(wild=False), seed=st.integers(0, 10**6))
def test_sympy_agrees_on_random_expressions(tree: ex.Node, seed: int) -> None:
    values = random_names(random.Random(seed), 1)
    check_sympy(tree, values, Names(ASSUMED, split(values)))


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
    known, told = assumptions(RULES, formula), [*formula.constants, *formula.tables]
    for values in runs[:3]:
        try:
            evaluate(tree, values)
        except (EvaluationError, KeyError):
            continue
        check_sympy(tree, values, Names(known, split(values, told)))
