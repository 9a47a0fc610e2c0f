"""The cards of this machine, as the tools of their vendors tell: `--gpu auto`, `--gpu auto:1`.

Nothing is linked or imported for it: `nvidia-smi`, `rocm-smi` and `amd-smi` are started where they
are installed, without a shell and with a time limit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..cards import Card
    from ..rules import Rules

AUTO = "auto"


def is_here(name: str) -> bool:
    """Whether a name of a card stands for one of this machine."""
    return name.strip().casefold().partition(":")[0] == AUTO


def card_here(rules: Rules, name: str) -> Card:
    """
    The card of this machine that `auto`, `auto:POSITION` or `auto:UUID` names.

    Of several the one with the most free memory is taken, which its note says. Raises
    `InputProblem` where there is none, with what was tried.
    """
    from .choosing import chosen

    return chosen(rules, name.strip()[len(AUTO) :].lstrip(":").strip())
