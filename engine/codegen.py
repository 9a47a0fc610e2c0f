"""The rules as Python modules, for wheels: records as constructor calls, expressions as lambdas.

Only files of this repository go in, at build time (`_fitcheck/build_hook.py`); what a person gives
with `--rules` is never turned into code. A test holds the modules equal to the rule files.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from itertools import chain
from typing import Any

from . import expression as ex
from .architecture import Architecture
from .architecture_expressions import expressions
from .architecture_names import module_of
from .cards import all_cards, find_card, normalised
from .errors import Mark
from .formula import Formula, Unparsed
from .loading import Loader
from .modes import commands, modes_of
from .paths import bundled_root
from .plot_rules import Plot
from .rules import Rules
from .scope import CURRENT, Scope
from .source_later import MarkLater, SourceLater
from .sources.catalogue import Catalogue, folded
from .template import holes
from .versions import Version
from .yaml_source import Source, read

HEAD = '''"""Generated from the rule files by engine/codegen.py. Do not edit."""
# ruff: noqa
# mypy: ignore-errors
'''
NEEDED = """from fractions import Fraction as F
from math import ceil, floor

from .arithmetic import divide, entry, greatest, least, modulo, power_of_two_floor
from .selecting import layers_in, named, selected"""
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
        if node.id in self.flags and node.var in self.flags:  # an architecture file
            return f"entry({node.id!r}, r.flag({node.id!r}), r.flag({node.var!r}))"
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
    if isinstance(node, ex.Position):
        return f"entry({node.id!r}, r.flag({node.id!r}), {of(node.index)})"
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


class Literals:
    """Values and records as Python text; remembers which classes and files the text needs."""

    def __init__(self) -> None:
        self.classes: dict[str, str] = {}  # class name to module of the engine
        self.sources: dict[str, None] = {}

    def of(self, value: Any) -> str:
        """The text of a value."""
        if isinstance(value, Fraction):
            return number(value)
        if isinstance(value, (Source, SourceLater)):
            self.sources[value.path] = None
            return f"S[{value.path!r}]"
        if isinstance(value, Version):
            self.classes["Version"] = "versions"
            return f"Version({value.text!r})"
        if isinstance(value, Unparsed):
            self.classes["Unparsed"] = "formula"
            return f"Unparsed({self.of(value.source)}, {value.path!r}, {value.text!r})"
        if isinstance(value, Mapping):
            return "{" + ", ".join(f"{self.of(k)}: {self.of(v)}" for k, v in value.items()) + "}"
        if isinstance(value, tuple):
            return f"({', '.join(map(self.of, value))},)" if value else "()"
        if isinstance(value, list):
            return f"[{', '.join(map(self.of, value))}]"
        if isinstance(value, frozenset):
            return f"frozenset({self.of(tuple(sorted(value)))})"
        return self.record(value) if hasattr(type(value), "__record_fields__") else repr(value)

    def record(self, value: Any) -> str:
        if isinstance(value, MarkLater):
            value = Mark(value.path, value.line, value.column)
        kind = type(value)
        self.classes[kind.__name__] = kind.__module__.rpartition(".")[2]
        given = []
        for name in kind.__record_fields__:
            raw = value.__dict__[name]  # an expression that was not needed yet stays text
            if isinstance(value, Formula) and name in LEFT_OUT:
                raw = type(raw)()
            given.append("{}" if name == "functions" else self.of(raw))
        return f"{kind.__name__}({', '.join(given)})"

    def imports(self) -> str:
        """The import lines of the classes used so far."""
        return "\n".join(
            f"from .{home} import {name}" for name, home in sorted(self.classes.items())
        )


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

    def names(self) -> dict[tuple[str, str], tuple[str, ...]]:
        """The names that each case of a formula reads."""
        return {
            (formula.source.path, case.text): tuple(sorted(ex.names(case.expr)))
            for formula in self.rules.formulas.values()
            for case in formula.cases
        }

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
                self.sentence(status.formula, says, scope)
        if rules.mode is not None:
            scope, path = rules.scope(rules.mode.formula), rules.mode.formula.source.path
            for fact in rules.mode.facts:
                self.function(path, fact.when, scope)
                self.sentence(rules.mode.formula, fact.says, scope)
            for table in rules.mode.tables:
                self.function(path, table.when, scope)
            for plot in rules.mode.plots:
                if isinstance(plot, Plot):
                    self.sentence(rules.mode.formula, plot.label, scope)
        flags = rules.flags
        for conflict in flags.conflicts:
            self.function(flags.source.path, conflict.when_text, flags.scope())
        if rules.hints is not None:
            scope = rules.open_scope()
            parts = (rules.hints.data.get(part, ()) for part in ("hints", "levers", "recommend"))
            for entry in chain.from_iterable(parts):
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
            self.sentence(formula, case.says, scope)
        for limit in formula.limits:
            if limit.when_text:
                self.function(path, limit.when_text, scope)
            self.sentence(formula, limit.says, scope)
        if formula.search is not None:
            self.function(path, formula.search.text, scope)
        for proof in formula.evidence.values():
            if proof.within_text:
                flags = self.rules.flags
                self.function(flags.source.path, proof.within_text, flags.scope())

    def sentence(self, formula: Formula, text: str, scope: Scope) -> None:
        for hole, _, _ in holes(text):
            self.function(formula.source.path, hole, scope)
            self.rules.in_bytes(formula, hole)


def digest(root: str) -> str:
    """A hash over the names and contents of every rule file under a root."""
    found = hashlib.sha256()
    for folder in ("formulas", "gpus", "profiles"):
        for place, folders, names in os.walk(os.path.join(root, folder)):
            folders.sort()
            for name in sorted(names):
                if name.endswith(".yaml"):
                    path = os.path.join(place, name)
                    found.update(os.path.relpath(path, root).replace(os.sep, "/").encode())
                    with open(path, "rb") as handle:
                        found.update(handle.read())
    return found.hexdigest()


def read_rules(root: str, mode: str | None = None) -> Rules:
    """The rules of a root, of training or of a mode, with expressions still as text."""
    return Loader([(root, False)], lazy=True, mode=mode).load()


def rules_module(root: str, mode: str | None = None) -> str:
    """The text of `engine/_compiled.py`, or of its like for a mode: all but cards and models."""
    rules, name = read_rules(root, mode), of_mode(mode)
    module, literals = Module(rules), Literals()
    module.collect()
    arguments = [
        literals.of(part)
        for part in (
            rules.units,
            rules.flags,
            rules.phases,
            rules.hints,
            rules.formulas,
            {kind: list(profiles) for kind, profiles in rules.profiles.items()},
            list(rules.statuses),
            rules.lists,
        )
    ]
    arguments.insert(-1, f"[{', '.join(map(architecture_call, rules.architectures))}]")
    mode_text = literals.of(rules.mode)
    whole = [source for source in (rules.hints, rules.checkpoint) if source is not None]
    known = {source.path: source.data for source in whole}
    checkpoint = literals.of(rules.checkpoint)
    literals.sources.update({a.source.path: None for a in rules.architectures})
    sources = ",\n".join(
        f"    {path!r}: SourceLater({path!r}, {literals.of(known.get(path))})"
        for path in literals.sources
    )
    functions = ",\n".join(f"    {key!r}: {text}" for key, text in module.functions.items())
    given = ",\n        ".join(arguments)
    return f"""{HEAD}
