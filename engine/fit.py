"""Every card that holds a run, and how much of it each card holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .cards import Card, cards_of
from .record import record
from .report import Prepared, status_of
from .template import MIB


@record
class Held:
    """One card on which the run fits; `most` are the answers of the searches of the mode."""

    card: Card
    usable: int
    status: str
    title: str
    most: Mapping[str, int]
    capped: frozenset[str]  # searches that ended at the largest value a flag accepts

    def to_dict(self) -> dict[str, Any]:
        """The form in the JSON contract."""
        return {
            "key": self.card.id,
            "name": self.card.title,
            "usable_mib": round(self.usable / MIB, 2),
            "status": self.status,
            **self.most,
        }


def cards_that_hold(prepared: Prepared) -> list[Held]:
    """
    The stable cards on which the point estimate fits, by their usable memory.

    Each search is made with every other flag as it is, so that each line holds by itself. Cards of
    one architecture share what does not depend on their memory. Empty for rules without a mode that
    names searches.
    """
    rules = prepared.rules
    if rules.mode is None or rules.hints is None:
        return []
    unsettled = prepared.unsettled()
    start = prepared.run_with(unsettled)
    status_of(start)  # what every card shares is computed here, once
    fits, found = rules.hints.data["fits"], []
    cards = [c for c in cards_of(rules) if c.status == "stable"]
    for card in sorted(cards, key=lambda c: (c.usable, len(c.id), c.id)):
        run = start.with_card(card.facts())
        if not run.value(fits):
            continue
        status = status_of(run)
        most = {name: run.value(name) for name in rules.mode.fit}
        capped = frozenset(name for name in most if run.searches[name].capped)
        found.append(Held(card, card.usable, status.id, status.title, most, capped))
    return found
