"""Formulas as sympy objects, built node by node from the parsed tree; no text is ever interpreted.

Every name becomes a `Symbol` made here, with the assumptions that its file states, so that names
such as `S` or `gamma` mean nothing special. This serves proofs and tests and is not needed to
answer a question. sympy is imported on first use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from . import expression as ex
from .algebra import NO_LOOP, EvaluationError, compile_tree
from .errors import InputProblem
from .formula import Case, Formula
from .local_values import LOCAL
from .rules import Rules
from .scope import suggest
from .sympy_algebra import SYMPY, Entry, plain

Assumptions = Mapping[str, bool]
REAL: Assumptions = {"real": True}
TRUTH: Assumptions = {}
WORD: Assumptions = {"integer": True}  # a word counts as its number among all words
WORDS: Assumptions = {"commutative": True}  # a list of words; never a symbol by itself


@dataclass
class Names:
    """
    The names of an expression as sympy objects.

    Parameters
    ----------
    assumptions : mapping
        Name to the assumptions of its symbol, or TRUTH, WORD or WORDS; real where absent.
    given : mapping
        Names that are not symbols: numbers, truths, words, and lists of words or of mappings.
    length : int, optional
        Items of a list that is not given; None keeps sums as `Sum` over an index.
    """

    assumptions: Mapping[str, Assumptions] = field(default_factory=dict)
    given: Mapping[str, Any] = field(default_factory=dict)
    length: int | None = 2
    made: dict[tuple[Any, ...], Any] = field(default_factory=dict)  # (name, *place) to symbol

    def name(self, name: str) -> Any:
        return self.item(name, Entry(self.given, ()))

    def item(self, name: str, entry: Entry) -> Any:
        import sympy

        if name in entry.given:
            return plain(entry.given[name])
        key = (name, *entry.place)
        if key not in self.made:
            text = "_".join(map(str, key))
            if entry.place and text in self.assumptions:  # h_1 is declared beside h[g]
                text = f"{name}[{', '.join(map(str, entry.place))}]"
            self.made[key] = sympy.Symbol(text, **self.assumptions.get(name, REAL))
        return self.made[key]

    def items(self, loop: ex.Loop, of: Entry | None) -> Sequence[Any]:
        import sympy

        outer = of or Entry(self.given, ())
        if loop.source in outer.given:
            found = outer.given[loop.source]
            if not any(isinstance(f, Mapping) for f in found):
                return tuple(found)
            return [Entry(f, (*outer.place, i)) for i, f in enumerate(found, 1)]
        if self.assumptions.get(loop.source) is WORDS:
            raise EvaluationError(f"the words of `{loop.source}` are not given")
        if self.length is None:
            return [Entry({}, (*outer.place, sympy.Symbol(loop.var, integer=True, positive=True)))]
        return [Entry({}, (*outer.place, i)) for i in range(1, self.length + 1)]


def to_sympy(tree: ex.Node, names: Names | None = None) -> Any:
    """The expression as a sympy object; raises `EvaluationError` where sympy has none."""
    return compile_tree(tree, SYMPY, LOCAL)(names or Names(), NO_LOOP)


def formula_to_sympy(
    rules: Rules, formula: Formula, case: Case | str, length: int | None = 2
) -> Any:
    """
    What a case says as a sympy object, with its constants as rational numbers.

    Lists are written out for `length` items, with symbols such as `h_1` and `d_in_1_2`; with None a
    sum over a list stays a `Sum`. Tables, flags and other quantities are symbols.
    """
    constants = {name: c.value for name, c in formula.constants.items()}
    names = Names(assumptions(rules, formula), constants, length)
    return to_sympy(case_of(formula, case).expr, names)


def case_of(formula: Formula, case: Case | str) -> Case:
    """The case itself or the one with this id; raises `InputProblem` where there is none."""
    if isinstance(case, Case):
        return case
    cases = {c.id: c for c in formula.cases}
    if case not in cases:
        raise InputProblem(f"`{formula.id}` has no case `{case}`.{suggest(case, cases)}")
    return cases[case]


def latex(rules: Rules, formula: Formula, case: Case | str) -> str:
    """What a case says in LaTeX: the author's order, names upright, decimals as written."""
    from .printer import LATEX, Printer

    return Printer(LATEX).show(case_of(formula, case).expr)


def assumptions(rules: Rules, formula: Formula) -> dict[str, Assumptions]:
    """What the files say about every name of a formula."""
    found: dict[str, Assumptions] = {}
    for name, table in formula.tables.items():
        found[name] = _number(min(table.cells.values()), False)
    for name, constant in formula.constants.items():
        found[name] = _number(constant.band[0], False)
    for name in formula.flags:
        flag = rules.flags.flags[name]
        kinds = {"choice": WORD, "switch": TRUTH, "integer": _number(flag.low, True)}
        kinds["share"] = _number(0, False)
        found[name] = kinds.get(flag.kind, WORDS)
    for name, symbol in formula.symbols.items():
        amount = symbol.unit is not None or symbol.integer or symbol.low is not None
        other = TRUTH if True in symbol.oneof else WORD
        found[name] = _number(symbol.low, symbol.integer) if amount else other
    for name in formula.reads:
        read = rules.formula(name)
        low = 0 if read.claims.get("nonnegative") else None
        kinds = {"truth": TRUTH, "text": WORD}
        found[name] = kinds.get(read.unit.text, _number(low, read.rounded))
    return found


def _number(low: Any, integer: bool) -> Assumptions:
    known = {"integer": True} if integer else {"real": True}
    if low is not None and low >= 0:
        known["positive" if low > 0 else "nonnegative"] = True
    return known


def prove_monotone(
    rules: Rules, formula: Formula, case: Case | str, symbol: str, direction: str = "rises"
) -> str:
    """
    Whether a case never falls (or never rises) as one of its names grows, all else unchanged.

    "proved" by the sign of derivatives, "refuted" by a counter-example, or "unknown";
    `monotone.judge` also says how.
    """
    from .monotone import judge

    return judge(rules, formula, case, symbol, direction).verdict
