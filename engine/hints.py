"""What a change of flags would save or cost, each priced by a full second estimate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .cards import Card, all_cards
from .errors import FitcheckError, InputProblem
from .evaluation import NO_LOOP
from .flags import Flag, check_value
from .record import record
from .report import Prepared, find_caveats
from .run import Run
from .template import MIB

Lever = Mapping[str, Any]  # one entry of `levers:` in the hints file


@record
class Hint:
    """One priced change; `saved` is positive where it saves. [byte]"""

    label: str
    saved: int
    note: str
    change: Mapping[str, Any]

    @property
    def text(self) -> str:
        """One unformatted line: `adamw -> adam8bit ......... saves 312 MiB`."""
        verb, amount = self.price
        dots = "." * max(3, 30 - len(self.label))
        note = f"   ({self.note})" if self.note else ""
        return f"{self.label} {dots} {verb} {amount:>12}{note}"

    @property
    def short(self) -> str:
        """The same without columns, where there is no room for them."""
        return f"{self.label}: {' '.join(self.price)}{f' ({self.note})' if self.note else ''}"

    @property
    def price(self) -> tuple[str, str]:
        """`saves` or `costs`, and how much."""
        verb, sign = ("saves", "") if self.saved > 0 else ("costs", "+" if self.saved < 0 else "")
        size = abs(self.saved) / MIB
        digits = 2 if 0 < size < 10 else 0  # so that a small change is not printed as none
        return verb, f"{sign}{size:,.{digits}f} MiB"


@record
class Proposal:
    """The cheapest change found that makes the run fit."""

    changes: Mapping[str, Any]
    says: tuple[str, ...]
    total: int
    settings: Mapping[str, Any]


def _evaluate(run: Run, text: str) -> Any:
    """An expression over flags and quantities, as the hints file uses it."""
    if run.rules.hints is None:
        raise FitcheckError("formulas/hints.yaml is missing.")
    return run.rules.condition(text, run.rules.hints)(run, NO_LOOP)


def _values(run: Run, change: Mapping[str, Any]) -> dict[str, Any]:
    """The flag values of a change: words and switches as they stand, the rest as expressions."""
    result: dict[str, Any] = {}
    for name, value in change.items():
        flag = run.rules.flags.flags[name]
        if flag.kind == "integer" and isinstance(value, str):
            value = _evaluate(run, value)
        result[name] = check_value(flag, value)
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
    run, levers = prepared.run_with(()), rules.hints.data["levers"]
    if _fits(run):
        return None
    for lever in levers:
        alone = _pull(run, [lever])
        if alone is not None:
            return _proposal(run, *alone)
    found = _pull(run, levers)
    if found is None:
        return None
    for lever in reversed(found[1]):  # some were pulled in vain; the dearest goes first
        fewer = _pull(run, [other for other in found[1] if other is not lever])
        found = fewer or found
    return _proposal(run, *found)


def _fits(run: Run) -> bool:
    assert run.rules.hints is not None
    return bool(run.value(run.rules.hints.data["fits"]))


def _pull(run: Run, levers: Sequence[Lever]) -> tuple[Run, list[Lever]] | None:
    """The first run that fits while levers are added in order, with the levers it took.

    After each one those that were passed over get another chance: a lever may only apply, or only
    suffice, once a later one has made room.
    """
    used: list[Lever] = []
    for position, lever in enumerate(levers):
        after = _apply(run, lever)
        if after is None:
            continue
        run = after
        used.append(lever)
        if _fits(run):
            return run, used
        for earlier in levers[:position]:
            again = None if earlier in used else _apply(run, earlier)
            if again is not None and _fits(again):
                return again, [*used, earlier]
    return None


def _apply(run: Run, lever: Lever) -> Run | None:
    """The run after one lever; None where it does not apply or the result is not modelled."""
    if not _evaluate(run, str(lever["when"])):
        return None
    try:
        return _changed(run, _values(run, lever["change"]))
    except FitcheckError:
        return None


def _proposal(start: Run, end: Run, levers: Sequence[Lever]) -> Proposal:
    assert end.rules.hints is not None
    before, after = start.facts.settings.values, end.facts.settings.values
    changes = {name: value for name, value in after.items() if value != before[name]}
    says = tuple(dict.fromkeys(str(lever["says"]) for lever in levers))
    return Proposal(changes, says, end.value(end.rules.hints.data["price"]), after)


def smallest_card(prepared: Prepared) -> Card | None:
    """
    The card with the least usable memory on which the run would fit.

    Cards of the same vendor come first, since the software often decides that; drafts do not count.
    """
    rules = prepared.rules
    if rules.hints is None:
        return None
    cards = [c for c in all_cards(rules.folders("gpus"), rules.units) if c.status == "stable"]
    usual = [c for c in cards if c.id == rules.flags.default_card]
    likely = [prepared.card] if prepared.card.listed else usual
    vendor = likely[0].fields.get("vendor") if likely else None
    for card in sorted(
        cards, key=lambda c: (c.fields.get("vendor") != vendor, c.usable, len(c.id), c.id)
    ):
        if _fits(Prepared(rules, prepared.settings, card, prepared.model).run_with(())):
            return card
    return None


def opposite(option: str) -> str:
    """The option that undoes a switch: `--no-lora` for `--lora` and the other way round."""
    name = option.removeprefix("--")
    return f"--{name.removeprefix('no-')}" if name.startswith("no-") else f"--no-{name}"


def spelled(flag: Flag, value: Any) -> tuple[str, ...]:
    """The words that set a flag on the command line: `("--batch-size", "2")`."""
    if flag.kind == "switch":
        return (flag.option if value is not flag.inverse else opposite(flag.option),)
    if isinstance(value, tuple):
        preset = next((name for name, words in flag.presets.items() if words == value), None)
        value = preset or ",".join(value)
    return (flag.option, str(value))
