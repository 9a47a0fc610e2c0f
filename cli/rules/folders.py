"""Which rule folders a workshop command works on, and the options that say so."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from fitcheck.cli.completion import complete_folder
from fitcheck.cli.main import overlays_of_environment
from fitcheck.cli.start import VARIABLE_OF_FOLDERS
from fitcheck.engine.api import rules_for
from fitcheck.engine.errors import InputProblem
from fitcheck.engine.loading import Roots, files_of, roots_of, rule_folders
from fitcheck.engine.rules import Rules

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

rules_option = click.option(
    "--rules",
    "folders",
    multiple=True,
    metavar="DIR",
    shell_complete=complete_folder,
    help=f"Folder with changed or added rule files, over the bundled ones and those of "
    f"{VARIABLE_OF_FOLDERS}; may be repeated, the last one wins.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")
folder_argument = click.argument(
    "folder", required=False, metavar="[DIR]", shell_complete=complete_folder
)


def complete_id(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Ids of the bundled formulas, profiles, statuses, architectures and blocks."""
    from click.shell_completion import CompletionItem

    bundled = roots_of()
    folders = [f for f in rule_folders(bundled) if f not in ("gpus", "profiles/models")]
    names = {stem for folder in folders for stem in files_of(bundled, folder)}
    return [CompletionItem(name) for name in sorted(names) if name.startswith(incomplete)]


def complete_code(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Lint codes."""
    from click.shell_completion import CompletionItem

    from fitcheck.engine.workshop.codes import pages

    wanted = incomplete.upper()
    return [CompletionItem(code, help=p.title) for code, p in pages().items() if wanted in code]


def overlays(folders: tuple[str, ...], folder: str | None = None) -> tuple[str, ...]:
    """The overlay folders in order: environment, --rules, and the DIR of a command."""
    if folder is not None and not os.path.isdir(folder):
        what = "a file; give the folder it lies in" if os.path.isfile(folder) else "no folder"
        raise InputProblem(f"{folder} is {what}.")
    return (*overlays_of_environment(), *folders, *((folder,) if folder is not None else ()))


def load(folders: tuple[str, ...], folder: str | None = None) -> Rules:
    """The rules a command works on; raises `RuleFileError` with every problem of an overlay."""
    return rules_for(overlays(folders, folder))


def roots(folders: tuple[str, ...], folder: str | None = None) -> Roots:
    """The bundled folder with the overlays on top; raises `InputProblem` for a useless one."""
    try:
        return roots_of(overlays(folders, folder))
    except InputProblem as error:  # an argument and a variable are no --rules
        raise InputProblem(str(error).removeprefix("--rules ")) from None
