"""From the name that a driver gives a card to a card file; another card is known by its memory."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..card_names import Named, Search
from ..cards import Card, card_files, normalised
from ..record import replace
from ..template import MIB
from .device import Device, taken

if TYPE_CHECKING:
    from ..rules import Rules

ALIKE = (
    0.08  # part of the total by which box, driver and CUDA differ; sizes of one name differ more
)
_VENDOR = re.compile(r"^(nvidia|amd|amd/ati)\s+", re.IGNORECASE)
_BRACKETS = re.compile(r"[\[(]([^\])]+)[\])]")


def spellings(name: str, vendor: str) -> Iterator[str]:
    """What a card file may call the card: its name, without the vendor, the board or the form."""
    yield name
    bare = _VENDOR.sub("", name)
    yield bare
    if vendor != "amd":
        return  # every word of the names that NVIDIA gives tells cards apart
    yield from _BRACKETS.findall(name)
    words = _BRACKETS.sub(" ", bare).split()
    while len(words) > 1:
        words = words[:-1]
        yield " ".join(words)


def card_file(rules: Rules, device: Device) -> Card | None:
    """The card file whose name and memory are those of a device."""
    search = Search(device.name, card_files(rules.folders("gpus")), rules.units)
    total = device.total or 0
    for name in spellings(device.name, device.vendor):
        exact, family = search.named(normalised(name))
        near = [n for n in (*exact, *family) if device.slice or _alike(n, total)]
        if near:
            return min(near, key=lambda n: abs(n.card.total - total)).card
    return None


def _alike(named: Named, total: int) -> bool:
    return abs(named.card.total - total) <= ALIKE * named.card.total


def card_of(rules: Rules, device: Device, selector: str, others: str) -> Card:
    """A device as a card: the figures of its file, the memory and what is free as reported."""
    listed = card_file(rules, device)
    total, free = device.total or 0, device.free or 0
    note = f"--gpu {selector} is {device.title}{others}. {_memory(device)}"
    if device.slice and device.uuid:  # a program sees the first slice alone where it is not told
        note += f"; a program uses it with CUDA_VISIBLE_DEVICES={device.uuid}"
    if listed is None:
        fields: dict[str, Any] = {"vendor": device.vendor}
        note += "; the database has no such card, so a part of its memory counts as usable"
    card = listed or Card("custom", device.title, "stable", fields, total, 0, False)
    if device.slice:  # a part of a listed card
        card = replace(card, usable=0, listed=False, evidence={})
    return replace(
        card,
        title=f"{device.title} (this machine)",
        total=total,
        usable=min(card.usable, total),
        note=f"{note}.",
        free=free,
        display=device.display,
        here={**facts(device, selector)},
    )


def _memory(device: Device) -> str:
    free, total = (device.free or 0) // MIB, (device.total or 0) // MIB
    used = taken(device.processes)
    return f"{free:,} of {total:,} MiB are free now{f', and it has {used}' if used else ''}"


def facts(device: Device, selector: str) -> dict[str, Any]:
    """What the JSON says of a device beside name and memory."""
    free = None if device.free is None else round(device.free / MIB, 2)
    return {
        "selector": selector,
        "source": device.tool,
        "index": device.index,
        "uuid": device.uuid or None,
        "slice": device.slice or None,
        "free_mib": free,
        "display": device.display,
        "processes": [process.to_dict() for process in device.processes],
    }
