"""Names that the shell can complete, and the script that makes it do so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

VARIABLE = "_FITCHECK_COMPLETE"  # set by the script when it asks for names

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


def complete_card(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Keys of the bundled cards."""
    from click.shell_completion import CompletionItem

    from fitcheck.engine.cards import card_files
    from fitcheck.engine.paths import data_folder

    wanted = incomplete.casefold()
    keys = card_files([(data_folder("gpus"), False)])
    return [CompletionItem(key) for key in keys if key.startswith(wanted)]


def complete_model(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Models of the bundled catalogue by Hub id, subcommands where one may stand, and files."""
    import os

    from click.shell_completion import CompletionItem

    from fitcheck.engine.paths import data_folder

    wanted = incomplete.casefold()
    stems = (name[:-5] for name in sorted(os.listdir(data_folder("profiles/models"))))
    items = [CompletionItem(s.replace("--", "/")) for s in stems]
    if not ctx.info_name and ctx.parent and isinstance(ctx.parent.command, click.Group):
        items += [CompletionItem(name) for name in ctx.parent.command.commands]
    return [i for i in items if str(i.value).startswith(wanted)] + [
        CompletionItem(incomplete, type="file")
    ]


def complete_folder(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Folders, as the shell itself finds them."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="dir")]


def script(command: click.Command, shell: str) -> str:
    """What `fitcheck --completion SHELL` prints; raises click.UsageError for an unknown shell."""
    from click.shell_completion import get_completion_class

    from fitcheck.cli.errors import PROGRAM

    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"There is no completion for {shell}.")
    return kind(command, {}, PROGRAM, VARIABLE).source()
