"""Checks of advise.yaml: flags, quantities and expressions of a sweep exist."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..advise_rules import Plan, condition, read_plan
from ..errors import Problem, RuleFileError
from ..rules import Rules
from ..scope import Scope
from ..template import holes
from ..yaml_source import Path, Source
from .flag_checks import bad_value, options_of, parsed, unknown

HOLES = ("model", "limit", "value")  # of the sentence about what a model was made for


def check_advice(rules: Rules) -> Iterator[Problem]:
    """F106, F201, F211, F216: the advise file names flags, searches and quantities that exist."""
    if rules.mode is not None:
        return
    try:
        source = rules.advice
    except RuleFileError:
        return  # reported where it was read
    if source is None:
        return
    plan = read_plan(source)
    flags, scope = rules.flags.flags, rules.open_scope()
    known = {**rules.formulas, **dict.fromkeys(rules.broken)}
    for key in ("price", "fits"):
        if source.data[key] not in known:
            yield unknown(source, (key,), source.data[key], known)
    yield from check_axes(rules, plan)
    for name in plan.held:
        if name not in flags:
            yield unknown(source, ("held", name), name, flags)
    alone = Scope({}, {}, {}, {n: f for n, f in flags.items() if n in plan.flags}, {})
    for index, objective in enumerate(plan.objectives):
        yield from parsed(source, ("objectives", index, "value"), objective.value, alone)
    for index, name in enumerate(plan.splits):
        if name not in plan.flags:
            yield unknown(source, ("splits", index), name, plan.flags)
    for index, ceiling in enumerate(plan.ceilings):
        path: Path = ("ceilings", index)
        if ceiling.search not in known:
            yield unknown(source, (*path, "search"), ceiling.search, known)
        elif (found := rules.formulas.get(ceiling.search)) and found.search is None:
            says = f"`{ceiling.search}` is no search, and a ceiling is found by one."
            mark = source.mark((*path, "search"))
            yield source.problem("F216", "bad-search", mark, says)
        yield from parsed(source, (*path, "value"), ceiling.value, scope)
        yield from check_change(rules, source, path, ceiling.change, scope)
    for index, step in enumerate(plan.steps):
        path = ("prices", index)
        yield from parsed(source, (*path, "value"), step.value, scope)
        yield from parsed(source, (*path, "when"), condition(step.when), scope)
        yield from check_change(rules, source, path, step.change, scope)


def check_axes(rules: Rules, plan: Plan) -> Iterator[Problem]:
    """F106, F201, F211: axes are integer flags with options of their own."""
    flags, source = rules.flags, plan.source
    taken = {option for f in flags.flags.values() for option in options_of(f)}
    taken |= {s.option for s in flags.shorthands.values()} | set(flags.reserved)
    facts = source.data.get("absent", {})
    for index, axis in enumerate(plan.axes):
        path: Path = ("axes", index)
        flag = flags.flags.get(axis.flag)
        if flag is None:
            yield unknown(source, (*path, "flag"), axis.flag, flags.flags)
        elif flag.kind != "integer":
            mark = source.mark((*path, "flag"))
            yield source.problem("F106", "bad-flag", mark, f"{flag.option} is no whole number.")
        else:
            for position, value in enumerate(axis.default):
                yield from bad_value(source, (*path, "default", position), flags.flags, flag, value)
        for at, option in (("option", axis.option), ("most", axis.most and axis.most.option)):
            if option in taken:
                mark = source.mark((*path, at))
                yield source.problem("F106", "bad-flag", mark, f"{option} is an option already.")
            if option:
                taken.add(option)
        if axis.made_for is None:
            continue
        if axis.made_for.fact not in facts:
            yield unknown(source, (*path, "made_for", "fact"), axis.made_for.fact, facts)
        for hole, _, _ in holes(axis.made_for.says):
            if hole not in HOLES:
                mark = source.mark((*path, "made_for", "says"))
                says = f"`{{{hole}}}` is not known here; there are {', '.join(HOLES)}."
                yield source.problem("F211", "bad-sentence", mark, says)


def check_change(
    rules: Rules, source: Source, path: Path, change: Mapping[str, Any], scope: Scope
) -> Iterator[Problem]:
    """F106, F201: a change names flags and values that they can have."""
    flags = rules.flags.flags
    for name, value in change.items():
        where: Path = (*path, "change", name)
        if name not in flags:
            yield unknown(source, where, name, flags)
        elif flags[name].kind == "integer" and isinstance(value, str):
            yield from parsed(source, where, value, scope)
        else:
            yield from bad_value(source, where, flags, flags[name], value)


ADVICE_CHECKS = (check_advice,)
