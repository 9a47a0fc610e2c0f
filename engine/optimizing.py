"""What to run instead: a recommendation, and the cheapest changes that fit and that are safe.

What is recommended and which levers there are, in which order, says the hints file of the rules.
Every step is a full second estimate.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .hints import (
    FITS,
    MOST_PULLS,
    SAFE,
    Lever,
    Offer,
    Proposal,
    apply,
    proposal_of,
    propose,
    pull,
    pull_each,
    smallest_card,
    status_after,
)
from .record import record, replace
from .report import Prepared, status_of
from .run import Run
from .template import MIB

RECOMMENDED, EXHAUSTED = "recommended", "exhausted"  # goals beside those of a proposal


@record
class Step:
    """One lever of a proposal: what it changed, and the run after it and all before. [byte]"""

    changes: Mapping[str, Any]
    says: str
    total: int
    status: str
    title: str

    def to_dict(self) -> dict[str, Any]:
        """The form in the JSON contract."""
        from .contract import plain

        return {
            "changes": {name: plain(value) for name, value in self.changes.items()},
            "says": self.says,
            "total_mib": round(self.total / MIB, 2),
            "status": self.status,
        }


@record
class Optimized:
    """
    What was found for one run.

    `proposals` are what it would be better off with: a recommendation where one is possible, then,
    as far as the run is not there itself, the cheapest change that fits and the one that is safe.
    Where no combination of levers fits, `exhausted` is the run after all of them. `offer` is the
    smallest card for that, or for the run as it is where it is not safe.
    """

    safe: bool
    proposals: tuple[Proposal, ...]
    steps: tuple[tuple[Step, ...], ...]  # of each proposal
    exhausted: Proposal | None
    offer: Offer | None

    @property
    def reached(self) -> bool:
        """Whether the run or anything proposed is safe."""
        return self.safe or any(p.safe for p in self.proposals)


def optimize(prepared: Prepared) -> Optimized:
    """Search for better settings of one run; see `Optimized`."""
    unsettled = prepared.unsettled()
    run = prepared.run_with(unsettled)
    safe = status_of(run).safe
    advised = recommended(prepared, run)
    found = [advised] if advised is not None else []
    for goal in () if safe else (FITS, SAFE):
        if goal == SAFE and found and found[-1].goal == FITS and found[-1].safe:
            break
        proposal = propose(prepared, goal)
        if proposal is not None:
            found.append(proposal)
    last = None
    if not found and run.rules.hints is not None and not _fits(run):
        last = exhausted(prepared, run)
        if _fits(prepared.changed(**last.changes).run_with(unsettled)):
            found, last = [replace(last, goal=FITS)], None
    if last is not None:
        offer = smallest_card(prepared.changed(**last.changes))
    else:
        offer = None if safe else smallest_card(prepared)
    steps = tuple(tuple(steps_of(prepared, run, proposal)) for proposal in found)
    return Optimized(safe, tuple(found), steps, last, offer)


def _fits(run: Run) -> bool:
    assert run.rules.hints is not None
    return bool(run.value(run.rules.hints.data["fits"]))


def recommended(prepared: Prepared, run: Run) -> Proposal | None:
    """
    What the rules recommend for a run that fits or would with less of the same; its changes are
    empty where the run is that already. None where not even the least fits.
    """
    hints = run.rules.hints
    levers = hints.data.get("recommend", ()) if hints is not None else ()
    if not levers or apply(run, levers[0]) is None:
        return None
    found = pull(run, levers, SAFE)
    if found is None:  # no amount of it is safe: the first one at least fits
        found = pull_each(run, levers[:1]), [levers[0]]
    return proposal_of(prepared, RECOMMENDED, run, *found)


def exhausted(prepared: Prepared, run: Run) -> Proposal:
    """The run after every lever that applies; one may only apply once a later one was pulled."""
    assert run.rules.hints is not None
    used: list[Lever] = []
    start, before = run, -1
    while before < len(used) <= MOST_PULLS:  # levers that undo each other end too
        before = len(used)
        for lever in run.rules.hints.data["levers"]:
            for _ in range(MOST_PULLS if lever.get("repeat") else 1):
                after = apply(run, lever)
                if after is None or after.facts.settings.values == run.facts.settings.values:
                    break
                run = after
                used.append(lever)
    return proposal_of(prepared, EXHAUSTED, start, run, used)


def steps_of(prepared: Prepared, run: Run, proposal: Proposal) -> list[Step]:
    """The run after each lever of a proposal; levers that change nothing are left out."""
    assert run.rules.hints is not None
    price = run.rules.hints.data["price"]
    start, found = run.facts.settings.values, []
    for lever in proposal.levers:
        before = run.facts.settings.values
        run = apply(run, lever) or run
        after = run.facts.settings.values
        changes = {n: v for n, v in after.items() if v != before[n]}
        if not changes:
            continue
        status = status_after(prepared, {n: v for n, v in after.items() if v != start[n]}, run)
        total = run.value(price)
        found.append(Step(changes, str(lever["says"]), total, status.id, status.title))
    return found
