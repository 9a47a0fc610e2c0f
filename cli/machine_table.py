"""`--gpu auto --list-gpus`: the cards of this machine, what is free and who has the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fitcheck.cli.output import harmless, write
from fitcheck.cli.words import whole_mib
from fitcheck.engine.errors import InputProblem
from fitcheck.engine.json_kinds import json_text
from fitcheck.engine.machine.choosing import entries, nothing
from fitcheck.engine.machine.device import Device, taken
from fitcheck.engine.machine.matching import card_file, facts
from fitcheck.engine.template import MIB

if TYPE_CHECKING:
    from fitcheck.engine.rules import Rules


def list_machine(rules: Rules, as_json: bool, no_color: bool) -> int:
    """Print every card of this machine; raises `InputProblem` where there is none."""
    found = entries()
    if not found:
        raise InputProblem(nothing(rules, found), flag="gpu")
    if as_json:
        shown = [_record(rules, place, device) for place, device in enumerate(found)]
        write(json_text("machine", {"gpus": shown}))
    else:
        _print(rules, found, no_color)
    return 0


def _record(rules: Rules, place: int, device: Device) -> dict[str, Any]:
    card = card_file(rules, device)
    total = None if device.total is None else round(device.total / MIB, 2)
    return {
        **facts(device, f"auto:{place}"),
        "name": device.title,
        "key": card.id if card else None,
        "vram_mib": total,
        "problem": device.problem or None,
    }


def _print(rules: Rules, found: list[Device], no_color: bool) -> None:
    from rich.table import Table
    from rich.text import Text

    from fitcheck.cli.screen import WIDEST, console, show

    target = console(no_color, piped=WIDEST)
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("--gpu", no_wrap=True)
    table.add_column("total MiB", justify="right", no_wrap=True)
    table.add_column("free", justify="right", no_wrap=True)
    table.add_column("as", no_wrap=True)
    table.add_column("card", overflow="fold")
    table.add_column("in use by", overflow="fold")
    for place, device in enumerate(found):
        card = card_file(rules, device)
        sizes = ("" if size is None else whole_mib(size) for size in (device.total, device.free))
        who = Text(harmless(device.problem or taken(device.processes)), style="dim")
        known = card.id if card else "no file"
        table.add_row(f"auto:{place}", *sizes, known, harmless(device.title), who)
    tools = " and ".join(dict.fromkeys(device.tool for device in found))
    show(
        [table, "", f"said by {tools}; --gpu auto takes the one with the most free"],
        no_color,
        target,
    )
