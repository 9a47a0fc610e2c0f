"""`fitcheck rules list` and `explain`."""

from __future__ import annotations

import os
from collections import Counter

import click

from fitcheck.cli.rules.folders import complete_code, json_option, load, rules_option
from fitcheck.cli.rules.layout import columns, counted, paragraph, say
from fitcheck.engine.json_kinds import json_text
from fitcheck.engine.workshop import codes
from fitcheck.engine.workshop.index import Entry, counts, entries

KINDS = {
    "component": "Memory components",
    "quantity": "Quantities",
    "vocabulary": "Vocabulary",
    "profile": "Profiles",
    "status": "Statuses",
    "architecture": "Architectures",
    "block": "Blocks of architectures",
}


@click.command("list")
@rules_option
@json_option
def list_command(folders: tuple[str, ...], as_json: bool) -> int:
    """Every formula, profile, status, architecture and block; how many cards and models there are.

    A name such as overhead/default says which of two files with one id is meant.
    """
    rules = load(folders)
    found, numbers = entries(rules), counts(rules)
    if as_json:
        files = [
            {
                "id": e.id,
                "name": e.name,
                "kind": e.kind,
                "title": e.title,
                "status": e.status,
                "file": e.said,
                "path": os.path.realpath(e.path),
                "changed": e.overlay,
            }
            for e in found
        ]
        say(json_text("rules-list", {"files": files, **numbers}))
        return 0
    lines: list[str] = []
    repeated = Counter(e.id for e in found if e.mode is None)  # a bare id is training's
    for kind, title in KINDS.items():
        shown = [e for e in found if e.kind == kind]
        if shown:
            lines += [
                title,
                *columns([_row(e, repeated[e.id] > (e.mode is None)) for e in shown], 2),
                "",
            ]
    amounts = (counted(numbers["cards"], "card"), counted(numbers["models"], "catalogue model"))
    lines.append(f"{amounts[0]} (fitcheck --list-gpus), {amounts[1]}")
    say(*lines)
    return 0


def _row(entry: Entry, ambiguous: bool) -> tuple[str, str, str]:
    marks = [entry.status] if entry.status != "stable" else []
    marks += [f"from {entry.said}"] if entry.overlay else []
    name = entry.name if ambiguous or entry.kind == "profile" else entry.id
    return name, ", ".join(marks), entry.title


@click.command("explain")
@click.argument("code", required=False, shell_complete=complete_code)
@json_option
def explain_command(code: str | None, as_json: bool) -> int:
    """What a lint code means: what it checks, a wrong and a right example, how to mend it.

    CODE is a code such as F204 or its name, such as unit-mismatch; without one all are listed.
    """
    if code is None:
        found = list(codes.pages().values())
        if as_json:
            say(json_text("rules-codes", {"codes": [_data(p) for p in found]}))
        else:
            rows = [(p.code, p.title, ", ".join(p.names)) for p in found]
            say(*columns(rows), "", "fitcheck rules explain CODE prints the page of one.")
        return 0
    page = codes.page(code)
    if as_json:
        say(json_text("rules-code", _data(page)))
        return 0
    say(
        f"{page.code}  {page.title}",
        "",
        *columns(list(page.names.items()), 2),
        "",
        paragraph(page.checks),
        "",
        "Wrong:",
        *(f"    {line}" for line in page.wrong.split("\n")),
        "",
        "Right:",
        *(f"    {line}" for line in page.right.split("\n")),
        "",
        paragraph(page.mend),
    )
    return 0


def _data(page: codes.Page) -> dict[str, object]:
    return {
        "code": page.code,
        "title": page.title,
        "names": dict(page.names),
        "checks": page.checks,
        "wrong": page.wrong,
        "right": page.right,
        "mend": page.mend,
    }
