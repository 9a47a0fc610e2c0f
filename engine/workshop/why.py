"""Why one case, profile, status or architecture holds for a run, and why the others do not.

A condition is taken apart at its `and` and `or`; every part is evaluated for the run, with the
values of the names in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .. import expression as ex
from ..algebra import NO_LOOP, EvaluationError, Loop
from ..architecture import Architecture, choose
from ..checks.partition import text_of
from ..errors import FitcheckError, InputProblem, Refusal
from ..formula import Formula
from ..profile import matches
from ..record import record
from ..report import sentence, without_meaning
from ..rules import Rules
from ..run import Run
from ..scope import CURRENT
from ..template import MIB
from ..yaml_source import Path
from .values import mib_text, value_text


@record
class Part:
    """One part of a condition; `holds` is None for a heading, and where there is no answer."""

    text: str
    holds: bool | None
    values: Sequence[tuple[str, str]]
    depth: int = 0


@record
class Branch:
    """
    One of several alternatives, exactly one of which should hold.

    `condition` is the whole of it as written, `expr` what the alternative computes, and `says` its
    reason, where it holds, or a remark.
    """

    id: str
    holds: bool
    place: str
    condition: str
    parts: Sequence[Part]
    expr: str = ""
    says: str = ""


@record
class Choice:
    """
    The alternatives for one run, or for one item of a list; `result` is what came of them.

    `kind` is cases, statuses, profiles or architectures.
    """

    kind: str
    id: str
    title: str
    item: str
    result: str
    branches: Sequence[Branch]
    note: str = ""


def why_formula(run: Run, formula: Formula) -> list[Choice]:
    """The cases of a quantity: one choice, or one for each item of its list."""
    if missing := without_meaning(run, formula):
        raise InputProblem(missing)
    if formula.per is None:
        return [_choice(run, formula, NO_LOOP, "")]
    return [
        _choice(run, formula, {CURRENT: item}, f"{formula.per}: {item.get('id', position)}")
        for position, item in enumerate(run.items(formula.per), 1)
    ]


def _choice(run: Run, formula: Formula, loop: Loop, item: str) -> Choice:
    branches = []
    for case in formula.cases:
        path = (*case.path, "when")
        parts = _parts(run, formula, case.when, path, loop)
        held = case.when is None or bool(_truth(run, formula, case.when, path, loop))
        says = _sentence(run, formula, case.says, loop) if held else ""
        when, expr = " ".join(case.when_text.split()), " ".join(case.text.split())
        branches.append(Branch(case.id, held, str(case.mark), when, parts, expr, says))
    try:
        value = run.value_at(formula.id, loop[CURRENT]) if loop else run.value(formula.id)
        result = value_text(value, formula.unit.text)
    except (FitcheckError, EvaluationError) as error:
        result = f"no value: {error}"
    return Choice("cases", formula.id, formula.title, item, result, branches, _note(run, formula))


def _sentence(run: Run, formula: Formula, text: str, loop: Loop) -> str:
    try:
        return sentence(run, formula, text, loop)
    except (FitcheckError, EvaluationError):
        return text


def _note(run: Run, formula: Formula) -> str:
    """How a quantity without cases comes about."""
    if formula.band:
        of, end = formula.band
        return f"`{of}` with every banded constant at its {('low', '', 'high')[end]} end"
    if formula.search:
        flag, found = formula.search.flag, run.searches.get(formula.id)
        text = f"the largest {flag} while {formula.search.text}"
        if found is None:
            return text
        until = "the largest allowed" if found.capped else f"and not at {found.value + 1:,}"
        held = f"it holds at {found.value:,}, {until}" if found.value else "it does not hold at 1"
        return f"{text}: {held}"
    return ""


def why_statuses(run: Run) -> Choice:
    """The statuses: which one holds."""
    branches = []
    for status in run.rules.statuses:
        formula = status.formula
        tree = ex.parse(status.when)
        parts = _parts(run, formula, tree, ("when",), NO_LOOP)
        held = _truth(run, formula, tree, ("when",), NO_LOOP)
        text = " ".join(str(formula.source.data["when"]).split())
        place = str(formula.source.key_mark(("when",)))
        branches.append(Branch(status.id, bool(held), place, text, parts))
    held_ids = [b.id for b in branches if b.holds]
    return Choice("statuses", "statuses", "Verdict", "", " and ".join(held_ids) or "none", branches)


def _parts(run: Run, formula: Formula, tree: ex.Node | None, path: Path, loop: Loop) -> list[Part]:
    if tree is None:
        return []
    found = []
    for depth, text, node in _leaves(tree, 0):
        if node is None:
            found.append(Part(text, None, (), depth))
            continue
        known = [(n.id, _value(run, formula, n, path, loop)) for n in _names(node)]
        values = [(name, value) for name, value in known if value]
        found.append(Part(text, _truth(run, formula, node, path, loop), values, depth))
    return found


def _leaves(tree: ex.Node, depth: int) -> Iterator[tuple[int, str, ex.Node | None]]:
    """(depth, text, node) of the parts of a condition; a heading has no node."""
    if not isinstance(tree, ex.Logic):
        yield depth, text_of(tree), tree
        return
    if tree.op == "or" or depth:
        yield depth, "any of" if tree.op == "or" else "all of", None
        depth += 1
    for part in tree.parts:
        yield from _leaves(part, depth)


def _names(node: ex.Node) -> list[ex.Name]:
    """The names of a condition outside loops, each once."""
    if isinstance(node, ex.Fold):
        return []
    if isinstance(node, ex.Name):
        return [node]
    found: dict[str, ex.Name] = {}
    for part in ex.children(node):
        for name in _names(part):
            found.setdefault(name.id, name)
    return list(found.values())


def _truth(run: Run, formula: Formula, node: ex.Node, path: Path, loop: Loop) -> bool | None:
    try:
        return bool(run.rules.compile(formula, node, path)(run, loop))
    except (FitcheckError, EvaluationError, TypeError):
        return None  # short-circuited in the whole condition: this part has no answer here


def _value(run: Run, formula: Formula, name: ex.Name, path: Path, loop: Loop) -> str:
    try:
        value = run.rules.compile(formula, name, path)(run, loop)
    except (FitcheckError, EvaluationError, TypeError):
        return ""
    unit = run.rules.unit_text(formula)(name.id)
    large = unit == "byte" and abs(value) >= MIB
    return mib_text(value) if large else value_text(value, unit)


def why_profiles(run: Run, kind: str) -> Choice:
    """The profiles of a kind: which one is the best match, and which keys the others failed."""
    best, _ = run.profile(kind)
    branches = []
    for profile in run.rules.profiles[kind]:
        parts = []
        for key, wanted in profile.matches.items():
            found = run.match_fact(key)
            parts.append(
                Part(f"{key}: {value_text(wanted)}", matches(wanted, found), [(key, _fact(found))])
            )
        says = ""
        if profile is not best and all(p.holds for p in parts):
            says = f"it fits too, and {best.id} has more keys"
        place = str(profile.source.key_mark(("matches",)))
        condition = "" if parts else "matches any run"
        branches.append(Branch(profile.id, profile is best, place, condition, parts, says=says))
    branches.sort(key=lambda b: (not b.holds, sum(p.holds is False for p in b.parts)))
    return Choice("profiles", kind, f"Best match of profiles/{kind}", "", best.id, branches)


def _fact(value: Any) -> str:
    return value_text(value) if value is not None else "unknown"


def why_architectures(rules: Rules, name: str, config: Mapping[str, Any]) -> Choice:
    """The architecture files: which claims a config, and which conditions of the others fail."""
    try:
        chosen: str | None = choose(rules.architectures, name, config).id
    except Refusal:
        chosen = None
    branches = []
    for architecture in rules.architectures:
        if "matches" not in architecture.own:
            continue  # a file that others extend
        conditions = architecture.own["matches"]
        parts = [
            Part(f"{key}: {value_text(_plain(wanted))}", _meets(architecture, key, config), ())
            for key, wanted in conditions.items()
        ]
        refuses = "refuse" in architecture.own
        says = "refuses what it matches" if refuses else ""
        held = architecture.id == chosen if chosen else refuses and all(p.holds for p in parts)
        if not held and chosen and all(p.holds for p in parts):
            how = "names the model_type" if refuses else "meets more conditions"
            says = f"it fits too, and {chosen} {how}"
        place = str(architecture.source.key_mark(("matches",)))
        condition = "" if parts else "matches any config"
        branches.append(Branch(architecture.id, bool(held), place, condition, parts, says=says))
    branches.sort(key=lambda b: not b.holds)
    title = f"Architecture of {name} (model_type {config.get('model_type')})"
    return Choice("architectures", "architectures", title, "", chosen or "refused", branches)


def _plain(wanted: Any) -> Any:
    if isinstance(wanted, Mapping):
        return [f"{k} = {value_text(v)}" for k, v in wanted.items()]
    return wanted


def _meets(architecture: Architecture, key: str, config: Mapping[str, Any]) -> bool:
    """Whether one condition of `matches` holds by itself."""
    alone = Architecture(
        architecture.id,
        architecture.status,
        {"matches": {key: architecture.own["matches"][key]}},
        architecture.source,
        False,
        dict,
        dict,
    )
    return alone.claims(config) is not None


def formula_of(rules: Rules, name: str) -> Formula:
    """The formula with this id that can be explained; raises `InputProblem`."""
    formula = rules.formula(name)
    if name in rules.broken:
        raise InputProblem(f"{formula.source.path} has problems: `fitcheck rules lint` says which.")
    return formula
