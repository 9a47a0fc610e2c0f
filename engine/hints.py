"""What a change of flags would save or cost, each priced by a full second estimate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .cards import Card, cards_of
from .errors import FitcheckError, InputProblem
from .evaluation import NO_LOOP
from .flags import check_value
from .record import record
from .report import Prepared, is_refused, status_of
from .rules import Status
from .run import Run
from .template import MIB

Lever = Mapping[str, Any]  # one entry of `levers:` in the hints file
FITS, SAFE = "fits", "safe"  # goals of a proposal
MOST_PULLS = 64  # of one lever, so that one that changes nothing ends too


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
    """A change of flags that reaches its goal, with what the changed run would be called."""

    goal: str
    changes: Mapping[str, Any]
    says: tuple[str, ...]
    total: int
    settings: Mapping[str, Any]
    status: str
    title: str
    safe: bool
    levers: tuple[Lever, ...] = ()  # what was pulled for it, in order

    def to_dict(self) -> dict[str, Any]:
        """The form in the JSON contract; `changes` are keywords of `estimate`."""
        from .contract import plain

        return {
            "goal": self.goal,
            "changes": {n: plain(value) for n, value in self.changes.items()},
            "total_mib": round(self.total / MIB, 2),
            "status": self.status,
        }


@record
class Offer:
    """Another card for the same run, with what the run would be called there."""

    card: Card
    title: str
    safe: bool


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
    if is_refused(run):
        raise InputProblem("not modelled")
    return run


def proposals(prepared: Prepared) -> list[Proposal]:
    """
    What to offer for a run that is not safe.

    The cheapest change that fits, and where that is not safe the cheapest one that is; a run that
    fits already only gets the second.
    """
    found = [propose(prepared, FITS)]
    if found[0] is None or not found[0].safe:
        found.append(propose(prepared, SAFE))
    return [proposal for proposal in found if proposal is not None]


def propose(prepared: Prepared, goal: str = FITS) -> Proposal | None:
    """
    The cheapest change that reaches a goal: the first single lever that does, else levers added one
    by one. Repeated levers are only pulled after all cheaper ones.

    Returns None where the run is there already, or no combination of levers leads there.
    """
    rules, unsettled = prepared.rules, prepared.unsettled()
    if rules.hints is None or (goal == SAFE and unsettled):
        return None  # no flag settles a draft or an overlay
    run, levers = prepared.run_with(unsettled), rules.hints.data["levers"]
    if _reached(run, goal):
        return None
    for lever in levers:
        alone = None if lever.get("repeat") else pull(run, [lever], goal)
        if alone is not None:
            return proposal_of(prepared, goal, run, *alone)
    found = pull(run, levers, goal)
    if found is None:
        return None
    end, used = found
    for position in reversed(range(len(used))):  # some were pulled in vain; the dearest goes first
        fewer = used[:position] + used[position + 1 :]
        after = pull_each(run, fewer)
        if _reached(after, goal):
            end, used = after, fewer
    return proposal_of(prepared, goal, run, end, used)


def _reached(run: Run, goal: str) -> bool:
    if goal == SAFE:
        return status_of(run).safe
    assert run.rules.hints is not None
    return bool(run.value(run.rules.hints.data["fits"]))


def pull(run: Run, levers: Sequence[Lever], goal: str) -> tuple[Run, list[Lever]] | None:
    """The first run that is there while levers are added in order, with the levers it took.

    After each one those that were passed over get another chance: a lever may only apply, or only
    suffice, once a later one has made room.
    """
    used: list[Lever] = []
    for position, lever in enumerate(levers):
        for _ in range(MOST_PULLS if lever.get("repeat") else 1):
            after = apply(run, lever)
            if after is None:
                break
            run = after
            used.append(lever)
            if _reached(run, goal):
                return run, used
            for earlier in levers[:position]:
                again = None if earlier in used else apply(run, earlier)
                if again is not None and _reached(again, goal):
                    return again, [*used, earlier]
    return None


def pull_each(run: Run, levers: Sequence[Lever]) -> Run:
    """The run after these levers, without those that do not apply."""
    for lever in levers:
        run = apply(run, lever) or run
    return run


def apply(run: Run, lever: Lever) -> Run | None:
    """The run after one lever; None where it does not apply or the result is not modelled."""
    if not _evaluate(run, str(lever["when"])):
        return None
    try:
        return _changed(run, _values(run, lever["change"]))
    except FitcheckError:
        return None


def proposal_of(
    prepared: Prepared, goal: str, start: Run, end: Run, levers: Sequence[Lever]
) -> Proposal:
    """The run at the end of these levers, as changes of the one at the start."""
    assert end.rules.hints is not None
    before, after = start.facts.settings.values, end.facts.settings.values
    changes = {name: value for name, value in after.items() if value != before[name]}
    says = tuple(dict.fromkeys(str(lever["says"]) for lever in levers))
    total = end.value(end.rules.hints.data["price"])
    status = status_after(prepared, changes, end)
    return Proposal(
        goal, changes, says, total, after, status.id, status.title, status.safe, tuple(levers)
    )


def status_after(prepared: Prepared, changes: Mapping[str, Any], run: Run) -> Status:
    """The status of a run after changes, which may choose another profile, a draft or none."""
    changed = prepared.changed(**changes)
    unsettled = changed.unsettled()
    if bool(unsettled) != run.fact("run", "unsettled"):
        run = changed.run_with(unsettled)
    return status_of(run)


def smallest_card(prepared: Prepared) -> Offer | None:
    """
    The card with the least usable memory on which the run is safe, else on which it fits.

    A safe card has to be one that people would think of: of the same vendor, since the software
    often decides that, of the same class or of a usual one, and sold everywhere. Drafts never
    count.
    """
    rules, unsettled = prepared.rules, prepared.unsettled()
    if rules.hints is None:
        return None
    cards = [c for c in cards_of(rules) if c.status == "stable"]
    own = prepared.card.fields or next(
        (c.fields for c in cards if c.id == rules.flags.default_card), {}
    )
    classes = {own.get("class"), *rules.hints.data.get("cards", {}).get("usual", ())}

    def unusual(card: Card) -> tuple[bool, bool]:
        odd = bool(card.fields.get("regional")) or card.fields.get("class") not in classes
        return card.fields.get("vendor") != own.get("vendor"), odd

    start = prepared.run_with(unsettled)
    status_of(start)  # what every card shares is computed here, once
    first: Offer | None = None
    alike: dict[Any, Run] = {}  # the last run on a card of that architecture shares most with it
    for card in sorted(cards, key=lambda c: (unusual(c), c.usable, len(c.id), c.id)):
        if first is not None and (unsettled or any(unusual(card))):
            break  # nothing that follows is better
        generation = card.fields.get("architecture")
        run = alike[generation] = alike.get(generation, start).with_card(card.facts())
        if not _reached(run, FITS):
            continue
        status = status_of(run)
        offer = Offer(card, status.title, status.safe)
        if status.safe and not any(unusual(card)):
            return offer
        first = first or offer
    return first
