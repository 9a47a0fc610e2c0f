"""`fitcheck rules eject` and `new`: files in a person's own folder."""

from __future__ import annotations

import os

import click

from fitcheck.cli.completion import complete_folder
from fitcheck.cli.rules.folders import complete_id, load, rules_option
from fitcheck.cli.rules.layout import counted, paragraph, say
from fitcheck.engine.loading import load_rules
from fitcheck.engine.workshop.copying import bundled_files, eject, write
from fitcheck.engine.workshop.skeletons import Skeleton, skeleton


@click.command("eject")
@click.argument("folder", metavar="DIR", shell_complete=complete_folder)
@click.argument("ids", nargs=-1, metavar="[ID]...", shell_complete=complete_id)
@click.option("--force", is_flag=True, help="Replace files that are there already.")
def eject_command(folder: str, ids: tuple[str, ...], force: bool) -> int:
    """Copy bundled rule files into DIR, to be edited: all of them, or those with these ids.

    A copied file replaces the bundled one wherever DIR is given with --rules; the others stay as
    they are bundled, so copy only what you change.
    """
    files = bundled_files(load_rules(), ids)
    paths = eject(files, folder, force)
    shown = paths if len(paths) <= 10 else []
    say(
        *(f"wrote {path}" for path in shown),
        f"{counted(len(paths), 'file')} in {folder}. Edit, then:",
        f"  fitcheck rules lint {folder}",
        f"  fitcheck rules diff {folder}",
        f"  fitcheck MODEL ... --rules {folder}",
    )
    return 0


@click.command("new")
@click.argument("kind")
@click.argument("id", required=False)
@click.option(
    "--to",
    "folder",
    default=".",
    metavar="DIR",
    shell_complete=complete_folder,
    help="The rule folder, such as the one that was ejected. [default: this folder]",
)
@click.option(
    "--from",
    "config",
    metavar="CONFIG",
    help="For an architecture: the config.json of the model, or the folder it lies in.",
)
@click.option(
    "--check",
    is_flag=True,
    help="For an architecture: hold it against the class that transformers builds (needs the extra "
    "`measure`).",
)
@rules_option
def new_command(
    kind: str,
    id: str | None,
    folder: str,
    config: str | None,
    check: bool,
    folders: tuple[str, ...],
) -> int:
    """Begin a rule file of this KIND with this ID: a skeleton that lints clean, as a draft.

    KIND is component, quantity, card, what a profile is for, such as overhead, or architecture
    --from CONFIG, which proposes a family file for a model_type that no file covers yet.
    """
    if kind.casefold() == "architecture":
        from fitcheck.cli.rules.new_architecture import begin

        return begin(load(folders), id, config, folder, folders, check)
    if config is not None or check:
        raise click.UsageError("--from and --check are for `new architecture`.")
    if id is None:
        raise click.UsageError(f"Give the id of the new {kind}.")
    if "/" in id and kind.casefold() != "profile":
        raise click.UsageError(f"'{id}' is a path; an id is one word.")
    place(skeleton(load(folders), kind, id), folder)
    return 0


def place(made: Skeleton, folder: str) -> str:
    """Write a new file and say what comes next; returns its path."""
    path = os.path.join(folder, made.place)
    if os.path.lexists(path):
        raise click.UsageError(f"{path} is there already.")
    write({made.place: made.text.encode()}, folder)
    say(f"wrote {path}", paragraph(made.next), f"  fitcheck rules lint {folder}")
    return path
