"""What is measured at one point of a sweep: where each axis ends, and what a step costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .advice import Limit, Price
from .advise_rules import Plan
from .errors import InputProblem
from .evaluation import NO_LOOP
from .flags import check_value
from .report import is_refused
from .run import Run


def ceilings(plan: Plan, run: Run) -> tuple[Limit, ...]:
    """Where each axis ends, by search over whole estimates and never from the grid."""
    found = []
    for ceiling in plan.ceilings:
        value = number(plan, run, ceiling.value)
        there = changed(plan, run, ceiling.change)
        capped = run.searches[ceiling.search].capped
        total = there.value(plan.price)
        found.append(Limit(ceiling.axis, ceiling.title, value, total, capped))
    return tuple(found)


def prices(plan: Plan, run: Run) -> tuple[Price, ...]:
    """What each step costs; steps that are out of range or not modelled are left out."""
    found = []
    for step in plan.steps:
        if not number(plan, run, step.when):
            continue
        try:
            there = changed(plan, run, step.change)
        except InputProblem:
            continue
        if is_refused(there):
            continue
        delta = there.value(plan.price) - run.value(plan.price)
        before, after = number(plan, run, step.value), number(plan, there, step.value)
        found.append(Price(step.axis, step.title, before, after, delta))
    return tuple(found)


def number(plan: Plan, run: Run, text: str) -> Any:
    """An expression of the file over flags and quantities."""
    return run.rules.condition(text, plan.source)(run, NO_LOOP)


def changed(plan: Plan, run: Run, change: Mapping[str, Any]) -> Run:
    """The run with flags changed; raises `InputProblem` where one cannot have its value."""
    flags = run.rules.flags.flags
    values = {
        name: number(plan, run, value)
        if flags[name].kind == "integer" and isinstance(value, str)
        else value
        for name, value in change.items()
    }
    for name, value in values.items():
        run = run.with_flag(name, check_value(flags[name], value))
    return run
