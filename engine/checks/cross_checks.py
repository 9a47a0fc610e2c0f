"""Checks over several formula files: cycles, shared symbols, lists, JSON keys, searches."""

from __future__ import annotations

from collections.abc import Iterator

from ..architecture_expressions import listed
from ..cards import FACTS
from ..checkpoint import facts_of
from ..errors import Problem, RuleFileError
from ..formula import Formula, Symbol
from ..rules import Rules
from ..scope import suggest

JSON_UNITS = ("MiB", "whole MiB", "MiB to 6 decimals", "byte", "percent", "truth", "text")


def check_cycles(rules: Rules) -> Iterator[Problem]:
    """F306: no quantity depends on itself; the path is named."""
    done: set[str] = set()
    for start in rules.formulas:
        path: list[str] = []

        def visit(name: str, path: list[str] = path) -> list[str] | None:
            if name in path:
                return [*path[path.index(name) :], name]
            if name in done or name not in rules.formulas:
                return None
            path.append(name)
            for read in sorted(rules.reads_of(rules.formulas[name])):
                found = visit(read)
                if found:
                    return found
            path.pop()
            done.add(name)
            return None

        try:
            cycle = visit(start)
        except RecursionError:
            formula = rules.formulas[start]
            message = "The quantities behind this one form a chain that is too long."
            mark = formula.source.mark(("reads",))
            yield formula.source.problem("F306", "cycle", mark, message)
            return
        if cycle:
            formula = rules.formulas[cycle[0]]
            yield formula.source.problem(
                "F306",
                "cycle",
                formula.source.mark(("reads",)),
                f"This quantity needs itself: {' -> '.join(cycle)}.",
            )
            return


def check_symbols(rules: Rules) -> Iterator[Problem]:
    """F207: one symbol has one source, unit and meaning in all files."""
    first: dict[str, Symbol] = {}
    for formula in rules.formulas.values():
        for name, symbol in formula.symbols.items():
            known = first.setdefault(name, symbol)
            for part in ("source", "unit", "meaning"):
                mine, theirs = getattr(symbol, part), getattr(known, part)
                if mine != theirs:
                    yield formula.source.problem(
                        "F207",
                        "symbol-disagrees",
                        symbol.mark,
                        f"`{name}` has {part} `{mine}` here and `{theirs}` in {known.mark}.",
                    )
                    break


def check_sources(rules: Rules) -> Iterator[Problem]:
    """F212: the place a symbol comes from exists."""
    known = records(rules)
    for formula in rules.formulas.values():
        for symbol in formula.symbols.values():
            record = symbol.source.rpartition(".")[0]
            if record not in known:
                message = f"`{record}` is no place a value can come from.{suggest(record, known)}"
            elif symbol.field not in known[record]:
                near = suggest(symbol.field, known[record])
                message = f"Nothing gives `{symbol.source}`.{near}"
            else:
                continue
            yield formula.source.problem("F212", "unknown-source", symbol.mark, message)


def records(rules: Rules) -> dict[str, set[str]]:
    """Every record and list that a symbol may come from, with its fields."""
    found = {
        "flags": set(rules.flags.flags),
        "model": {"verified", "counted", "counted_parameters", *facts_of(rules.checkpoint)},
        "card": {*FACTS, "architecture", "class", "vendor"},
        "run": {"unsettled"},
        "phases[]": {"id", "title"},
        **{f"{name}[]": {"index", "title"} for name in rules.lists},
        "components[]": {"id", "title", "live", "bytes"},
    }
    for architecture in rules.architectures:
        try:
            refuses = "refuse" in architecture.own and "layer_groups" not in architecture.own
            data = architecture.own if refuses else architecture.data
        except RuleFileError:
            continue  # its file was reported
        found["model"] |= set(data.get("fields", {}))
        for place, name in listed(data) if "sums" in data else ():
            found.setdefault(place, set()).add(name)
    for kind, profiles in rules.profiles.items():
        found[f"profiles.{kind}"] = {v for p in profiles for v in p.values}
    return found


def check_lists(rules: Rules) -> Iterator[Problem]:
    """F214: `per` and `live` name lists and phases that exist."""
    lists = {name.replace("[]", "") for name in records(rules) if name.endswith("[]")}
    for formula in rules.formulas.values():
        if formula.per is not None and formula.per not in lists:
            yield formula.source.problem(
                "F214",
                "unknown-list",
                formula.source.mark(("per",)),
                f"There is no list `{formula.per}`; there are {', '.join(sorted(lists))}.",
            )
        for index, phase in enumerate(formula.live):
            if phase != "always" and phase not in rules.phases:
                yield formula.source.problem(
                    "F214",
                    "unknown-phase",
                    formula.source.mark(("live", index)),
                    f"`{phase}` is no phase; there are {', '.join(rules.phases)} and always."
                    f"{suggest(phase, rules.phases)}",
                )
        if formula.live and formula.unit.text != "byte":
            yield formula.source.problem(
                "F205",
                "wrong-result-unit",
                formula.source.mark(("unit",)),
                "A memory component is in byte.",
            )


