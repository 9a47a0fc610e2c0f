"""Checks over several files: cycles, shared symbols, lists, JSON keys, profiles, verdicts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .. import expression as ex
from ..errors import Problem, RuleFileError
from ..formula import Formula, Symbol
from ..rules import Rules, Status
from ..scope import suggest
from .formula_checks import check_sentence, constant_value, domain_of
from .partition import Conditions, TooMany, describe, partition

JSON_UNITS = ("MiB", "byte", "percent", "truth", "text")


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

        cycle = visit(start)
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
            record = symbol.source.partition(".")[0]
            if record == "profiles":
                record = ".".join(symbol.source.split(".")[:2])
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
        "model": {"counted", "counted_parameters"},
        "card": {"total", "usable", "listed", "id", "architecture", "class", "vendor"},
        "run": {"unsettled"},
        "phases[]": {"id", "title"},
        "components[]": {"id", "title", "live", "bytes"},
    }
    for architecture in rules.architectures:
        found["model"] |= set(architecture.data.get("fields", {}))
        for entry in architecture.data.get("layer_groups", ()):
            fields = {"count", "name", "d_in", "d_out", *entry["fields"]}
            found.setdefault("layer_groups[]", set()).update(fields)
    for kind, profiles in rules.profiles.items():
        found[f"profiles.{kind}"] = {v for p in profiles for v in p.values}
    return found


def check_lists(rules: Rules) -> Iterator[Problem]:
    """F214: `per` and `live` name lists and phases that exist."""
    lists = {name[:-2] for name in records(rules) if name.endswith("[]")}
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
            taken[key] = formula
            if unit == "MiB" and formula.unit.text != "byte":
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
        if formula.band and formula.band[0] not in rules.formulas:
            yield formula.source.problem(
                "F201",
                "unknown-symbol",
                formula.source.mark(("band", "of")),
                f"`{formula.band[0]}` is no quantity.{suggest(formula.band[0], rules.formulas)}",
            )


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
        if not any(not p.matches for p in profiles):
            yield Problem(
                "F309",
                "no-fallback",
                profiles[0].mark if profiles else rules.flags.source.mark(),
                f"profiles/{kind} needs one file with `matches: {{}}` as the fallback.",
            )


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
            Conditions({s.id: s.when for s in rules.statuses}, domain, number), lambda _: True
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
    trees = [(("when",), status.when)]
    trees += [(("because", i, "when"), when) for i, (when, _) in enumerate(status.because)]  # type: ignore[misc]
    for path, tree in trees:
        try:
            rules.compile(formula, tree, path)
        except RuleFileError as error:
            yield from error.problems
    for index, (_, says) in enumerate(status.because):
        yield from check_sentence(rules, formula, ("because", index, "says"), says)


CROSS_CHECKS = (
    check_cycles,
    check_symbols,
    check_sources,
    check_lists,
    check_json,
    check_searches,
    check_profiles,
    check_profile_reads,
    check_statuses,
)
