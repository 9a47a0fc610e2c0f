"""One estimate answered: as a table, JSON, an explanation or a derivation. Needs no click."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fitcheck.cli.output import say, write
from fitcheck.engine.api import prepare
from fitcheck.engine.record import record

if TYPE_CHECKING:
    from fitcheck.engine.report import Report
    from fitcheck.engine.rules import Rules

ALL = "*"  # what --derive stands for without a component


@record
class Request:
    """What was typed: the model, its flags, and the other options that a repeated command needs."""

    model: str
    flags: dict[str, Any]
    others: dict[str, Any]
    told: tuple[str, ...] = ()  # what another program's command asks for and is not priced


def answer(
    rules: Rules,
    request: Request,
    values: dict[str, Any],
    seen: Callable[[Report], None] | None = None,
) -> int:
    """Estimate and print; returns the exit status of the verdict. `seen` is told the answer."""
    from fitcheck.engine.report import build_report
    from fitcheck.engine.sources import waiting

    waiting.tell = lambda text: say("note", text, values["no_color"])
    prepared = prepare(
        rules,
        request.model,
        gpu=values["gpu"],
        vram_mib=values["vram_mib"],
        source=values["source"],
        flags=request.flags,
        told=request.told,
    )
    report = build_report(prepared)
    if seen is not None:
        seen(report)
    draw_below = drawn(report, values) if values.get("plot") else None
    if values["derive"] is not None:
        component = None if values["derive"] == ALL else values["derive"]
        form = values["form"] or ("json" if values["as_json"] else "text")
        write(report.derive(component, form))
    elif values["as_json"]:
        write(json.dumps(as_json(report, request, values), indent=2))
    else:
        from fitcheck.cli.screen import print_estimate

        print_estimate(report, request, values)
    if draw_below:
        draw_below()
    if prepared.card.note:
        say("note", prepared.card.note, values["no_color"])
    for text in (*report.remarks, *report.warnings):
        say("warning", text, values["no_color"])
    return report.exit_code


def drawn(report: Report, values: dict[str, Any]) -> Callable[[], None]:
    """Write the pictures of --plot before the answer is printed; returns what comes below it."""
    from fitcheck.cli.plot import in_terminal, to_file, to_terminal

    target = values["plot"]
    if in_terminal(target):
        return lambda: to_terminal(report, values)
    to_file(report, target, values.get("picture", ()))
    return lambda: say("note", f"the pictures are in {target}", values["no_color"])


def as_json(report: Report, request: Request, values: dict[str, Any]) -> dict[str, Any]:
    """The JSON contract with the commands of proposals; options such as --explain add a key."""
    from fitcheck.cli.words import quantities, repeated

    data = report.to_dict()
    for proposal in data["proposals"]:
        words = repeated(report, request, proposal["changes"])
        proposal["command"] = shlex.join(words) if words else None
    if values["explain"]:
        data["explanation"] = report.explain()
    if values["verbose"]:
        data["quantities"] = quantities(report)
    if values.get("fit"):
        from fitcheck.engine.fit import cards_that_hold

        data["cards"] = [held.to_dict() for held in cards_that_hold(report.prepared)]
    return data
