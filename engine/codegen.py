"""The rules as one Python module, for wheels: records as constructor calls, expressions as lambdas.

Only files of this repository go in, at build time (`_fitcheck/build_hook.py`); what a person gives
with `--rules` is never turned into code. A test holds the module equal to the rule files.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from . import expression as ex
from .formula import Case, Evidence, Formula, Limit, Search
from .rules import Rules
from .scope import CURRENT, Scope
from .template import holes

HEAD = '''"""Generated from the rule files by engine/codegen.py. Do not edit."""
# ruff: noqa
# mypy: ignore-errors
from fractions import Fraction as F
from math import ceil, floor
from .arithmetic import divide, greatest, least, modulo, power_of_two_floor
from .architecture import Architecture
from .errors import Mark
from .flags import Conflict, Flag, FlagSet, Shorthand
from .formula import Case, Constant, Evidence, Formula, Limit, Search, Symbol, Table, Unparsed
from .profile import Profile
from .rules import Rules, Status
from .source_later import SourceLater
from .units import Unit, Units
'''

LAZY = (Case, Evidence, Limit, Search)  # their trees stay text
LEFT_OUT = ("claims", "examples")  # only the workshop needs them, and it reads the files


class Code(Scope):
    """Names as Python text instead of functions: what `Scope` binds, spelled out."""

    def of_name(self, node: ex.Name) -> str:
        name = node.id
        if name in self.loops:
            return f"v_{name}"
        if name in self.symbols:
            symbol = self.symbols[name]
            record, field = symbol.source.partition(".")[0], symbol.field
            if symbol.list_path is not None:
                return f"l[{CURRENT!r}][{field!r}]"
            if record == "flags":
                return f"r.flag({field!r})"
            if record == "profiles":
                return f"r.profile_value({symbol.source.split('.')[1]!r}, {field!r})"
            return f"r.fact({record!r}, {field!r})"
        if name in self.constants:
            band = self.constants[name].band
            if band[0] == band[2]:
                return number(band[1])
            return f"({', '.join(map(number, band))})[r.band]"
        if name in self.tables:
            return self.of_table(name, None)
        if name in self.flags:
            return f"r.flag({name!r})"
        if self.reads[name] is None:
            return f"r.value({name!r})"
        return f"r.value_at({name!r}, l[{CURRENT!r}])"

    def of_table(self, name: str, var: str | None) -> str:
        table = self.tables[name]
        axes = [
            self.of_item(ex.Item(0, axis, var))
            if var is not None and axis in self.symbols and self.symbols[axis].list_path
            else self.of_name(ex.Name(0, axis))
            for axis in table.axes
        ]
        return f"r.cell(T[{table.mark.path!r}, {name!r}], ({', '.join(axes)},))"

    def of_item(self, node: ex.Item) -> str:
        if node.id in self.tables:
            return self.of_table(node.id, node.var)
        if node.id in self.symbols:
            return f"v_{node.var}[{self.symbols[node.id].field!r}]"
        return f"r.value_at({node.id!r}, v_{node.var})"

    def of_list(self, loop: ex.Loop) -> str:
        if loop.of is not None:
            return f"v_{loop.of}[{loop.source!r}]"
        if loop.source in self.symbols or loop.source in self.flags:
            return self.of_name(ex.Name(loop.at, loop.source))
        if self.per and self.has_list(f"{self.per}.{loop.source}"):
            return f"l[{CURRENT!r}][{loop.source!r}]"
        return f"r.items({loop.source!r})"


def number(value: Any) -> str:
    """An exact number as Python text."""
    if isinstance(value, Fraction):
        return f"F({value.numerator}, {value.denominator})"
    return f"({value})" if value < 0 else str(value)


def code(node: ex.Node, scope: Code) -> str:
    """An expression as Python text that computes what `algebra.EXACT` does."""

    def of(part: ex.Node) -> str:
        return code(part, scope)

    if isinstance(node, ex.Number):
        return number(node.value)
    if isinstance(node, (ex.Text, ex.Truth)):
        return repr(node.value)
    if isinstance(node, ex.Words):
        return f"({', '.join(map(of, node.items))},)" if node.items else "()"
    if isinstance(node, ex.Name):
        return scope.of_name(node)
    if isinstance(node, ex.Item):
        return scope.of_item(node)
    if isinstance(node, (ex.Binary, ex.Compare)):
        left, right = of(node.left), of(node.right)
        named = {"/": "divide", "%": "modulo"}.get(node.op)
        return f"{named}({left}, {right})" if named else f"({left} {node.op} {right})"
    if isinstance(node, ex.Negative):
        return f"(-{of(node.value)})"
    if isinstance(node, ex.Not):
        return f"(not {of(node.value)})"
    if isinstance(node, ex.Logic):
        return f"({f' {node.op} '.join(f'bool({of(p)})' for p in node.parts)})"
    if isinstance(node, ex.Choice):
        return f"({of(node.yes)} if {of(node.test)} else {of(node.no)})"
    if isinstance(node, ex.Call):
        return f"{node.function}({', '.join(map(of, node.args))})"
    if isinstance(node, ex.Fold):
        return fold(node, scope)
    raise TypeError(f"no such node: {node!r}")


def fold(node: ex.Fold, scope: Code) -> str:
    """An aggregate as a generator expression."""
    body = "1" if node.kind == "count" else code(node.body, scope)
    loops = " ".join(f"for v_{p.var} in {scope.of_list(p)}" for p in node.loops)
    condition = f" if {code(node.condition, scope)}" if node.condition is not None else ""
    rows = f"{body} {loops}{condition}"
    if node.kind == "list":
        return f"tuple(dict.fromkeys({rows}))"
    named = {"max": "greatest", "min": "least", "count": "sum"}.get(node.kind, node.kind)
    return f"{named}({rows})"


class Module:
    """Collects the text of the generated module."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.functions: dict[tuple[str, str], str] = {}

    def function(self, path: str, text: str, scope: Scope) -> None:
        """Add the function of one expression text of one file."""
        if (path, text) in self.functions:
            return
        tree = ex.parse(text)
        names = Code(
            scope.symbols, scope.constants, scope.tables, scope.flags, scope.reads, scope.per
        ).inside(tree)
        assert isinstance(names, Code)
        self.functions[path, text] = f"lambda r, l: {code(tree, names)}"

    def collect(self) -> None:
        """The functions of every expression that an estimate can need."""
        rules = self.rules
        for formula in rules.formulas.values():
            self.formula(formula)
        for status in rules.statuses:
            scope, path = rules.scope(status.formula), status.formula.source.path
            self.function(path, status.when, scope)
            for when, says in status.because:
                self.function(path, when, scope)
                self.sentence(path, says, scope)
        flags = rules.flags
        for conflict in flags.conflicts:
            self.function(flags.source.path, conflict.when_text, flags.scope())
        if rules.hints is not None:
            scope = rules.open_scope()
            for entry in (*rules.hints.data["hints"], *rules.hints.data["levers"]):
                self.function(rules.hints.path, str(entry["when"]), scope)
                for name, value in entry["change"].items():
                    if flags.flags[name].kind == "integer" and isinstance(value, str):
                        self.function(rules.hints.path, value, scope)

    def formula(self, formula: Formula) -> None:
        scope, path = self.rules.scope(formula), formula.source.path
        for case in formula.cases:
            if case.when_text:
                self.function(path, case.when_text, scope)
            self.function(path, case.text, scope)
            self.sentence(path, case.says, scope)
        for limit in formula.limits:
            if limit.when_text:
                self.function(path, limit.when_text, scope)
            self.sentence(path, limit.says, scope)
        if formula.search is not None:
            self.function(path, formula.search.text, scope)
        for proof in formula.evidence.values():
            if proof.within_text:
                flags = self.rules.flags
                self.function(flags.source.path, proof.within_text, flags.scope())

    def sentence(self, path: str, text: str, scope: Scope) -> None:
        for hole, _, _ in holes(text):
            self.function(path, hole, scope)
