"""What `nvidia-smi -q -x` says: cards, MIG slices, free memory, processes, displays."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from ..record import replace
from ..template import MIB
from .device import DISPLAY, NO_DISPLAY, WDDM, Answer, Device, Process
from .tools import ask

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

TOOL = "nvidia-smi"
_SLICE = re.compile(r"^\s+MIG (\S+)\s+Device\s+(\d+): \(UUID: ([^)]+)\)")
_CARD = re.compile(r"^GPU (\d+): .*\(UUID: ([^)]+)\)")
_SIZE = re.compile(r"^\s*(\d+)\s*MiB\s*$")
KERNEL = "/proc/sys/kernel/osrelease"


def devices() -> Answer:
    """The cards of this machine that the driver of NVIDIA knows."""
    said = ask(TOOL, ["-q", "-x"])
    if said.problem:
        return Answer(TOOL, (), said.problem)
    found = read_xml(said.text, below_windows())
    if any(device.slice and not device.uuid for device in found.devices):
        # Most drivers give the names and identifiers of slices in this list alone.
        return replace(found, devices=named(found.devices, ask(TOOL, ["-L"]).text))
    return found


def below_windows() -> bool:
    """Whether this is Linux inside Windows, whose display driver the card belongs to."""
    try:
        with open(KERNEL, encoding="utf-8") as handle:
            return "microsoft" in handle.read().casefold()
    except OSError:
        return os.name == "nt"


def read_xml(text: str, windows: bool = False) -> Answer:
    """The cards of an answer; `windows` where nothing but its display driver is possible."""
    from xml.etree.ElementTree import ParseError, fromstring

    try:
        root = fromstring(text)
    except (ParseError, ValueError):
        return Answer(TOOL, (), "gave an answer that is no XML")
    if root.tag != "nvidia_smi_log":
        return Answer(TOOL, (), "gave an answer of another kind")
    found: list[Device] = []
    for number, card in enumerate(root.findall("gpu")):
        found += _card(card, str(number), windows)
    return Answer(TOOL, tuple(found), "" if found else "knows no card")


def _card(card: Element, number: str, windows: bool) -> list[Device]:
    """A card, or its slices where it is cut into some."""
    whole = Device(
        TOOL,
        "nvidia",
        number,
        _text(card, "product_name") or "NVIDIA card",
        _text(card, "uuid"),
        _size(card, "fb_memory_usage/total"),
        _free(card),
        _processes(card),
        _display(card, windows),
    )
    if whole.total is None:
        whole = replace(whole, problem="the driver does not say how much memory it has")
    elif whole.free is None:
        whole = replace(whole, problem="the driver does not say how much of its memory is free")
    if _text(card, "mig_mode/current_mig") != "Enabled":
        return [whole]
    slices = [_slice(whole, part) for part in card.findall("mig_devices/mig_device")]
    return slices or [replace(whole, problem="MIG is on and it is not cut into slices")]


def _slice(whole: Device, part: Element) -> Device:
    """A slice of a card with the processes that run in it."""
    own = _text(part, "gpu_instance_id")
    inside = tuple(p for p in whole.processes if p.instance == own)
    total, free = _size(part, "fb_memory_usage/total"), _free(part)
    return replace(
        whole,
        index=f"{whole.index}:{_text(part, 'index')}",
        uuid=_text(part, "uuid"),
        total=total,
        free=free,
        processes=inside,
        slice=_text(part, "profile") or "slice",
        problem="" if total is not None and free is not None else "its memory is not reported",
    )


def named(found: tuple[Device, ...], listing: str) -> tuple[Device, ...]:
    """Slices with the profile and identifier that `nvidia-smi -L` gives them."""
    known: dict[str, tuple[str, str]] = {}
    card = ""
    for line in listing.splitlines():
        if match := _CARD.match(line):
            card = match[1]
        elif match := _SLICE.match(line):
            known[f"{card}:{match[2]}"] = (match[1], match[3])
    return tuple(
        replace(d, slice=known[d.index][0], uuid=d.uuid or known[d.index][1])
        if d.slice and d.index in known
        else d
        for d in found
    )


def _text(element: Element, path: str) -> str:
    """The text at a path; empty where the driver writes that there is none."""
    text = (element.findtext(path) or "").strip()
    return "" if text in ("N/A", "None", "[N/A]") else text


def _size(element: Element, path: str) -> int | None:
    """A memory size in bytes; None where the driver does not say it."""
    match = _SIZE.match(element.findtext(path) or "")
    return int(match[1]) * MIB if match else None


def _free(element: Element) -> int | None:
    """Free memory, from total and used where it is not given itself."""
    free = _size(element, "fb_memory_usage/free")
    if free is not None:
        return free
    total, used = (_size(element, f"fb_memory_usage/{name}") for name in ("total", "used"))
    return None if total is None or used is None else max(0, total - used)


def _processes(card: Element) -> tuple[Process, ...]:
    found = []
    for entry in card.findall("processes/process_info"):
        pid, name = _text(entry, "pid"), _text(entry, "process_name")
        short = re.split(r"[\\/]", name.split(" --")[0])[-1] or "a process of somebody else"
        number = int(pid) if pid.isascii() and pid.isdigit() else 0
        used = _size(entry, "used_memory")
        found.append(Process(number, short, used, _text(entry, "gpu_instance_id")))
    return tuple(found)


def _display(card: Element, windows: bool) -> str:
    """Which allowance the card needs for a display."""
    model = _text(card, "driver_model/current_dm") or _text(card, "driver_model/current")
    if model == "WDDM" or (windows and model not in ("TCC", "MCDM")):
        return WDDM
    shown = _text(card, "display_active") == "Enabled" or _text(card, "display_attached") == "Yes"
    return DISPLAY if shown else NO_DISPLAY
