"""From the devices of this machine to one card, with a note that says which and what it found."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..errors import InputProblem
from ..template import MIB
from . import amd, nvidia
from .device import Answer, Device
from .matching import card_of
from .visible import matching, variable_of, visible

if TYPE_CHECKING:
    from ..cards import Card
    from ..rules import Rules

AGAIN = 5.0  # seconds for which an answer counts as that of now


_last: list[tuple[float, tuple[Answer, ...]]] = []  # when the last answers were there


def answers() -> tuple[Answer, ...]:
    """What every tool says now; a command that asks twice within seconds starts them once."""
    if not _last or time.monotonic() - _last[0][0] > AGAIN:
        found = (nvidia.devices(), *amd.devices())
        _last[:] = [(time.monotonic(), found)]  # a tool that hangs is not asked again either
    return _last[0][1]


def entries() -> list[Device]:
    """The cards and slices that a program started here would see, in its order."""
    return visible([device for answer in answers() for device in answer.devices])


def chosen(rules: Rules, wanted: str) -> Card:
    """The card that is meant; raises `InputProblem`."""
    found = entries()
    if not any(device.usable for device in found):
        raise InputProblem(nothing(rules, found), flag="gpu")
    device = _named(found, wanted) if wanted else _roomiest(found)
    if not device.usable:
        reason = device.problem or "its memory is not reported"
        raise InputProblem(
            f"--gpu auto:{wanted}: {device.title}: {reason}. {instead(rules)}", flag="gpu"
        )
    return card_of(rules, device, f"auto:{found.index(device)}", others(found, device, wanted))


def _roomiest(found: Sequence[Device]) -> Device:
    """The device with the most free memory, of equal ones the first."""
    return max((d for d in found if d.usable), key=lambda d: d.free or 0)


def _named(found: Sequence[Device], wanted: str) -> Device:
    """The device at a position, or with an identifier."""
    if wanted.isascii() and wanted.isdigit():
        if int(wanted) < len(found):
            return found[int(wanted)]
        last = f"auto:0 to auto:{len(found) - 1}" if len(found) > 1 else "auto:0"
        raise InputProblem(f"--gpu auto:{wanted}: this machine has {last}.", flag="gpu")
    named = matching(found, wanted)
    if len(named) == 1:
        return named[0]
    known = ", ".join(d.uuid for d in found if d.uuid)
    raise InputProblem(
        f"--gpu auto:{wanted[:60]} names no card of this machine; write a position such as auto:0"
        f"{f' or one of {known}' if known else ''}.",
        flag="gpu",
    )


def others(found: Sequence[Device], device: Device, wanted: str) -> str:
    """What else there is, where one was chosen of several."""
    rest = [
        f"auto:{place} {d.title} with {(d.free or 0) // MIB:,} MiB free"
        if d.usable
        else f"auto:{place} {d.title}, {d.problem}"
        for place, d in enumerate(found)
        if d is not device
    ]
    if not rest:
        return ""
    why = "" if wanted else " (it has the most free memory)"
    return f"{why}; there is also {', '.join(rest)}"


def instead(rules: Rules) -> str:
    """What to write where the machine has no answer."""
    return (
        f"Name a card instead, such as --gpu {rules.flags.default_card} (--list-gpus prints all), "
        "or give its memory with --vram-mib 24576."
    )


def nothing(rules: Rules, found: Sequence[Device]) -> str:
    """What was tried where no card can be used, and what to write instead."""
    hidden = hiding()
    said = [f"{a.tool} {a.problem}" for a in answers() if a.problem]
    said += [f"{d.title}: {d.problem}" for d in found if d.problem]
    if hidden:
        said.insert(0, hidden)
    if sys.platform == "darwin":
        said.append("the unified memory of Apple chips is not modelled")
    return f"--gpu auto finds no GPU that can be used: {'; '.join(said)}. {instead(rules)}"


def hiding() -> str:
    """The variable that leaves none of the cards there are, in words."""
    for answer in answers():
        for device in answer.devices:
            name = variable_of(device.vendor, os.environ)
            if name and not visible(answer.devices):
                return f"{name}={os.environ[name]!r} hides every card"
    return ""
