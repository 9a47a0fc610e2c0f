"""Which cards a program started here would see: CUDA_VISIBLE_DEVICES and its like."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from .device import Device

VARIABLES = {  # of each vendor's runtime, the first that is set counts
    "nvidia": ("CUDA_VISIBLE_DEVICES",),
    "amd": ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"),
}


def variable_of(vendor: str, environment: Mapping[str, str]) -> str:
    """The variable that chooses among the cards of a vendor; empty where none does."""
    return next((name for name in VARIABLES.get(vendor, ()) if name in environment), "")


def visible(
    devices: Sequence[Device], environment: Mapping[str, str] | None = None
) -> list[Device]:
    """
    The devices in the order in which a program counts them.

    As the runtimes do it: numbers and the beginnings of identifiers name cards, the list ends at
    the first word that names none, and an empty one hides all.
    """
    environment = os.environ if environment is None else environment
    found: list[Device] = []
    for vendor in dict.fromkeys(device.vendor for device in devices):
        own = [device for device in devices if device.vendor == vendor]
        name = variable_of(vendor, environment)
        found += _chosen(own, environment[name]) if name else own
    return found


def _chosen(devices: Sequence[Device], words: str) -> list[Device]:
    found: list[Device] = []
    for word in words.split(","):
        named = matching(devices, word.strip())
        if not named or any(device in found for device in named):
            break
        found += named
    return found


def matching(devices: Sequence[Device], word: str) -> list[Device]:
    """The devices that one word names: a card by number, any by its identifier or a part of it."""
    if not word:
        return []
    if word.isdigit():
        return [d for d in devices if d.index.partition(":")[0] == str(int(word))]
    same = [d for d in devices if d.uuid.casefold() == word.casefold()]
    near = [d for d in devices if d.uuid.casefold().startswith(word.casefold())]
    return same or (near if len(near) == 1 else [])
