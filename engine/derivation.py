"""How a number came about: formula, the same with numbers and units, result, and every origin.

No arithmetic happens here; values are read from the run that computed the report.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from . import expression as ex
from .algebra import EXACT, NO_LOOP, Loop, compile_tree
from .cards import Card
from .closed_form import closed_form
from .errors import InputProblem
from .formula import Case, Constant, Evidence, Formula, Symbol, Table
from .grades import grade_of, holds_here
from .printer import LATEX, TEXT, Printer, TextStyle
from .record import record
from .report import Report, sentence, without_meaning
from .scope import CURRENT, Scope
from .template import MIB, number, show
from .units import Unit

if TYPE_CHECKING:
    from .run import Run


NOTHING: Mapping[str, str] = MappingProxyType({})


@record
class Binding:
    """One name of a formula: its value here, its unit, and where the value came from."""

    name: str
    value: str
    unit: str
    origin: str
    meaning: str


@record
class Proof:
    """One piece of evidence with its grade in this run."""

    id: str
    grade: str
    where: str
    says: str


@record
class Step:
    """The derivation of one quantity (for one list item where it has a value for each)."""

    id: str
    title: str
    item: str
    place: str
    case: str
    because: str
    formula: str
    numbers: str
    latex: tuple[str, str]
    result: str
    value: Any
    unit: str
    says: str
    bindings: tuple[Binding, ...]
    evidence: tuple[Proof, ...]
    limits: tuple[str, ...]
    excludes: Mapping[str, str] = NOTHING


def derive(report: Report, name: str | None = None) -> tuple[Step, ...]:
    """
    The steps behind one quantity, or behind every published one.

    Parameters
    ----------
    report : Report
    name : str, optional
        Id of a component or quantity; None for all that the JSON publishes.

    Raises
    ------
    InputProblem
        There is no formula with this id.
    """
    rules = report.prepared.rules
    if name is None:
        roots = [
            f.id for f in sorted(rules.formulas.values(), key=lambda f: (f.order, f.id)) if f.json
        ]
    else:
        roots = [rules.formula(name).id]
        if missing := without_meaning(report.run, rules.formulas[name]):
            raise InputProblem(missing)
    order: dict[str, None] = {}

    def visit(formula_id: str) -> None:
        if formula_id in order:
            return
        order[formula_id] = None
        formula = rules.formulas[formula_id]
        for read in (*formula.reads, *([formula.band[0]] if formula.band else [])):
            visit(read)

    for root in roots:
        visit(root)
    steps: list[Step] = []
    for formula_id in order:
        steps += _Deriver(report, rules.formulas[formula_id]).steps()
    return tuple(steps)


class _Deriver:
    def __init__(self, report: Report, formula: Formula) -> None:
        self.report, self.formula = report, formula
        self.run: Run = report.run
        self.rules = report.prepared.rules

    def steps(self) -> list[Step]:
        formula, run = self.formula, self.run
        if formula.search or formula.band:
            return [self.special()]
        if formula.per is None:
            value = run.value(formula.id)
            case = run.chosen.get((formula.id, 0))
            return [] if case is None else [self.step(case, value, NO_LOOP, "")]
        found = []
        for item in run.items(formula.per):
            value = run.value_at(formula.id, item)
            case = run.chosen[(formula.id, id(item))]
            found.append(self.step(case, value, {CURRENT: item}, label_of(item)))
        return found

    def special(self) -> Step:
        formula, run = self.formula, self.run
        value, says = run.value(formula.id), formula.counts
        line = f"{formula.source.mark(('search',) if formula.search else ('band',))}"
        if formula.search:
            found = run.searches[formula.id]
            option = self.rules.flags.spelled(formula.search.flag)
            text = f"largest {option} for which {formula.search.text}"
            if found.capped:
                numbers = f"still true at {value:,}, the largest value accepted"
            elif value == 0:
                numbers = "false already at 1"
            else:
                numbers = f"true at {value:,}, false at {value + 1:,} (each a full evaluation)"
            form = closed_form(run, formula)
            says = f"{says} {form.sentence(option)}" if form else says
        else:
            assert formula.band is not None
            end = "lower" if formula.band[1] == 0 else "upper"
            text = numbers = f"{formula.band[0]} with every banded constant at its {end} end"
        return Step(
            formula.id,
            formula.title,
            "",
            line,
            "",
            "",
            text,
            numbers,
            (text, numbers),
            amount(value, formula.unit),
            value,
            formula.unit.text,
            says,
            (),
            (),
            (),
        )

    def step(self, case: Case, value: Any, loop: Loop, item: str) -> Step:
        formula = self.formula
        scope = self.rules.scope(formula).inside(case.expr)
        formula_text = Printer(TEXT).show(case.expr)
        numbers = self.printer(TEXT, scope).show(case.expr, loop)
        latex = (Printer(LATEX).show(case.expr), self.printer(LATEX, scope).show(case.expr, loop))
        names = ex.names(case.expr) | (ex.names(case.when) if case.when is not None else set())
        limits = tuple(
            f"{c.level}, direction {c.direction}: {c.says}"
            for c in self.report.caveats
            if c.formula == formula.id
        )
        return Step(
            formula.id,
            formula.title,
            item,
            str(case.mark),
            case.id,
            self.because(case, loop),
            formula_text,
            numbers,
            latex,
            amount(value, formula.unit),
            value,
            formula.unit.text,
            sentence(self.run, formula, case.says, loop),
            tuple(
                self.binding(n, loop)
                for n in sorted(names, key=lambda n: (position(n, case), n))
                if self.known(n)
            ),
            tuple(proof(e, self.run) for e in self.evidence(case, names)),
            limits,
            formula.excludes,
        )

    def known(self, name: str) -> bool:
        return name in self.formula.declared()

    def because(self, case: Case, loop: Loop) -> str:
        """`because quant != "none"`, with the values behind it."""
        if case.when is None:
            return ""
        scope = self.rules.scope(self.formula).inside(case.when)
        condition = " ".join(case.when_text.split())
        filled = self.printer(TEXT, scope).show(case.when, loop)
        return f"{condition}: {filled}" if filled != condition else condition

    def printer(self, style: TextStyle, scope: Scope) -> Printer:
        run = self.run

        def leaf(node: ex.Name | ex.Item | ex.Call, loop: Loop) -> str:
            value = compile_tree(node, EXACT, scope)(run, loop)
            unit = None if isinstance(node, ex.Call) else self.unit_of(node.id)
            if isinstance(value, (int, Fraction)) and not isinstance(value, bool):
                shown_unit = f" {unit.text}" if unit is not None and unit.text != "1" else ""
                if style is LATEX and shown_unit:
                    return rf"{style.number(number(value))}\,\mathrm{{{shown_unit.strip()}}}"
                return style.number(number(value)) + shown_unit
            return f'"{value}"' if isinstance(value, str) else show(value)

        def rows(fold: ex.Fold, loop: Loop) -> Sequence[tuple[Loop, str]]:
            bound: list[tuple[Loop, str]] = [(loop, "")]
            for part in fold.loops:
                items = scope.items(part)
                bound = [
                    ({**outer, part.var: item}, " ".join(filter(None, (label, label_of(item)))))
                    for outer, label in bound
                    for item in items(run, outer)
                ]
            if fold.condition is None:
                return bound
            keep = compile_tree(fold.condition, EXACT, scope)
            return [(inner, label) for inner, label in bound if keep(run, inner)]

        def test(node: ex.Node, loop: Loop) -> bool:
            return bool(compile_tree(node, EXACT, scope)(run, loop))

        return Printer(style, leaf, rows, test)

    def unit_of(self, name: str) -> Unit | None:
        formula = self.formula
        if name in formula.symbols:
            return formula.symbols[name].unit
        if name in formula.constants:
            return formula.constants[name].unit
        if name in formula.tables:
            return formula.tables[name].unit
        if name in formula.reads:
            return self.rules.formula(name).unit
        return None

    def evidence(self, case: Case, names: set[str]) -> list[Evidence]:
        formula = self.formula
        ids = list(case.evidence)
        parts: list[Constant | Table] = [*formula.constants.values(), *formula.tables.values()]
        for part in parts:
            if part.name in names:
                ids += part.evidence
        found = [formula.evidence[i] for i in dict.fromkeys(ids) if i in formula.evidence]
        return [e for e in found if not e.within_text or holds_here(e, self.run)] or found

    def binding(self, name: str, loop: Loop) -> Binding:
        formula, run = self.formula, self.run
        unit = self.unit_of(name)
        shown = unit.text if unit is not None and unit.text not in ("1", "truth", "text") else ""
        if name in formula.symbols:
            symbol = formula.symbols[name]
            return Binding(
                name, self.symbol_value(symbol, loop), shown, self.origin(symbol), symbol.meaning
            )
        if name in formula.constants:
            constant = formula.constants[name]
            band = constant.band
            spread = f" ({number(band[0])} to {number(band[2])})" if band[0] != band[2] else ""
            return Binding(
                name,
                number(constant.value) + spread,
                shown,
                f"constant, {constant.mark}",
                constant.meaning,
            )
        if name in formula.tables:
            table = formula.tables[name]
            origin = f"table at {self.axes(table)}, {table.mark}"
            return Binding(name, several(self.cells(table)), shown, origin, table.meaning)
        if name in formula.flags:
            return Binding(name, show(run.flag(name)), "", self.flag_origin(name), "")
        read = self.rules.formula(name)
        origin = f"derived, {read.source.key_mark(('cases',))}"
        if read.per is None:
            return Binding(name, show(run.value(name)), shown, origin, read.title)
        values = [run.value_at(name, i) for i in run.items(read.per)]
        if read.per == formula.per:
            values = [run.value_at(name, loop[CURRENT])]
        return Binding(name, several(values), shown, origin, read.title)

    def axes(self, table: Table) -> str:
        """Where in a table its cells are: the flags, and the fields of list items."""
        symbols = self.formula.symbols
        return ", ".join(
            f"each {a}" if a in symbols else f"{a}={show(self.run.flag(a))}" for a in table.axes
        )

    def cells(self, table: Table) -> list[Any]:
        """The cell by flags, or the cells of all items of the list that an axis is a field of."""
        run, symbols = self.run, self.formula.symbols
        paths = [symbols[a].list_path for a in table.axes if a in symbols]
        items = self.items_of(paths[0]) if paths and paths[0] else [{}]
        return [
            run.cell(
                table,
                tuple(i[symbols[a].field] if a in symbols else run.flag(a) for a in table.axes),
            )
            for i in items
        ]

    def items_of(self, path: str) -> list[Any]:
        """All items of a list, and of the lists in them where the path goes deeper."""
        first, *deeper = path.split(".")
        items: list[Any] = list(self.run.items(first))
        for part in deeper:
            items = [inner for item in items for inner in item[part]]
        return items

    def symbol_value(self, symbol: Symbol, loop: Loop) -> str:
        run, path = self.run, symbol.list_path
        if path is None:
            return show(
                compile_tree(ex.Name(0, symbol.name), EXACT, self.rules.scope(self.formula))(
                    run, loop
                )
            )
        if path == self.formula.per:
            return show(loop[CURRENT][symbol.field])
        items = self.items_of(path)
        values = [i[symbol.field] for i in items]
        named = all(isinstance(i, Mapping) and ("id" in i or "name" in i) for i in items)
        if named and symbol.field not in ("id", "name") and len(set(map(show, values))) > 1:
            pairs = zip(items, values, strict=True)
            return "; ".join(f"{label_of(item)} {show(value)}" for item, value in pairs)
        return several(values)

    def flag_origin(self, name: str) -> str:
        origin, option = (
            self.report.prepared.settings.origin.get(name),
            self.rules.flags.spelled(name),
        )
        if origin == "default":
            inverse = self.rules.flags.flags[name].inverse
            return f"default; {option} turns it off" if inverse else f"default of {option}"
        return f"flag {option}" if origin == option else f"set by {origin}"

    def origin(self, symbol: Symbol) -> str:
        record = symbol.source.partition(".")[0]
        prepared = self.report.prepared
        model = prepared.model
        if record == "flags":
            return self.flag_origin(symbol.field)
        if record == "profiles":
            return self.profile_origin(symbol)
        if record == "card":
            return card_origin(prepared.card, symbol.field)
        if record == "run":
            return "; ".join(self.report.unsettled) or "nothing unsettled takes part"
        if record.startswith("components"):
            return "every component file"
        if record.startswith("phases"):
            return "formulas/phases.yaml"
        if symbol.source in model.layer_origin:
            text, file, whole = model.layer_origin[symbol.source]
            made = next(a for a in self.rules.architectures if a.id == file)
            source, path = made.home(whole)
            config = [f"{n} from {model.origin[n]}" for n in model.origin if n in text.split()]
            return f"{text}, {source.mark(path)}" + (f" ({'; '.join(config)})" if config else "")
        return model.origin.get(symbol.field) or f"came with the model ({model.source})"

    def profile_origin(self, symbol: Symbol) -> str:
        kind = symbol.source.split(".")[1]
        profile, passed = self.run.profile(kind)
        value = profile.values.get(symbol.field)
        place = value.mark if isinstance(value, Constant) else profile.mark
        keys = ", ".join(f"{k}={show(v)}" for k, v in profile.matches.items()) or "the fallback"
        over = "; ".join(
            f"{p.profile.id} needs {p.key}={show(p.wanted)}"
            if p.key
            else f"{p.profile.id} is less specific"
            for p in passed[:4]
        )
        return f"{place} ({keys})" + (f"; passed over: {over}" if over else "")


def position(name: str, case: Case) -> int:
    """Where a name first stands in the formula, after it if only the condition reads it."""
    found = re.search(rf"\b{name}\b", case.text)
    return found.start() if found else len(case.text)


def label_of(item: Any) -> str:
    """A short name of a list item."""
    if not isinstance(item, Mapping):
        return str(item)
    for key in ("name", "id", "title"):
        if key in item:
            return str(item[key])
    return f"{item['count']:,} layers" if "count" in item else ""


def several(values: Sequence[Any]) -> str:
    """One value where all are equal, else the list."""
    distinct = list(dict.fromkeys(show(v) for v in values))
    return (
        distinct[0]
        if len(distinct) == 1
        else ", ".join(distinct[:8]) + (", ..." if distinct[8:] else "")
    )


def amount(value: Any, unit: Unit) -> str:
    """A result with its unit, bytes in MiB too."""
    if unit.text == "byte":
        return f"{number(value)} byte = {float(Fraction(value) / MIB):,.2f} MiB"
    text = show(value)
    return text if unit.text in ("1", "truth", "text") else f"{text} {unit.text}"


def proof(evidence: Evidence, run: Run) -> Proof:
    """One piece of evidence as printed."""
    return Proof(evidence.id, str(grade_of(evidence, run)), evidence.where, evidence.says)


def card_origin(card: Card, name: str) -> str:
    """Where a figure of the card came from."""
    if card.here and name != "usable":
        return f"{card.here['source']} on this machine"
    if not card.listed:
        return "flag --vram-mib"
    proofs = card.evidence.get(name, ())
    why = f" ({proofs[0].kind}: {proofs[0].says})" if proofs else ""
    return f"{card.mark}{why}"


def render_derivations(steps: Sequence[Step], form: str = "text") -> str:
    """The steps as text, markdown, latex or json."""
    from .derivation_formats import FORMATS

    if form not in FORMATS:
        raise InputProblem(f"--format {form} is not known; it can be {', '.join(FORMATS)}.")
    return FORMATS[form](steps)