def check_json(rules: Rules) -> Iterator[Problem]:
    """F215: every JSON key is filled once, in a unit the value has."""
    taken: dict[str, Formula] = {}
    inner: dict[str, list[str]] = {}  # the keys inside of a key
    for formula in rules.formulas.values():
        for key, unit in formula.json.items():
            mark = formula.source.key_mark(("json", key))
            if key in taken:
                yield formula.source.problem(
                    "F215",
                    "json-key-taken",
                    mark,
                    f"`{key}` is filled by {taken[key].source.path} already.",
                )
            parts = key.split(".")
            outer = [".".join(parts[:depth]) for depth in range(1, len(parts))]
            for other in (*(o for o in outer if o in taken), *inner.get(key, ())):
                yield formula.source.problem(
                    "F215",
                    "json-key-taken",
                    mark,
                    f"`{key}` cannot stand beside `{other}` ({taken[other].source.path}): one "
                    "of them would be inside the other.",
                )
            taken[key] = formula
            for name in outer:
                inner.setdefault(name, []).append(key)
            if "MiB" in unit and formula.unit.text != "byte":
                yield formula.source.problem(
                    "F215",
                    "json-unit",
                    mark,
                    f"`{key}` is in MiB, and this quantity is in {formula.unit}.",
                )
            if unit not in (*JSON_UNITS, formula.unit.text):
                yield formula.source.problem(
                    "F215",
                    "json-unit",
                    mark,
                    f"`{unit}` is no unit for JSON; write "
                    f"{formula.unit.text} or one of {', '.join(JSON_UNITS)}.",
                )


def check_searches(rules: Rules) -> Iterator[Problem]:
    """F216: a search runs over a whole-number flag, a band over a quantity."""
    for formula in rules.formulas.values():
        if formula.search:
            flag = rules.flags.flags.get(formula.search.flag)
            if flag is None or flag.kind != "integer":
                yield formula.source.problem(
                    "F216",
                    "bad-search",
                    formula.source.mark(("search", "largest")),
                    f"`{formula.search.flag}` is no whole-number flag.",
                )
        if formula.search:
            for name in sorted(read_by(rules, formula) - {formula.id}):
                if rules.formulas[name].search:
                    yield formula.source.problem(
                        "F216",
                        "bad-search",
                        formula.source.mark(("search", "while")),
                        f"The condition reads `{name}`, which is itself a search: each try would "
                        "be a search of its own. Let the condition read what that one compares.",
                    )
            for kind in sorted(profile_kinds_read(rules, formula)):
                for profile in rules.profiles[kind]:
                    if formula.search.flag in profile.matches:
                        yield formula.source.problem(
                            "F216",
                            "bad-search",
                            formula.source.mark(("search", "largest")),
                            f"{profile.source.path} has `{formula.search.flag}` as a key, so the "
                            "condition need not be monotone in it and a search could miss the "
                            "largest value.",
                        )
        if formula.band and formula.band[0] not in rules.formulas:
            yield formula.source.problem(
                "F201",
                "unknown-symbol",
                formula.source.mark(("band", "of")),
                f"`{formula.band[0]}` is no quantity.{suggest(formula.band[0], rules.formulas)}",
            )


def read_by(rules: Rules, formula: Formula) -> set[str]:
    """A formula and every quantity that it reads, directly or through others."""
    seen: set[str] = set()
    waiting = [formula.id]
    while waiting:
        name = waiting.pop()
        if name in seen or name not in rules.formulas:
            continue
        seen.add(name)
        waiting += rules.reads_of(rules.formulas[name])
    return seen


def profile_kinds_read(rules: Rules, formula: Formula) -> set[str]:
    """The kinds of profiles that a formula reads, directly or through other quantities."""
    kinds = {
        symbol.source.split(".")[1]
        for name in read_by(rules, formula)
        for symbol in rules.formulas[name].symbols.values()
        if symbol.source.startswith("profiles.")
    }
    return kinds & set(rules.profiles)


CROSS_CHECKS = (
    check_cycles,
    check_symbols,
    check_sources,
    check_lists,
    check_json,
    check_searches,
)