from importlib import import_module

{NEEDED}
from .architecture import Architecture
from .architecture_names import module_of
from .rules import Rules
from .source_later import MarkLater, SourceLater
{literals.imports()}

DIGEST = {digest(root)!r}
FUNCTIONS = {{
{functions},
}}
NAMES = {module.names()!r}
IN_BYTES = {rules.holes_in_bytes!r}
S = {{
{sources},
}}
T = {{}}


def architecture(id, status, own, source):
    def data():
        made = import_module(__name__.replace({name!r}, module_of(id), 1))
        found.functions.update(made.FUNCTIONS)
        return made.DATA

    def origins():
        from .loading import load_rules

        return next(a for a in load_rules().architectures if a.id == id).origins

    found = Architecture(id, status, own, source, False, data, origins)
    return found


def rules(root):
    found = Rules(
        [(root, False)],
        {given},
    )
    found.mode, found.checkpoint = {mode_text}, {checkpoint}
    found.functions, found.names, found.holes_in_bytes = dict(FUNCTIONS), NAMES, IN_BYTES
    for (path, text), function in FUNCTIONS.items():
        if path == found.flags.source.path:
            found.flags.functions[text] = function
    for formula in found.formulas.values():
        for name, table in formula.tables.items():
            T[formula.source.path, name] = table
    return found
