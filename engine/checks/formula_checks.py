"""The checks of one formula file, each a small function that yields its problems."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

from .. import expression as ex
from ..algebra import EvaluationError
from ..dimensions import TEXT_UNIT, TRUTH, Mismatch, unit_of
from ..errors import Problem, RuleFileError
from ..formula import WILDCARD, Formula, Table
from ..rules import Rules
from ..scope import suggest
from ..template import holes, number
from ..units import Unit
from ..yaml_source import Path
from .examples import MissingValue, evaluate, unknown_names
from .partition import Conditions, TooMany, describe, partition

Check = Callable[[Rules, Formula], Iterator[Problem]]
PLAIN = (0, 1, 2)  # literals that need no name


def expressions(formula: Formula) -> Iterator[tuple[Path, ex.Node]]:
    """Every expression of a file with its place."""
    for case in formula.cases:
        if case.when is not None:
            yield (*case.path, "when"), case.when
        yield (*case.path, "expr"), case.expr
    for limit in formula.limits:
        if limit.when is not None:
            yield (*limit.path, "when"), limit.when
    if formula.search:
        yield ("search", "while"), formula.search.condition


def sentences(formula: Formula) -> Iterator[tuple[Path, str]]:
    """Every sentence with holes."""
    for case in formula.cases:
        yield (*case.path, "says"), case.says
    for limit in formula.limits:
        yield (*limit.path, "says"), limit.says


def check_names(rules: Rules, formula: Formula) -> Iterator[Problem]:
    """F201, F210: every name is declared and used the way it is declared."""
    for read in formula.reads:
        if read not in rules.formulas and read not in rules.broken:
            yield formula.source.problem(
                "F201",
                "unknown-symbol",
                formula.source.mark(("reads",)),
                f"`{read}` is read here and no file defines it.{suggest(read, rules.formulas)}",
            )
    for index, flag in enumerate(formula.flags):
        if flag not in rules.flags.flags:
            yield formula.source.problem(
                "F201",
                "unknown-symbol",
                formula.source.mark(("flags", index)),
                f"`{flag}` is not a flag of flags.yaml.{suggest(flag, rules.flags.flags)}",
            )
    for table in formula.tables.values():
        for axis in table.axes:
            if axis not in formula.flags and axis not in formula.symbols:
                yield formula.source.problem(
                    "F201",
                    "unknown-symbol",
                    formula.source.mark(("tables", table.name, "axes")),
                    f"The axis `{axis}` of `{table.name}` is not listed under flags or symbols.",
                )
    if any(r not in rules.formulas and r not in rules.broken for r in formula.reads):
        return
    for path, tree in expressions(formula):
        yield from check_loops(rules, formula, path, tree)
        yield from check_words(rules, formula, path, tree)
        try:
            rules.compile(formula, tree, path)
        except RuleFileError as error:
            yield from error.problems
    for name, proof in formula.evidence.items():
        if proof.within is not None:
            unknown = ex.names(proof.within) - set(rules.flags.flags)
            for word in sorted(unknown):
                yield formula.source.problem(
                    "F201",
                    "unknown-symbol",
                    formula.source.mark(("evidence", name, "within")),
                    f"`{word}` is not a flag; the conditions of a measurement are over flags."
                    f"{suggest(word, rules.flags.flags)}",
                )
    for path, text in sentences(formula):
        yield from check_sentence(rules, formula, path, text)


def check_loops(
    rules: Rules, formula: Formula, path: Path, tree: ex.Node, bound: frozenset[str] = frozenset()
) -> Iterator[Problem]:
    """F201, F208, F214: loops run over lists; a variable has one meaning and one reach."""
    at = formula.source.inside
    if isinstance(tree, ex.Item) and tree.var not in bound:
        message = f"`{tree.var}` is not bound here by a `for {tree.var} in ...`."
        yield formula.source.problem("F201", "unknown-symbol", at(path, tree.at), message)
    if isinstance(tree, ex.Fold):
        for loop in tree.loops:
            if loop.var in formula.declared() or loop.var in bound:
                message = f"`{loop.var}` has a meaning already; use another name for the loop."
                yield formula.source.problem("F208", "reserved-name", at(path, loop.at), message)
            flag = rules.flags.flags.get(loop.source) if loop.of is None else None
            if flag is not None and flag.kind != "words":
                message = f"`{loop.source}` is one value and no list."
                yield formula.source.problem("F214", "unknown-list", at(path, loop.at), message)
            bound |= {loop.var}
    for part in ex.children(tree):
        yield from check_loops(rules, formula, path, part, bound)


def check_words(rules: Rules, formula: Formula, path: Path, tree: ex.Node) -> Iterator[Problem]:
    """F218: a name is compared with words that it can be."""
    domain = domain_of(rules, formula)
    for node in ex.walk(tree):
        if not isinstance(node, ex.Compare):
            continue
        for side, other in ((node.left, node.right), (node.right, node.left)):
            values = domain(side.id) if isinstance(side, ex.Name) else None
            words = other.items if isinstance(other, ex.Words) else (other,)
            for word in words:
                if values and isinstance(word, ex.Text) and word.value not in values:
                    known = [str(v) for v in values]
                    yield formula.source.problem(
                        "F218",
                        "unknown-word",
                        formula.source.inside(path, word.at),
                        f"`{word.value}` is nothing this can be; it is one of {', '.join(known)}."
                        f"{suggest(word.value, known)}",
                    )


def check_sentence(rules: Rules, formula: Formula, path: Path, text: str) -> Iterator[Problem]:
    """F211: the holes of a sentence are expressions over declared names."""
    for hole, form, _ in holes(text):
        try:
            rules.compile(formula, ex.parse(hole), path)
        except ex.ExpressionError as error:
            yield formula.source.problem(
                "F211", "bad-sentence", formula.source.mark(path), f"`{{{hole}}}`: {error.message}"
            )
        except RuleFileError as error:
            yield formula.source.problem(
                "F211",
                "bad-sentence",
                formula.source.mark(path),
                f"`{{{hole}}}`: {error.problems[0].message}",
            )
        if form not in ("", "percent"):
            yield formula.source.problem(
                "F211",
                "bad-sentence",
                formula.source.mark(path),
                f"`| {form}` is no format; there is `| percent`.",
            )


def check_numbers(rules: Rules, formula: Formula) -> Iterator[Problem]:
    """F203: numbers other than 0, 1 and 2 have a name, a unit and evidence."""
    for path, tree in expressions(formula):
        powers = {id(n.right) for n in ex.walk(tree) if isinstance(n, ex.Binary) and n.op == "**"}
        for node in ex.walk(tree):
            if isinstance(node, ex.Number) and node.value not in PLAIN and id(node) not in powers:
                yield formula.source.problem(
                    "F203",
                    "bare-number",
                    formula.source.inside(path, node.at),
                    f"Give {node.text} a name under constants, with unit and evidence.",
                )


def check_units(rules: Rules, formula: Formula) -> Iterator[Problem]:
    """F204, F205: one unit in a sum or comparison, and the declared unit as the result."""
    for path, tree in expressions(formula):
        try:
            unit = unit_of(tree, lambda name: name_unit(rules, formula, name))
        except Mismatch as error:
            yield formula.source.problem(
                "F204", "unit-mismatch", formula.source.inside(path, error.at), error.message
            )
            continue
        wanted = formula.unit if path[-1] == "expr" else TRUTH
        if unit is not None and not unit.same(wanted):
            what = "this quantity" if path[-1] == "expr" else "a condition"
            yield formula.source.problem(
                "F205",
                "wrong-result-unit",
                formula.source.mark(path),
                f"The expression comes out in {unit}; {what} is in {wanted}. Is a factor missing?",
            )


def name_unit(rules: Rules, formula: Formula, name: str) -> Unit | None:
    """The unit of a declared name; None, which fits everywhere, for a file that cannot be read."""
    if name in rules.broken:
        return None
    if name in formula.symbols:
        symbol = formula.symbols[name]
        if symbol.unit is not None:
            return symbol.unit
        return TRUTH if True in symbol.oneof or False in symbol.oneof else TEXT_UNIT
    if name in formula.constants:
        return formula.constants[name].unit
    if name in formula.tables:
        return formula.tables[name].unit
    if name in formula.reads and name in rules.formulas:
        return rules.formulas[name].unit
    if name in formula.flags and name in rules.flags.flags:
        return TRUTH if rules.flags.flags[name].kind == "switch" else TEXT_UNIT
    return TEXT_UNIT  # a loop variable over words


def check_unused(rules: Rules, formula: Formula) -> Iterator[Problem]:
    """F206: everything declared is used."""
    used: set[str] = set()
    for _, tree in expressions(formula):
        used |= ex.names(tree)
        for node in ex.walk(tree):
            if isinstance(node, ex.Fold):
                used |= {loop.source for loop in node.loops}
    for _, text in sentences(formula):
        for hole, _, _ in holes(text):
            try:
                used |= ex.names(ex.parse(hole))
            except ex.ExpressionError:
                continue  # reported by check_sentence
    for table in formula.tables.values():
        used.update(table.axes)
    for part in ("symbols", "constants", "tables"):
        for name in getattr(formula, part):
            if name not in used:
                yield formula.source.problem(
                    "F206",
                    "unused",
                    formula.source.key_mark((part, name)),
                    f"`{name}` is declared under {part} and never used. Remove it, or use it.",
                )
    for part in ("flags", "reads"):
        for index, name in enumerate(getattr(formula, part)):
            if name not in used:
                yield formula.source.problem(
                    "F206",
                    "unused",
                    formula.source.mark((part, index)),
                    f"`{name}` is listed under {part} and never used. Remove it, or use it.",
                )


def check_declarations(rules: Rules, formula: Formula) -> Iterator[Problem]:
    """F102, F208, F213: names are free, unique, and symbols say unit or words."""
    from ..report import Report

    if hasattr(Report, formula.id) or formula.id in Report.__record_fields__:  # type: ignore[attr-defined]
        message = f"`{formula.id}` already means something in a report. Use another id."
        mark = formula.source.mark(("id",))
        yield formula.source.problem("F208", "reserved-name", mark, message)
    seen: dict[str, str] = {}
    for part in ("symbols", "constants", "tables"):
        for name in getattr(formula, part):
            mark = formula.source.key_mark((part, name))
            if name in ex.RESERVED or not name.isidentifier():
                yield formula.source.problem(
                    "F208",
                    "reserved-name",
                    mark,
                    f"`{name}` cannot be a name in a formula. Use another one.",
                )
            if name in seen:
                yield formula.source.problem(
                    "F102",
                    "duplicate-key",
                    mark,
                    f"`{name}` stands under {seen[name]} too. Rename one of them.",
                )
            seen[name] = part
    ids = [limit.id for limit in formula.limits]
    for limit in formula.limits:
        if ids.count(limit.id) > 1:
            yield formula.source.problem(
                "F102", "duplicate-key", limit.mark, f"Two limits are called `{limit.id}`."
            )
    for symbol in formula.symbols.values():
        if symbol.unit is None and not symbol.oneof and symbol.source.startswith("flags."):
            yield formula.source.problem(
                "F213",
                "no-unit",
                symbol.mark,
                f"`{symbol.name}` needs a `unit`, or `oneof` with its values.",
            )


def check_evidence(rules: Rules, formula: Formula) -> Iterator[Problem]:
    """F206, F501, F502: everything rests on evidence that exists and is used."""
    used: set[str] = set()
    places: list[tuple[Path, str, tuple[str, ...]]] = [
        (c.path, f"Case `{c.id}`", c.evidence) for c in formula.cases
    ]
    places += [
        (("constants", c.name), f"Constant `{c.name}`", c.evidence)
        for c in formula.constants.values()
    ]
    places += [
        (("tables", t.name), f"Table `{t.name}`", t.evidence) for t in formula.tables.values()
    ]
    for path, what, ids in places:
        if not ids and formula.status == "stable":
            yield formula.source.problem(
                "F501",
                "no-evidence",
                formula.source.key_mark(path),
                f"{what} names no evidence. Add an entry under evidence, or set status: draft.",
            )
    for index, limit in enumerate(formula.source.data.get("limits", ())):
        places.append((("limits", index), "", tuple(limit.get("evidence", ()))))
    for path, _, ids in places:
        for name in ids:
            used.add(name)
            if name not in formula.evidence:
                yield formula.source.problem(
                    "F502",
                    "dangling-evidence",
                    formula.source.mark((*path, "evidence")),
                    f"`{name}` is not an entry under evidence.{suggest(name, formula.evidence)}",
                )
    for name in formula.evidence:
        if name not in used:
            yield formula.source.problem(
                "F206",
                "unused",
                formula.source.key_mark(("evidence", name)),
                f"Evidence `{name}` supports nothing. Refer to it, or remove it.",
            )


def domain_of(rules: Rules, formula: Formula) -> Callable[[str], tuple[Any, ...] | None]:
    """The values of discrete names of a file."""

    def domain(name: str) -> tuple[Any, ...] | None:
        if name in formula.symbols and formula.symbols[name].oneof:
            return formula.symbols[name].oneof
        if name in formula.flags and name in rules.flags.flags:
            return rules.flags.flags[name].domain
        if name in formula.reads and name in rules.formulas:
            other = rules.formulas[name]
            return other.oneof or ((True, False) if other.unit.text == "truth" else None)
        return None

    return domain


def check_cases(rules: Rules, formula: Formula) -> Iterator[Problem]:
    """F301, F302, F303: for every run exactly one case holds."""
    if not formula.cases:
        if not formula.search and not formula.band:
            yield formula.source.problem(
                "F302",
                "no-case",
                formula.source.mark(),
                "A formula needs cases, a search or a band.",
            )
        return
    ids = [c.id for c in formula.cases]
    for case in formula.cases:
        if ids.count(case.id) > 1:
            yield formula.source.problem(
                "F102",
                "duplicate-key",
                formula.source.mark(case.path),
                f"Two cases are called `{case.id}`.",
            )
            return
    conditions = Conditions(
        {c.id: c.when for c in formula.cases},
        domain_of(rules, formula),
        lambda n: constant_value(formula, n),
    )
    try:
        found = partition(
            conditions,
            lambda point: rules.flags.possible(
                {k: v for k, v in point.items() if isinstance(k, str)}
            ),
        )
    except TooMany as error:
        yield formula.source.problem(
            "F301",
            "too-many-cases",
            formula.source.key_mark(("cases",)),
            f"{error} combinations of conditions; split the formula.",
        )
        return
    marks = {c.id: c.mark for c in formula.cases}
    if found.overlap:
        first, second, point = found.overlap
        yield formula.source.problem(
            "F301",
            "two-cases",
            marks[second],
            f"`{first}` and `{second}` both apply to {describe(point)}.",
        )
    if found.gap is not None:
        yield formula.source.problem(
            "F302",
            "no-case",
            formula.source.key_mark(("cases",)),
            f"Nothing says what happens for {describe(found.gap)}. Add a case, or a limit with "
            "level: refuse.",
        )
    for name in found.never:
        case = next(c for c in formula.cases if c.id == name)
        yield formula.source.problem(
            "F303",
            "always-false",
            formula.source.mark((*case.path, "when")),
            f"`{case.when_text}` never holds{spellings(rules, formula, case.when)}.",
        )


def constant_value(formula: Formula, name: str) -> Fraction | None:
    """The value of a constant of the file, None for any other name."""
    return Fraction(formula.constants[name].value) if name in formula.constants else None


def spellings(rules: Rules, formula: Formula, tree: ex.Node | None) -> str:
    """The values that the discrete names of a condition can have."""
    domain, parts = domain_of(rules, formula), []
    for name in sorted(ex.names(tree)) if tree is not None else ():
        values = domain(name)
        if values and not isinstance(values[0], bool):
            parts.append(f"{name} is one of {', '.join(map(str, values))}")
    return f": {'; '.join(parts)}" if parts else ""


def check_tables(rules: Rules, formula: Formula) -> Iterator[Problem]:
    """F304: cells are named after values that exist, and no run can ask for a missing one."""
    domain = domain_of(rules, formula)
    for table in formula.tables.values():
        for key in table.cells:
            for axis, value in zip(table.axes, key, strict=True):
                values = domain(axis)
                if values and value != WILDCARD and value not in values:
                    yield formula.source.problem(
                        "F304",
                        "bad-table",
                        table.mark,
                        f"`{value}` is no value of {axis}."
                        f"{suggest(str(value), [str(v) for v in values])}",
                    )
        missing = missing_cell(rules, formula, table)
        if missing is not None:
            yield formula.source.problem(
                "F304",
                "bad-table",
                table.mark,
                f"`{table.name}` has no cell for {describe(missing)}, and a case reads it there.",
            )


def missing_cell(rules: Rules, formula: Formula, table: Table) -> dict[Any, Any] | None:
    """Axis values that a run can have, that a case reads, and that no cell is for."""
    domain = domain_of(rules, formula)
    if any(domain(axis) is None for axis in table.axes):
        return None
    for case in formula.cases:
        if table.name not in ex.names(case.expr):
            continue
        conditions = Conditions({case.id: case.when}, domain, lambda n: constant_value(formula, n))
        for axis in table.axes:
            conditions.space.words[axis] = domain(axis) or ()
        for point in conditions.space.combinations():
            if not conditions.holds(case.id, point):
                continue
            key = tuple(point[axis] for axis in table.axes)
            flags = {k: v for k, v in point.items() if isinstance(k, str)}
            if table.cell(key) is None and rules.flags.possible(flags):
                return dict(zip(table.axes, key, strict=True))
    return None


def check_examples(rules: Rules, formula: Formula) -> Iterator[Problem]:
    """F601, F602, F603: examples give what the formula reads, agree, and cover every case."""
    covered: set[str] = set()
    for index, example in enumerate(formula.examples, 1):
        mark = formula.source.mark((*example.path, "expect"))
        for name in unknown_names(formula, example):
            yield formula.source.problem(
                "F603",
                "example-names",
                formula.source.key_mark((*example.path, "given", name)),
                f"`{name}` is no name of this formula.{suggest(name, formula.declared())}",
            )
        try:
            case, value = evaluate(rules, formula, example.given)
        except MissingValue as error:
            yield formula.source.problem(
                "F603",
                "example-names",
                formula.source.mark((*example.path, "given")),
                f"Example {index} gives no value for `{error}`.",
            )
            continue
        except (EvaluationError, TypeError) as error:
            yield formula.source.problem(
                "F601", "example-differs", mark, f"Example {index} cannot be evaluated: {error}."
            )
            continue
        if case is None:
            yield formula.source.problem(
                "F601", "example-differs", mark, f"No case holds for example {index}."
            )
            continue
        covered.add(case.id)
        if value != example.expect or isinstance(value, bool) != isinstance(example.expect, bool):
            yield formula.source.problem(
                "F601",
                "example-differs",
                mark,
                f"Example {index} expects {shown(example.expect)}, the formula gives "
                f"{shown(value)}{difference(value, example.expect)}.",
            )
    for case in formula.cases:
        if case.id not in covered and formula.status == "stable":
            yield formula.source.problem(
                "F602",
                "case-without-example",
                formula.source.mark(case.path),
                f"Case `{case.id}` has no example.",
            )


def shown(value: Any) -> str:
    if isinstance(value, (int, Fraction)) and not isinstance(value, bool):
        return number(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def difference(value: Any, expect: Any) -> str:
    if any(isinstance(v, bool) or not isinstance(v, (int, Fraction)) for v in (value, expect)):
        return ""
    gap = Fraction(value) - Fraction(expect)
    return f" ({number(abs(gap))} {'more' if gap > 0 else 'fewer'})"


FORMULA_CHECKS: tuple[Check, ...] = (
    check_declarations,
    check_names,
    check_numbers,
    check_units,
    check_unused,
    check_evidence,
    check_tables,
    check_cases,
    check_examples,
)
