"""Checks of the status files: exactly one holds for every run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .. import expression as ex
from ..errors import Problem, RuleFileError
from ..rules import Rules, Status
from ..scope import suggest
from ..yaml_source import Path
from .formula_checks import check_sentence, constant_value, domain_of
from .partition import Conditions, TooMany, describe, partition


def check_statuses(rules: Rules) -> Iterator[Problem]:
    """F301, F302, F303: exactly one status holds for every run."""
    for status in rules.statuses:
        yield from status_names(rules, status)
    if any(True for s in rules.statuses for _ in status_names(rules, s)) or not rules.statuses:
        return
    scope = rules.statuses[0].formula
    domains = [domain_of(rules, s.formula) for s in rules.statuses]

    def domain(name: str) -> tuple[Any, ...] | None:
        return next((v for d in domains if (v := d(name)) is not None), None)

    def number(name: str) -> Any:
        return next(
            (v for s in rules.statuses if (v := constant_value(s.formula, name)) is not None), None
        )

    try:
        found = partition(
            Conditions({s.id: ex.parse(s.when) for s in rules.statuses}, domain, number),
            lambda _: True,
        )
    except TooMany as error:
        yield scope.source.problem(
            "F301",
            "too-many-cases",
            scope.source.mark(("when",)),
            f"{error} combinations of conditions over the status files.",
        )
        return
    by_id = {s.id: s.formula.source for s in rules.statuses}
    if found.overlap:
        first, second, point = found.overlap
        yield by_id[second].problem(
            "F301",
            "two-cases",
            by_id[second].key_mark(("when",)),
            f"`{first}` and `{second}` both hold for {describe(point)}.",
        )
    if found.gap is not None:
        yield scope.source.problem(
            "F302",
            "no-case",
            scope.source.key_mark(("when",)),
            f"No status holds for {describe(found.gap)}.",
        )
    for name in found.never:
        yield by_id[name].problem(
            "F303", "always-false", by_id[name].key_mark(("when",)), f"`{name}` never holds."
        )


def status_names(rules: Rules, status: Status) -> Iterator[Problem]:
    """F201, F211: the names of a status file."""
    formula = status.formula
    for read in formula.reads:
        if read not in rules.formulas and read not in rules.broken:
            yield formula.source.problem(
                "F201",
                "unknown-symbol",
                formula.source.mark(("reads",)),
                f"`{read}` is read here and no file defines it.{suggest(read, rules.formulas)}",
            )
            return
    texts: list[tuple[Path, str]] = [(("when",), status.when)]
    texts += [(("because", i, "when"), when) for i, (when, _) in enumerate(status.because)]
    for path, text in texts:
        try:
            rules.function(formula, text, path)
        except RuleFileError as error:
            yield from error.problems
    for index, (_, says) in enumerate(status.because):
        yield from check_sentence(rules, formula, ("because", index, "says"), says)


def check_cap(rules: Rules) -> Iterator[Problem]:
    """F217: what is unsettled is never safe, and only what is safe has exit code 0."""
    for status in rules.statuses:
        source = status.formula.source
        if status.safe != (status.exit_code == 0):
            yield source.problem(
                "F217",
                "unsafe-status",
                source.mark(("exit_code",)),
                "Exit code 0 is for what is safe, and for nothing else.",
            )
        if not status.safe:
            continue
        flags = [n for n, s in status.formula.symbols.items() if s.source == "run.unsettled"]
        if not flags or can_hold(rules, status, flags[0]):
            yield source.problem(
                "F217",
                "unsafe-status",
                source.key_mark(("when",)),
                "A status that is safe must not hold while run.unsettled: write `not unsettled` "
                "into its condition.",
            )


def can_hold(rules: Rules, status: Status, unsettled: str) -> bool:
    """Whether a status can hold for a run that is unsettled."""
    formula = status.formula
    try:
        conditions = Conditions(
            {"when": ex.parse(status.when)},
            domain_of(rules, formula),
            lambda name: constant_value(formula, name),
        )
        return any(
            conditions.holds("when", point)
            for point in conditions.space.combinations()
            if point.get(unsettled, True) is True
        )
    except (ex.ExpressionError, TooMany):
        return False  # reported elsewhere


STATUS_CHECKS = (check_statuses, check_cap)
