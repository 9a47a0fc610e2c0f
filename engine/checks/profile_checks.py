"""Checks of profiles: keys and values that exist, what formulas read, ties, evidence."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Iterator
from typing import Any

from .. import expression as ex
from ..errors import InputProblem, Problem
from ..flags import check_value
from ..formula import Formula
from ..profile import more_specific
from ..rules import Rules
from ..scope import suggest
from ..versions import parse_bounds, ranges_meet
from .formula_checks import constant_value, domain_of, shown
from .partition import Conditions

MAX_TIES = 5  # of one profile; whoever has more starts with these


def check_profiles(rules: Rules) -> Iterator[Problem]:
    """F307, F308, F501: profiles have known keys, give what is read, and rest on evidence."""
    card_keys = ("card", "card.architecture", "card.class", "card.vendor")
    for kind, profiles in rules.profiles.items():
        words = {
            s.field: s.oneof
            for f in rules.formulas.values()
            for s in f.symbols.values()
            if s.source.startswith(f"profiles.{kind}.") and s.oneof
        }
        lows = {
            s.field: s.low
            for f in rules.formulas.values()
            for s in f.symbols.values()
            if s.source.startswith(f"profiles.{kind}.") and s.low is not None
        }
        for profile in profiles:
            source = profile.source
            for key in profile.matches:
                if key not in card_keys and key not in rules.flags.flags:
                    known = [*card_keys, *rules.flags.flags]
                    yield source.problem(
                        "F307",
                        "unknown-match",
                        source.key_mark(("matches", key)),
                        f"`{key}` is neither a flag nor {', '.join(card_keys)}."
                        f"{suggest(key, known)}",
                    )
            for key, wanted in profile.matches.items():
                problem = wrong_match(rules, key, wanted)
                if problem:
                    mark = source.mark(("matches", key))
                    yield source.problem("F307", "unknown-match", mark, problem)
            for name, allowed in words.items():
                value = profile.values.get(name)
                if value not in allowed:
                    yield source.problem(
                        "F308",
                        "profile-value",
                        source.key_mark(("values", name)),
                        f"`{name}` has to be one of {', '.join(map(str, allowed))}.",
                    )
            for name, value in profile.values.items():
                if isinstance(value, str):
                    continue
                low = lows.get(name)
                if low is not None and value.band[0] < low:
                    yield source.problem(
                        "F308",
                        "profile-value",
                        value.mark,
                        f"`{name}` goes down to {shown(value.band[0])}; formulas need at least "
                        f"{shown(low)}.",
                    )
                if not value.evidence:
                    yield source.problem(
                        "F501", "no-evidence", value.mark, f"`{name}` names no evidence."
                    )
                for proof in value.evidence:
                    if proof not in profile.evidence:
                        yield source.problem(
                            "F502",
                            "dangling-evidence",
                            value.mark,
                            f"`{proof}` is not an entry under evidence."
                            f"{suggest(proof, profile.evidence)}",
                        )
        listed = any(flag.of == kind for flag in rules.flags.flags.values())
        if not listed and not any(not p.matches for p in profiles):
            yield Problem(
                "F309",
                "no-fallback",
                profiles[0].mark if profiles else rules.flags.source.mark(),
                f"profiles/{kind} needs one file with `matches: {{}}` as the fallback.",
            )


def check_options(rules: Rules) -> Iterator[Problem]:
    """F201: options of a program mean flags that exist, or the same as another option."""
    flags = rules.flags.flags
    for profile in (p for profiles in rules.profiles.values() for p in profiles):
        for name, spec in profile.source.data.get("options", {}).items():
            other = str(spec.get("same_as", name))
            target = profile.options.get(other)
            known: Collection[str] = profile.options
            wrong = other if target is None or (other != name and "same_as" in target) else ""
            if other == name and "same_as" in spec:
                wrong = name
            for key in ("flag", "divided_by", "after_colon"):
                if key in spec and str(spec[key]) not in flags:
                    wrong, known = str(spec[key]), flags
            if wrong:
                yield profile.source.problem(
                    "F201",
                    "unknown-symbol",
                    profile.source.key_mark(("options", name)),
                    f"`{wrong}` leads to no flag that exists.{suggest(wrong, known)}",
                )


def wrong_match(rules: Rules, key: str, wanted: Any) -> str | None:
    """What is wrong with the value of a key, if anything."""
    flag = rules.flags.flags.get(key)
    if flag is None:
        return None
    if flag.kind == "version":
        try:
            parse_bounds(str(wanted))
        except ValueError as error:
            return f"{error}."
        return None
    if flag.kind == "words":
        words = wanted if isinstance(wanted, list) else []
        return None if words else f"`{key}` is a list of names here."
    for value in wanted if isinstance(wanted, list) else [wanted]:
        try:
            check_value(flag, value)
        except InputProblem as error:
            return str(error)
    return None


def check_profile_reads(rules: Rules) -> Iterator[Problem]:
    """F308: each profile gives the values of every case that can hold with its words."""
    for formula in rules.formulas.values():
        needed = {n: s for n, s in formula.symbols.items() if s.source.startswith("profiles.")}
        for case in formula.cases:
            for name, symbol in needed.items():
                if name not in ex.names(case.expr):
                    continue
                kind = symbol.source.split(".")[1]
                for profile in rules.profiles.get(kind, ()):
                    if symbol.field not in profile.values and can_hold(
                        rules, formula, case.when, kind, profile.values
                    ):
                        yield profile.source.problem(
                            "F308",
                            "profile-value",
                            profile.source.key_mark(("values",)),
                            f"`{symbol.field}` is missing; {formula.source.path} reads it in case "
                            f"`{case.id}`.",
                        )


def can_hold(rules: Rules, formula: Formula, when: ex.Node | None, kind: str, values: Any) -> bool:
    """Whether a condition can hold once the words of a profile are fixed."""
    if when is None:
        return True
    fixed = {
        n: values[s.field]
        for n, s in formula.symbols.items()
        if s.source.startswith(f"profiles.{kind}.") and isinstance(values.get(s.field), str)
    }
    conditions = Conditions(
        {"when": when}, domain_of(rules, formula), lambda n: constant_value(formula, n)
    )
    return any(
        conditions.holds("when", {**point, **fixed})
        for point in conditions.space.combinations()
        if all(point.get(n, v) == v for n, v in fixed.items())
    )


def check_ties(rules: Rules) -> Iterator[Problem]:
    """F305: no two profiles can match one run without one being more specific."""
    for profiles in rules.profiles.values():
        tied: Counter[str] = Counter()
        for first, second in itertools.combinations(profiles, 2):
            if tied[second.id] >= MAX_TIES:
                continue
            if more_specific(first, second) or more_specific(second, first):
                continue
            if any(
                excluded(rules, key, first.matches[key], second.matches[key])
                for key in set(first.matches) & set(second.matches)
            ):
                continue
            tied[second.id] += 1
            yield second.source.problem(
                "F305",
                "profile-tie",
                second.source.key_mark(("matches",)),
                f"`{first.id}` ({first.mark.path}) and `{second.id}` can match the same run and "
                "neither has all the keys of the other. Add a key to one of them.",
            )


def excluded(rules: Rules, key: str, mine: Any, theirs: Any) -> bool:
    """Whether no run can have both values of a key, by the rules of `profile.matches`."""
    flag = rules.flags.flags.get(key)
    if flag is not None and flag.kind == "version":
        try:
            return not ranges_meet(str(mine), str(theirs))
        except ValueError:
            return True  # what is no range is reported as such
    lists = [value if isinstance(value, list) else [value] for value in (mine, theirs)]
    first, second = ({str(word) for word in words} for words in lists)
    if flag is not None and flag.kind == "words":
        return first != second
    return not first & second


PROFILE_CHECKS = (check_profiles, check_options, check_profile_reads, check_ties)
