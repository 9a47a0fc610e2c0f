"""One evaluation: flags, model and card in, exact values out, each computed at most once.

Values are integers, fractions, booleans or words; bytes are rounded where the formula file says so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from .errors import FitcheckError, RuleFileError
from .evaluation import CURRENT, NO_LOOP, EvaluationError, Thunk
from .flags import Settings
from .formula import HIGH, VALUE, Case, Formula, Table
from .profile import PassedOver, Profile, best_match
from .record import record
from .rules import Rules

MAX_ITEMS = 10_000
MAX_BITS = 512  # 2**512 is far past every amount; past it a file only wastes time
Key = tuple[str, int]  # formula id, identity of the list item (0 for none)


@record
class Facts:
    """What an evaluation starts from; `records` are `model`, `card` and `run`."""

    settings: Settings
    records: Mapping[str, Mapping[str, Any]]
    lists: Mapping[str, Sequence[Mapping[str, Any]]]


@record
class Found:
    """The answer of a search with its certificate: holds at `value`, not at `value + 1`."""

    value: int
    capped: bool


class Run:
    """Evaluates formulas on demand for one set of facts; `values` holds what is known already."""

    def __init__(
        self,
        rules: Rules,
        facts: Facts,
        band: int = VALUE,
        values: dict[Key, Any] | None = None,
        profiles: dict[str, tuple[Profile, tuple[PassedOver, ...]]] | None = None,
        parent: Run | None = None,
    ) -> None:
        self.rules, self.facts, self.band = rules, facts, band
        self.values = {} if values is None else values
        self.profiles = {} if profiles is None else profiles
        self.parent = parent  # its list items stay alive, so no new item gets the identity of one
        self.searching: bool = parent is not None and parent.searching
        self.chosen: dict[Key, Case] = {}
        self.searches: dict[str, Found] = {}
        self._ends: dict[int, Run] = {}
        self._components: list[dict[str, Any]] | None = None
        self._lists: dict[str, list[dict[str, Any]]] = {}

    # what compiled expressions ask for

    def flag(self, name: str) -> Any:
        return self.facts.settings.values[name]

    def fact(self, record: str, name: str) -> Any:
        try:
            return self.facts.records[record][name]
        except KeyError:
            raise FitcheckError(f"`{record}.{name}` is not known for this run.") from None

    def items(self, name: str) -> Sequence[Any]:
        if name == "components":
            if self._components is None:
                self._components = [
                    {"id": c.id, "title": c.title, "live": c.live, "bytes": self.value(c.id)}
                    for c in self.rules.components
                ]
            return self._components
        if name in self.rules.lists:
            if name not in self._lists:
                self._lists[name] = self._derived_list(name)
            return self._lists[name]
        try:
            return self.facts.lists[name]
        except KeyError:
            raise FitcheckError(f"There is no list `{name}` in this run.") from None

    def cell(self, table: Table, key: tuple[Any, ...] | None = None) -> Any:
        """The cell for these axis values, which are flags unless `key` is given."""
        if key is None:
            key = tuple(self.flag(a) for a in table.axes)
        value = table.cell(key)
        if value is None:
            at = ", ".join(f"{a}={v}" for a, v in zip(table.axes, key, strict=True))
            raise FitcheckError(
                f"{table.mark}: the table `{table.name}` has no cell for {at}, so this run is "
                "not modelled."
            )
        return value

    def profile(self, kind: str) -> tuple[Profile, tuple[PassedOver, ...]]:
        """The best matching profile of a kind and those passed over."""
        if kind not in self.profiles:
            self.profiles[kind] = best_match(self.rules.profiles.get(kind, ()), self.match_fact)
        return self.profiles[kind]

    def match_fact(self, key: str) -> Any:
        """The fact a profile key stands for: a flag, `card` (its id) or `card.<field>`."""
        if key in self.facts.settings.values:
            return self.flag(key)
        record, _, name = key.partition(".")
        return self.facts.records.get(record, {}).get(name or "id")

    def profile_value(self, kind: str, name: str) -> Any:
        profile = self.profile(kind)[0]
        try:
            return profile.value(name, self.band)
        except KeyError:
            raise FitcheckError(
                f"{profile.mark}: `{profile.id}` gives no `{name}`, which the formulas read here."
            ) from None

    def value(self, name: str) -> Any:
        """The value of a quantity."""
        key = (name, 0)
        if key not in self.values:
            self.values[key] = self._compute(name, NO_LOOP, key)
        return self.values[key]

    def value_at(self, name: str, item: Mapping[str, Any]) -> Any:
        """The value of a per-item quantity for one item of its list."""
        key = (name, id(item))
        if key not in self.values:
            self.values[key] = self._compute(name, {CURRENT: item}, key)
        return self.values[key]

    def _derived_list(self, name: str) -> list[dict[str, Any]]:
        """The items of a list that `lists.yaml` declares by its count."""
        count = self.rules.compiled_list(name)(self, NO_LOOP)
        if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= MAX_ITEMS:
            raise FitcheckError(
                f"formulas/lists.yaml: `{name}` has {count} items, which is not possible."
            )
        return [{"index": i, "title": f"{name} {i}"} for i in range(count)]

    # how a value comes about

    def _compute(self, name: str, loop: Mapping[str, Any], key: Key) -> Any:
        compiled = self.rules.compiled(name)
        formula = compiled.formula
        if compiled.condition is not None:
            self.refuse_nested(formula)
            self.searches[name] = self.search(formula, compiled.condition)
            return self.searches[name].value
        if formula.band is not None:
            of, end = formula.band
            return self.at_band(end).value(of)
        case, expression = self._choose(name, loop)
        self.chosen[key] = case
        try:
            result = expression(self, loop)
        except (EvaluationError, TypeError) as error:
            raise FitcheckError(f"{case.mark}: {error} in `{name}`, case {case.id}.") from None
        if isinstance(result, (int, Fraction)) and result.numerator.bit_length() > MAX_BITS:
            raise FitcheckError(
                f"{case.mark}: `{name}` comes out with more than {MAX_BITS} bits, which is no "
                "amount of anything."
            )
        return rounded(result, self.band) if formula.rounded else result

    def _choose(self, name: str, loop: Mapping[str, Any]) -> tuple[Case, Thunk]:
        """The one case that holds; none or several is an error of the file."""
        compiled = self.rules.compiled(name)
        formula = compiled.formula
        try:
            held = [(c, e) for c, when, e in compiled.cases if when is None or when(self, loop)]
        except (EvaluationError, TypeError) as error:
            place = formula.source.key_mark(("cases",))
            raise FitcheckError(f"{place}: {error} in a condition of `{name}`.") from None
        if len(held) == 1:
            return held[0]
        mark = formula.source.key_mark(("cases",))
        if not held:
            raise RuleFileError(
                [
                    formula.source.problem(
                        "F302",
                        "no-case",
                        mark,
                        f"No case of `{name}` holds for this run; add one, or a limit that "
                        "refuses it.",
                    )
                ]
            )
        both = " and ".join(f"`{c.id}`" for c, _ in held)
        raise RuleFileError(
            [
                formula.source.problem(
                    "F301",
                    "two-cases",
                    held[1][0].mark,
                    f"The cases {both} of `{name}` hold at once for this run; exactly one may.",
                )
            ]
        )

    def at_band(self, end: int) -> Run:
        """This run with every banded constant at one end (exact because totals rise with them)."""
        if end not in self._ends:
            touched = self.rules.affected_by_band
            kept = {k: v for k, v in self.values.items() if k[0] not in touched}
            self._ends[end] = Run(self.rules, self.facts, end, kept, dict(self.profiles), self)
        return self._ends[end]

    def with_card(self, card: Mapping[str, Any]) -> Run:
        """This run on another card, given by its facts; what is the same there is kept."""
        from .profile_defaults import refilled

        settings = refilled(self.rules, self.facts.settings, card)
        facts = Facts(settings, {**self.facts.records, "card": card}, self.facts.lists)
        other, before = Run(self.rules, facts, self.band, parent=self), self.facts.records["card"]
        touched: set[str] = set()
        for name, value in settings.values.items():
            if value != self.flag(name):
                touched |= self.rules.affected[name]
        for source, formulas in self.rules.affected_by_card.items():
            place, _, name = source.partition(".")
            same = (
                self._same_profile(other, name)
                if place == "profiles"
                else (name in before and name in card and before[name] == card[name])
            )
            if not same:
                touched |= formulas
        other.values.update({k: v for k, v in self.values.items() if k[0] not in touched})
        # Grades ask which case a value came from, of kept values too.
        other.chosen.update({k: c for k, c in self.chosen.items() if k[0] not in touched})
        return other

    def _same_profile(self, other: Run, kind: str) -> bool:
        """Whether another run chooses the profile that this one has chosen."""
        try:
            return kind in self.profiles and self.profiles[kind][0] is other.profile(kind)[0]
        except FitcheckError:
            return False  # raised again where its value is asked for

    def with_flag(self, name: str, value: Any) -> Run:
        """This run with one flag changed; values that cannot depend on it are kept."""
        touched = self.rules.affected[name]
        kept = {k: v for k, v in self.values.items() if k[0] not in touched}
        facts = Facts(
            self.facts.settings.changed(**{name: value}), self.facts.records, self.facts.lists
        )
        fixed = not any(name in p.matches for ps in self.rules.profiles.values() for p in ps)
        return Run(self.rules, facts, self.band, kept, dict(self.profiles) if fixed else None, self)

    def refuse_nested(self, formula: Formula) -> None:
        """A search in the condition of a search would take the product of their evaluations."""
        if self.searching:
            raise FitcheckError(
                f"{formula.source.path}: `{formula.id}` is a search, and the condition of another "
                "search reads it. Let the condition read what it compares instead."
            )

    def search(self, formula: Formula, condition: Thunk) -> Found:
        """The largest value of the searched flag for which the condition holds, 0 if 1 does not.

        Doubling, then bisection: the condition is monotone because the total rises with the flag.
        """
        assert formula.search is not None
        flag = formula.search.flag
        ceiling = self.rules.flags.flags[flag].high

        def holds(n: int) -> bool:
            there = self.with_flag(flag, n)
            there.searching = True
            return bool(condition(there, NO_LOOP))

        good, step = 0, 1
        while step <= ceiling and holds(step):
            good, step = step, step * 2
        if good and step > ceiling:
            if good == ceiling or holds(ceiling):
                return Found(ceiling, True)
            step = ceiling
        bad = step
        while bad - good > 1:
            middle = (good + bad) // 2
            good, bad = (middle, bad) if holds(middle) else (good, middle)
        now = self.flag(flag)
        if isinstance(now, int) and now > good and holds(now):
            raise FitcheckError(
                f"{formula.source.path}: the condition holds at {flag}={now:,} and not at {bad:,}, "
                "so there is no largest value to search for. The formulas behind it have to rise."
            )
        return Found(good, False)


def rounded(value: Any, band: int = VALUE) -> int:
    """The nearest whole number (halves up); the upper end of a band is rounded up."""
    if isinstance(value, int):
        return value
    if band == HIGH:
        up: int = math.ceil(value)
        return up
    nearest: int = math.floor(value + Fraction(1, 2))
    return nearest