"""


def architecture_call(architecture: Architecture) -> str:
    """The text that makes an architecture whose data is in a module of its own."""
    own = {k: v for k, v in architecture.own.items() if k in ("matches", "refuse")}
    path = architecture.source.path
    return f"architecture({architecture.id!r}, {architecture.status!r}, {own!r}, S[{path!r}])"


def architecture_modules(root: str) -> Iterator[tuple[str, str]]:
    """(file name, text) of a module for each architecture: a run needs one or two of them."""
    rules = read_rules(root)
    fields = {name for a in rules.architectures for name in a.own.get("fields", {})}
    for architecture in rules.architectures:
        if "matches" not in architecture.own or "refuse" in architecture.own:
            continue
        data, functions = architecture.data, {}
        for placed in expressions(data, {*rules.stack, *(fields if "text" in data else ())}):
            if placed.text not in functions:
                tree = ex.parse(placed.text)
                names = Code({}, {}, {}, placed.names, {}).inside(tree)
                assert isinstance(names, Code)
                functions[placed.text] = f"lambda r, l: {code(tree, names)}"
        body = ",\n".join(f"    {text!r}: {function}" for text, function in functions.items())
        shown = {k: v for k, v in data.items() if k not in ("evidence", "title", "id")}
        yield (
            f"{module_of(architecture.id)}.py",
            f"{HEAD}\n{NEEDED}\n\nDATA = {Literals().of(shown)}\nFUNCTIONS = {{\n{body},\n}}\n",
        )


def cards_module(root: str) -> str:
    """The text of `engine/_compiled_cards.py`: every card, and the names that mean just one."""
    literals, folders = Literals(), [(os.path.join(root, "gpus"), False)]
    units = read_rules(root).units
    names: dict[str, str] = {}
    entries = []
    for card in all_cards(folders, units):
        entries.append(f"    {card.id!r}: lambda: {literals.of(card)}")
        for name in (card.id, *read(os.path.join(root, "gpus", f"{card.id}.yaml")).data["aliases"]):
            if find_card(str(name), folders, units).note == "":
                names[normalised(str(name))] = card.id
    body = ",\n".join(entries)
    return f"""{HEAD}
{literals.imports()}

NAMES = {names!r}
CARDS = {{
{body},
}}
"""


def models_module(root: str) -> str:
    """The text of `engine/_compiled_models.py`: the model catalogue by every name."""
    catalogue = Catalogue(os.path.join(root, "profiles", "models"))
    names: dict[str, str] = {}
    entries = []
    for entry in catalogue.entries():
        for name in (entry.hub_id, *entry.aliases):
            names[folded(name)] = entry.file
        entries.append(f"    {entry.file!r}: {tuple(vars(entry).values())!r}")
    body = ",\n".join(entries)
    return f"""{HEAD}
NAMES = {names!r}
ENTRIES = {{
{body},
}}
"""


MODULES: Mapping[str, Callable[[str], str]] = {
    "_compiled.py": rules_module,
    "_compiled_cards.py": cards_module,
    "_compiled_models.py": models_module,
}


def of_mode(mode: str | None) -> str:
    """The name of the module with the rules of training or of a mode."""
    return f"_compiled_mode_{mode}" if mode else "_compiled"


def mode_modules(root: str) -> Iterator[tuple[str, str]]:
    """(file name, text) of the subcommands of all modes, and of the rules of each."""
    found = commands([(root, False)])
    yield "_compiled_modes.py", f"{HEAD}\nCOMMANDS = {found!r}\n"
    for mode in modes_of([(root, False)]):
        yield f"{of_mode(mode)}.py", rules_module(root, mode)


def generated(root: str) -> Iterator[tuple[str, str]]:
    """(file name, text) of every module that a wheel is built with."""
    yield from ((name, make(root)) for name, make in MODULES.items())
    yield from mode_modules(root)
    yield from architecture_modules(root)


def write_modules(folder: str, root: str | None = None) -> list[str]:
    """Write the generated modules into a folder; returns their paths."""
    root, paths = root or bundled_root(), []
    for name, text in generated(root):
        path = os.path.join(folder, name)
        with open(path, "w", encoding="utf-8") as handle:
            handle.write(text)
        paths.append(path)
    return paths
