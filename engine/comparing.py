"""One run on several cards, each a full estimate; what does not depend on the card is kept."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from .cards import Card
from .errors import FitcheckError, InputProblem
from .grades import Grade, Grader
from .record import record, replace
from .report import Caveat, Prepared, find_caveats, verdict
from .run import Run
from .template import MIB


@record
class Compared:
    """
    The run on one card; sizes in bytes.

    `capacity` is what the run may take there, `high` the upper end of the total, which the verdict
    looks at, and `most` the largest value of what the mode counts (`capped` where the flag takes no
    larger one). Where the run is not modelled on the card, `refused` says why and the rest is zero.
    """

    card: Card
    capacity: int
    total: int
    high: int
    headroom: int
    most: int
    capped: bool
    fits: bool
    status: str
    title: str
    style: str
    safe: bool
    reasons: tuple[str, ...]
    unsettled: tuple[str, ...]
    grade: Grade
    warnings: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()  # what a person should be told beside them
    refused: str = ""

    @property
    def used(self) -> Fraction:
        """The total as a share of the capacity."""
        return Fraction(self.total, self.capacity) if self.capacity > 0 else Fraction(0)

    def to_dict(self, most: str) -> dict[str, Any]:
        """The form in the JSON contract; `most` is the key of what the mode counts."""
        found: dict[str, Any] = {
            "key": self.card.id,
            "name": self.card.title,
            "vram_mib": round(self.card.total / MIB, 2),
            **self.card.here,
            "status": self.status,
            "safe_fits": self.safe,
            "fits": self.fits,
        }
        if self.refused:
            return {**found, "reasons": [self.refused]}
        return {
            **found,
            "capacity_mib": round(self.capacity / MIB, 2),
            "total_mib": round(self.total / MIB, 2),
            "total_high_mib": round(self.high / MIB, 2),
            "headroom_mib": round(self.headroom / MIB, 2),
            "used_pct": round(float(self.used) * 100, 2),
            most: self.most,
            f"{most}_capped": self.capped,
            "reasons": list(self.reasons),
            "unsettled": list(self.unsettled),
            "warnings": list(self.warnings),
            "evidence": self.grade.to_dict(),
        }


def compare(prepared: Prepared, cards: Sequence[Card]) -> list[Compared]:
    """
    The run on each of these cards, most headroom first; refused ones come last.

    Every line is what an estimate on that card alone says. Raises `InputProblem` where the rules do
    not say what a comparison shows.
    """
    hints = prepared.rules.hints
    if hints is None or "compare" not in hints.data:
        raise InputProblem(
            "The hints file of these rules has no `compare:`, which says what to show."
        )
    start = prepared.run_with(prepared.unsettled())
    start.value(hints.data["price"])  # what every card shares is computed here, once
    found = [_on_card(prepared, start, card) for card in cards]
    return sorted(found, key=lambda c: (bool(c.refused), -c.headroom, c.total, c.card.id))


def _on_card(prepared: Prepared, start: Run, card: Card) -> Compared:
    try:
        run = start.with_card(card.facts())
        there = replace(prepared, card=card, settings=run.facts.settings)
        unsettled = there.unsettled()
        if bool(unsettled) != run.fact("run", "unsettled"):
            run = there.run_with(unsettled)
        caveats = find_caveats(run)
        refused = next((c.says for c in caveats if c.level == "refuse"), "")
        if refused:
            return _refused(card, refused)
        return _compared(card, run, unsettled, caveats)
    except FitcheckError as error:
        return _refused(card, str(error))


def _compared(
    card: Card, run: Run, unsettled: tuple[str, ...], caveats: Sequence[Caveat]
) -> Compared:
    assert run.rules.hints is not None
    data = run.rules.hints.data
    shown, price = data["compare"], data["price"]
    status, reasons = verdict(run)
    total, most = run.value(price), run.value(shown["most"]["quantity"])
    search = run.searches.get(shown["most"]["quantity"])
    return Compared(
        card,
        run.value(shown["capacity"]["quantity"]),
        total,
        run.value(shown["high"]),
        run.value(shown["headroom"]),
        most,
        search is not None and search.capped,
        bool(run.value(data["fits"])),
        status.id,
        status.title,
        status.style,
        status.safe,
        reasons,
        unsettled,
        Grader(run).grade(price),
        tuple(c.says for c in caveats if c.warns),
        tuple(c.says for c in caveats if c.level == "tell" and not c.warns),
    )


def _refused(card: Card, says: str) -> Compared:
    none = Grade("assumed", 0, ())
    status, title, style = "not_modelled", "NOT MODELLED", "red"
    numbers = (0, 0, 0, 0, 0)
    return Compared(
        card, *numbers, False, False, status, title, style, False, (), (), none, (), (), says
    )
