"""Worked examples, evaluated with the values they give and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .. import expression as ex
from ..algebra import NO_LOOP, EvaluationError
from ..errors import InputProblem
from ..flags import check_value
from ..formula import VALUE, Case, Example, Formula, Table
from ..rules import Rules
from ..run import rounded
from ..scope import CURRENT


class MissingValue(Exception):
    """The example does not give a value that the formula reads."""


class ExampleRun:
    """A run over the values of one example."""

    def __init__(
        self, rules: Rules, formula: Formula, given: Mapping[str, Any], band: int = VALUE
    ) -> None:
        self.rules, self.formula, self.given, self.band = rules, formula, given, band
        self.by_source = {s.source: s.name for s in formula.symbols.values()}
        self.fields: dict[str, dict[str, str]] = {}
        for symbol in formula.symbols.values():
            if symbol.list_path:
                self.fields.setdefault(symbol.list_path, {})[symbol.name] = symbol.field
        self.lists = {
            n: self.convert(n, v)
            for n, v in given.items()
            if isinstance(v, list) and v and isinstance(v[0], dict)
        }
        per = formula.per
        self.current = self.item(per, given) if per else {}

    def item(self, path: str, values: Mapping[str, Any]) -> dict[str, Any]:
        """Local names to the field names of a list item."""
        names: Mapping[str, str] = self.fields.get(path, {})
        found: dict[str, Any] = {}
        for name, value in values.items():
            inner = f"{path}.{name}"
            if isinstance(value, list) and inner in self.fields:
                found[name] = self.convert(inner, value)
            else:
                found[names.get(name, name)] = tuple(value) if isinstance(value, list) else value
        return found

    def convert(self, path: str, items: Sequence[Any]) -> list[dict[str, Any]]:
        return [self.item(path, i) for i in items]

    def get(self, name: str) -> Any:
        if name not in self.given:
            raise MissingValue(name)
        value = self.given[name]
        return tuple(value) if isinstance(value, list) else value

    def flag(self, name: str) -> Any:
        value = self.get(self.by_source.get(f"flags.{name}", name))
        flag = self.rules.flags.flags.get(name)
        if flag is None or flag.kind != "version":
            return value
        try:
            return check_value(flag, value)
        except InputProblem as error:
            raise EvaluationError(str(error).rstrip(".")) from None

    def fact(self, record: str, name: str) -> Any:
        return self.get(self.by_source[f"{record}.{name}"])

    def profile_value(self, kind: str, name: str) -> Any:
        return self.get(self.by_source[f"profiles.{kind}.{name}"])

    def items(self, name: str) -> Sequence[Any]:
        if name not in self.lists:
            raise MissingValue(name)
        return self.lists[name]

    def cell(self, table: Table, key: tuple[Any, ...] | None = None) -> Any:
        if key is None:
            key = tuple(self.flag(a) for a in table.axes)
        value = table.cell(key)
        if value is None:
            raise EvaluationError(f"the table `{table.name}` has no cell for {key}")
        return value

    def value(self, name: str) -> Any:
        return self.get(name)

    def value_at(self, name: str, item: Mapping[str, Any]) -> Any:
        if name not in item:
            raise MissingValue(name)
        return item[name]


def evaluate(
    rules: Rules, formula: Formula, given: Mapping[str, Any], band: int = VALUE
) -> tuple[Case | None, Any]:
    """
    The case that holds for these values, and the result.

    Raises `MissingValue` for a name that is not given, `EvaluationError` where there is no answer.
    """
    run = ExampleRun(rules, formula, given, band)
    loop = {CURRENT: run.current} if formula.per else NO_LOOP
    for case, when, expr in rules.compiled(formula.id).cases:
        try:
            if when is None or when(run, loop):
                value = expr(run, loop)
                return case, rounded(value) if formula.rounded else value
        except KeyError as error:
            raise MissingValue(str(error.args[0])) from None
    return None, None


def unknown_names(formula: Formula, example: Example) -> list[str]:
    """Names an example gives and the formula does not know."""
    lists = {p.split(".")[0] for s in formula.symbols.values() if (p := s.list_path)}
    lists |= {"layer_groups", "phases", "components", *loops(formula)}
    known = formula.declared() | lists
    return [n for n in example.given if n not in known]


def loops(formula: Formula) -> set[str]:
    """The lists that a formula runs over by name, those inside its own list item too."""
    trees = [tree for case in formula.cases for tree in (case.when, case.expr) if tree is not None]
    folds = [node for tree in trees for node in ex.walk(tree) if isinstance(node, ex.Fold)]
    return {loop.source for fold in folds for loop in fold.loops if loop.of is None}
