"""Names that the shell can complete, and the script that makes it do so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

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
    """Names of the bundled catalogue, subcommands where one may stand, and files."""
    from click.shell_completion import CompletionItem

    from fitcheck.engine.sources import Catalogue

    wanted = incomplete.casefold()
    names = [n for e in Catalogue.bundled().entries() for n in (e.hub_id, *e.aliases)]
    # Short names only where one was begun: they would double an empty list.
    found = [n for n in names if n.casefold().startswith(wanted) and (wanted or "/" in n)]
    if not ctx.info_name and ctx.parent and isinstance(ctx.parent.command, click.Group):
        known = ctx.parent.command.list_commands(ctx.parent)
        found += [name for name in known if name.startswith(wanted)]
    # Files first: bash forgets what came before them, and offers them where no name is found.
    return [CompletionItem(incomplete, type="file"), *map(CompletionItem, found)]


def complete_formula(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Ids of formulas; where none begins like this it may be the model that is typed."""
    from click.shell_completion import CompletionItem

    wanted = incomplete.casefold()
    known: tuple[str, ...] = getattr(ctx.command, "formula_ids", tuple)()
    found = [CompletionItem(n) for n in known if n.casefold().startswith(wanted)]
    return found or complete_model(ctx, param, incomplete)


def picture_names(ctx: click.Context) -> list[str]:
    """What --picture may name; nothing where a rule file cannot be read."""
    from fitcheck.engine.errors import FitcheckError

    rules = getattr(ctx.command, "rules", None)
    try:
        return [plot.id for plot in rules.plots] if rules is not None else []
    except FitcheckError:
        return []


def complete_picture(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Pictures of the rules, as --picture takes them."""
    from click.shell_completion import CompletionItem

    wanted = incomplete.casefold()
    return [CompletionItem(name) for name in picture_names(ctx) if name.startswith(wanted)]


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
    from fitcheck.cli.start import VARIABLE_OF_COMPLETION

    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"There is no completion for {shell}.")
    return kind(command, {}, PROGRAM, VARIABLE_OF_COMPLETION).source()
