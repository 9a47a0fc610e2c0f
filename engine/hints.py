"""What a change of flags would save or cost, each priced by a full second estimate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import expression as ex
from .algebra import EXACT, NO_LOOP, compile_tree
from .errors import FitcheckError, InputProblem, RuleFileError
from .report import Prepared, find_caveats
from .run import Run
from .scope import Scope
from .template import MIB


@dataclass(frozen=True)
class Hint:
    """One priced change; `saved` is positive where it saves. [byte]"""

    label: str
    saved: int
    note: str
    change: Mapping[str, Any]

    @property
    def text(self) -> str:
        """One unformatted line: `adamw -> adam8bit ......... saves 312 MiB`."""
        verb, sign = ("saves", "") if self.saved > 0 else ("costs", "+" if self.saved < 0 else "")
        amount = f"{sign}{abs(self.saved) / MIB:,.0f} MiB"
        dots = "." * max(3, 30 - len(self.label))
        note = f"   ({self.note})" if self.note else ""
        return f"{self.label} {dots} {verb} {amount:>12}{note}"


@dataclass(frozen=True)
class Proposal:
    """The cheapest change found that makes the run fit."""

    changes: Mapping[str, Any]
    says: tuple[str, ...]
    total: int
    settings: Mapping[str, Any]


def _evaluate(run: Run, text: str) -> Any:
    """An expression over flags and quantities, as the hints file uses it."""
    rules = run.rules
    if rules.hints is None:
        raise FitcheckError("formulas/hints.yaml is missing.")
    try:
        tree = ex.parse(text)
    except ex.ExpressionError as error:
        raise RuleFileError(
            [
                rules.hints.problem(
                    error.code, error.name, rules.hints.mark(), f"`{text}`: {error.message}"
                )
            ]
        ) from None
    reads = {f.id: f.per for f in rules.formulas.values()}
    scope = Scope({}, {}, {}, rules.flags.flags, reads)
    return compile_tree(tree, EXACT, scope.inside(tree))(run, NO_LOOP)


def _values(run: Run, change: Mapping[str, Any]) -> dict[str, Any]:
    """The flag values of a change: words and switches as they stand, the rest as expressions."""
    result: dict[str, Any] = {}
    for name, value in change.items():
        flag = run.rules.flags.flags[name]
        if flag.kind == "integer" and isinstance(value, str):
            value = _evaluate(run, value)
        result[name] = value
    return result


def price_hints(prepared: Prepared) -> list[Hint]:
    """Every hint that applies, in the order of the file."""
    rules = prepared.rules
    if rules.hints is None:
        return []
    run = prepared.run_with(())
    price = rules.hints.data["price"]
    before = run.value(price)
    found = []
    for entry in rules.hints.data["hints"]:
        if not _evaluate(run, str(entry["when"])):
            continue
        change = _values(run, entry["change"])
        try:
            after = _changed(run, change).value(price)
        except FitcheckError:
            continue  # the changed run is not modelled, so it has no price
        found.append(Hint(entry["label"], before - after, entry.get("note", ""), change))
    return found


def _changed(run: Run, change: Mapping[str, Any]) -> Run:
    """The run with several flags changed, refused where the combination is."""
    for name, value in change.items():
        run = run.with_flag(name, value)
    rules = run.rules
    rules.flags.refuse_conflicts(run.facts.settings, {})
    if any(c.level == "refuse" for c in find_caveats(run)):
        raise InputProblem("not modelled")
    return run


def propose(prepared: Prepared) -> Proposal | None:
    """
    The cheapest change that fits: the first single lever that does, else levers added one by one.

    Returns None where the run fits already, or no combination of levers fits.
    """
    rules = prepared.rules
    if rules.hints is None:
        return None
    run, fits = prepared.run_with(()), rules.hints.data["fits"]
    if run.value(fits):
        return None
    levers: Sequence[Mapping[str, Any]] = rules.hints.data["levers"]
    for lever in levers:
        found = _pull(run, [lever], {}, fits)
        if found is not None:
            return found
    return _pull(run, levers, {}, fits)


def _pull(
    run: Run, levers: Sequence[Mapping[str, Any]], changes: dict[str, Any], fits: str
) -> Proposal | None:
    says: list[str] = []
    price = run.rules.hints.data["price"] if run.rules.hints else ""
    for lever in levers:
        if not _evaluate(run, str(lever["when"])):
            continue
        change = _values(run, lever["change"])
        try:
            run = _changed(run, change)
        except FitcheckError:
            continue
        changes.update(change)
        says.append(str(lever["says"]))
        if run.value(fits):
            return Proposal(changes, tuple(says), run.value(price), run.facts.settings.values)
    return None
