"""What the tools of ROCm say as JSON: `rocm-smi`, and `amd-smi` where that is not installed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from ..template import MIB
from .device import NO_DISPLAY, Answer, Device, Process
from .tools import ask

OLD, NEW = "rocm-smi", "amd-smi"
ARGUMENTS = ["--showproductname", "--showmeminfo", "vram", "--showuniqueid", "--showpids", "--json"]
NAMES = ("card series", "card_series", "device name", "market name", "card model")
TOTAL, USED = "vram total memory (b)", "vram total used memory (b)"
UNITS = {"B": 1, "KB": 1024, "MB": MIB, "GB": 1024 * MIB}  # of amd-smi, whose MB are MiB
SMALLEST = 2 << 30  # what a processor with graphics sets aside is less, and no card for models


def devices() -> tuple[Answer, ...]:
    """What each of the two tools says; the second is only asked where the first finds nothing."""
    said = ask(OLD, ARGUMENTS)
    first = Answer(OLD, (), said.problem) if said.problem else read_rocm(said.text)
    if first.devices:
        return (first,)
    static = ask(NEW, ["static", "--asic", "--vram", "--json"])
    if static.problem:
        return first, Answer(NEW, (), static.problem)
    metric = ask(NEW, ["metric", "--mem-usage", "--json"])
    return first, read_amd(static.text, metric.text, ask(NEW, ["process", "--json"]).text)


def read_rocm(text: str) -> Answer:
    """The cards of an answer of `rocm-smi`; names of its keys differ in case between versions."""
    data = parsed(text)
    if not isinstance(data, Mapping):
        return Answer(OLD, (), "gave an answer that is no JSON")
    cards = [n for n in data if n.startswith("card")]
    # Which of several cards a process is on is not told here.
    running = tuple(_rocm_processes(data.get("system", {}))) if len(cards) == 1 else ()
    found: list[Device] = []
    for key, entry in data.items():
        if not key.startswith("card") or not isinstance(entry, Mapping):
            continue
        words = {str(name).casefold(): str(value) for name, value in entry.items()}
        total, used = number(words.get(TOTAL)), number(words.get(USED))
        free = None if total is None or used is None else max(0, total - used)
        name = next((words[n] for n in NAMES if _is_name(words.get(n, ""))), "AMD card")
        uuid = words.get("unique id", "")
        index = key.removeprefix("card")
        found.append(
            Device(
                OLD,
                "amd",
                index,
                name,
                "" if uuid == "N/A" else uuid,
                total,
                free,
                running,
                NO_DISPLAY,
                "",
                problem(total, free),
            )
        )
    return Answer(OLD, tuple(found), "" if found else "knows no card")


def _is_name(text: str) -> bool:
    return bool(text) and text != "N/A" and not text.casefold().startswith("0x")


def _rocm_processes(system: Any) -> Iterator[Process]:
    """`"PID1234": "python3, 1, 1048576, 0, 0"`: name, cards, VRAM in bytes and more."""
    for key, value in system.items() if isinstance(system, Mapping) else ():
        pid = key.removeprefix("PID")
        parts = [part.strip() for part in str(value).split(",")]
        if pid.isdigit() and len(parts) >= 3:
            used = number(parts[2])
            if used:
                yield Process(int(pid), parts[0] or "a process of somebody else", used)


def read_amd(static: str, metric: str, process: str = "") -> Answer:
    """The cards of answers of `amd-smi static`, `metric` and `process`."""
    cards, usage = entries(parsed(static)), {e.get("gpu"): e for e in entries(parsed(metric))}
    running = {e.get("gpu"): e.get("process_list") for e in entries(parsed(process))}
    found: list[Device] = []
    for entry in cards:
        asic, vram = _mapping(entry, "asic"), _mapping(entry, "vram")
        memory = _mapping(usage.get(entry.get("gpu"), {}), "mem_usage")
        total = size(memory.get("total_vram")) or size(vram.get("size"))
        free, used = size(memory.get("free_vram")), size(memory.get("used_vram"))
        if free is None and total is not None and used is not None:
            free = max(0, total - used)
        name = str(asic.get("market_name") or "AMD card")
        found.append(
            Device(
                NEW,
                "amd",
                str(entry.get("gpu", len(found))),
                name if _is_name(name) else "AMD card",
                str(asic.get("asic_serial") or ""),
                total,
                free,
                tuple(_amd_processes(running.get(entry.get("gpu")))),
                NO_DISPLAY,
                "",
                problem(total, free),
            )
        )
    return Answer(NEW, tuple(found), "" if found else "knows no card")


def _amd_processes(listed: Any) -> Iterator[Process]:
    for entry in listed if isinstance(listed, list) else ():
        info = _mapping(entry, "process_info") if isinstance(entry, Mapping) else {}
        pid = info.get("pid")
        if isinstance(pid, int):
            used = size(_mapping(info, "memory_usage").get("vram_mem"))
            yield Process(pid, str(info.get("name") or "a process of somebody else"), used)


def problem(total: int | None, free: int | None) -> str:
    """Why nothing can run on a card of this memory; empty where it can."""
    if total is None or free is None:
        return "the driver does not say how much memory it has or how much is free"
    return "graphics of the processor" if total < SMALLEST else ""


def parsed(text: str) -> Any:
    """The JSON in a text that may begin with warnings; None where there is none."""
    begin = min((at for at in (text.find("{"), text.find("[")) if at >= 0), default=-1)
    try:
        return json.JSONDecoder().raw_decode(text[begin:])[0] if begin >= 0 else None
    except (ValueError, RecursionError):
        return None


def entries(data: Any) -> list[Mapping[str, Any]]:
    """The cards of an answer: a list of objects, in newer versions inside one."""
    if isinstance(data, Mapping):
        data = data.get("gpu_data", [])
    return [entry for entry in data if isinstance(entry, Mapping)] if isinstance(data, list) else []


def _mapping(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = data.get(key)
    return found if isinstance(found, Mapping) else {}


def number(text: Any) -> int | None:
    """A count of bytes; None where it is none."""
    word = str(text).strip()
    return int(word) if word.isascii() and word.isdigit() else None


def size(value: Any) -> int | None:
    """Bytes of `{"value": 196592, "unit": "MB"}` or of a bare number of MiB; None for others."""
    unit = "MB"
    if isinstance(value, Mapping):
        unit, value = str(value.get("unit", unit)), value.get("value")
    if isinstance(value, bool) or not isinstance(value, int) or value < 0 or unit not in UNITS:
        return None
    return value * UNITS[unit]
