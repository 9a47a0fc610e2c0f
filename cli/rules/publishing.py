"""`fitcheck rules golden`, `docs` and `graph`: pages that come from the rule files."""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Mapping
from importlib import import_module

import click

from fitcheck.cli.options import OneOf
from fitcheck.cli.rules.folders import complete_id, load, rules_option
from fitcheck.cli.rules.layout import counted, say
from fitcheck.engine.errors import InputProblem
from fitcheck.engine.workshop import drawing, golden, graph
from fitcheck.engine.workshop.copying import write as write_files
from fitcheck.engine.workshop.everything import everything
from fitcheck.engine.workshop.written import bring_up_to_date, differing, left_over, text_of

SHOWN = 40  # lines of a difference that are printed
FORMATS: Mapping[str, Callable[[graph.Graph], str]] = {
    "text": graph.to_text,
    "dot": graph.to_dot,
    "svg": drawing.to_svg,
}


@click.command("golden")
@click.option("--write", is_flag=True, help="Write the page instead of comparing it.")
@click.option("--file", "path", metavar="FILE", help="The page. [default: docs/golden.md]")
@rules_option
def golden_command(write: bool, path: str | None, folders: tuple[str, ...]) -> int:
    """Compare the golden appendix with the rules: every number of the reference configurations.

    Exit status 1 means that a number moved; --write takes the new ones over.
    """
    page = golden.page(load(folders))
    path = path or os.path.join(checkout(), "docs", "golden.md")
    return publish({os.path.basename(path): page}, os.path.dirname(path) or ".", write, "golden")


@click.command("docs")
@click.option("--check", is_flag=True, help="Only say which pages are out of date.")
@click.option("--to", "folder", metavar="DIR", help="Where the pages lie. [default: docs/]")
@rules_option
def docs_command(check: bool, folder: str | None, folders: tuple[str, ...]) -> int:
    """Write the generated pages of docs/, or with --check say which are out of date."""
    folder = folder or os.path.join(checkout(), "docs")
    made = import_module("fitcheck.engine.workshop.pages").pages(load(folders))
    found = {name.removeprefix("docs/"): text for name, text in made.items()}
    return publish(found, folder, not check, "docs")


def checkout() -> str:
    """The top of the source checkout; raises `InputProblem` in an installed package."""
    found = golden.checkout()
    if found is None:
        raise InputProblem(
            "docs/ is part of a source checkout and not of an installed package: run this in a "
            "checkout, or say where the pages are to lie."
        )
    return found


def publish(pages: Mapping[str, str], folder: str, writing: bool, command: str) -> int:
    """Write the pages that differ, or say which do; returns the exit status."""
    amount = counted(len(pages), "page")
    if writing:
        written, removed = bring_up_to_date(pages, folder)
        lines = [f"wrote {os.path.join(folder, name)}" for name in written]
        lines += [f"removed {os.path.join(folder, name)}" for name in removed]
        rest = f", {len(removed)} removed" if removed else ""
        say(*lines, f"{amount}, {len(written)} written{rest}.")
        return 0
    stale, gone = differing(pages, folder), left_over(pages, folder)
    for name, text in stale.items():
        say(*_difference(os.path.join(folder, name), text))
    for name in gone:
        say(f"{os.path.join(folder, name)} is left over: what it came from is gone")
    if stale or gone:
        how = f"fitcheck rules {command}{' --write' if command == 'golden' else ''}"
        rest = f" and {len(gone)} left over" if gone else ""
        say(f"{len(stale)} of {amount} out of date{rest}: {how} mends that.")
        return 1
    say(f"{amount} up to date.")
    return 0


def _difference(path: str, text: str) -> list[str]:
    """What would change in a page, shortened."""
    old = text_of(path)
    if old is None:
        return [f"{path} is missing"]
    lines = [
        line
        for line in difflib.unified_diff(old.split("\n"), text.split("\n"), "", "", "", "", 0, "")
        if not line.startswith(("---", "+++"))
    ]
    rest = [f"... {len(lines) - SHOWN} more lines"] if len(lines) > SHOWN else []
    return [path, *lines[:SHOWN], *rest]


@click.command("graph")
@click.argument("ids", nargs=-1, metavar="[ID]...", shell_complete=complete_id)
@click.option(
    "--format",
    "form",
    type=OneOf(tuple(FORMATS)),
    metavar="|".join(FORMATS),
    default="text",
    help="[default: text]",
)
@click.option("--output", "-o", "path", metavar="FILE", help="Write a file instead of printing.")
@rules_option
def graph_command(
    ids: tuple[str, ...], form: str, path: str | None, folders: tuple[str, ...]
) -> int:
    """Which quantity reads which: all of training, or what these IDs need and what needs them."""
    rules = load(folders)
    text = FORMATS[form](graph.graph(everything(rules) if ids else rules, ids))
    if path is None:
        say(text.rstrip("\n"))
        return 0
    write_files({os.path.basename(path): text.encode()}, os.path.dirname(path) or ".")
    say(f"wrote {path}")
    return 0
