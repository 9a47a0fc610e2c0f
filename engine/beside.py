"""A second model beside the one that is estimated, such as the draft model of an engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .record import record

if TYPE_CHECKING:
    from .report import Prepared


@record
class Beside:
    """What `beside:` of a mode says: the flag that names the model, and facts from quantities."""

    flag: str
    facts: Mapping[str, str]  # fact that formulas read as `model.NAME`, to a quantity of the other


def facts_beside(other: Prepared, beside: Beside) -> dict[str, Any]:
    """The facts of the other model, each a quantity of its own run with the same flags."""
    run = other.run_with(())
    return {fact: run.value(quantity) for fact, quantity in beside.facts.items()}
