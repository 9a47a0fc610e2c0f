"""`fitcheck models [SEARCH]`: the entries of the catalogue, as a table or as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from fitcheck.cli.output import harmless, say, write
from fitcheck.cli.words import count
from fitcheck.engine.json_kinds import json_text
from fitcheck.engine.sources.catalogue import Catalogue, folded

if TYPE_CHECKING:
    from fitcheck.engine.sources.catalogue import Entry


@click.command("list")
@click.argument("search", nargs=-1, metavar="[SEARCH]")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--no-color", is_flag=True, help="Print without colours.")
def list_command(search: Sequence[str], as_json: bool, no_color: bool) -> int:
    """List the models of the catalogue whose name or alias has every word of SEARCH.

    Exit status: 0 if there is one, 1 if there is none.
    """
    catalogue = Catalogue.bundled()
    wanted = [folded(word) for word in search]
    found = [entry for entry in catalogue.entries() if matches(entry, wanted)]
    if as_json:
        write(json_text("models", {"models": [record(entry) for entry in found]}))
    elif found:
        print_models(found, no_color)
    else:
        near = catalogue.nearest(" ".join(search))
        hint = f" Did you mean {near}?" if near else ""
        say("note", f"no model of the catalogue is called {harmless(' '.join(search))}.{hint}")
    return 0 if found else 1


def matches(entry: Entry, words: Sequence[str]) -> bool:
    """Whether the Hub id, or one alias, has every word."""
    names = [folded(name) for name in (entry.hub_id, *entry.aliases)]
    return any(all(word in name for word in words) for name in names)


def record(entry: Entry) -> dict[str, Any]:
    return {
        "name": entry.hub_id,
        "num_params": entry.parameters,
        "model_type": entry.config.get("model_type"),
        "aliases": list(entry.aliases),
    }


def print_models(entries: Sequence[Entry], no_color: bool) -> None:
    """One line a model, by organisation and size."""
    from rich.table import Table

    from fitcheck.cli.screen import console, show

    target = console(no_color)
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("model", overflow="fold")
    table.add_column("parameters", justify="right", no_wrap=True)
    table.add_column("model_type", no_wrap=True)
    organisation = ""
    for entry in sorted(entries, key=lambda e: (e.hub_id.split("/")[0].lower(), e.parameters)):
        if organisation and entry.hub_id.split("/")[0] != organisation:
            table.add_row("")
        organisation = entry.hub_id.split("/")[0]
        kind = str(entry.config.get("model_type", ""))
        table.add_row(entry.hub_id, count(entry.parameters), kind)
    plural = "s" if len(entries) != 1 else ""
    footer = f"{len(entries)} model{plural}; `fitcheck models show NAME` has the layers of one"
    show([table, "", footer], no_color, target)
