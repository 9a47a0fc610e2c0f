"""The `fitcheck` command: a first word that is no subcommand is the MODEL of an estimate.

Modes have subcommands of their own, which their files name; they are estimates with other rules.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

import click

from fitcheck.cli.errors import COULD_NOT_RUN, INTERRUPTED, PROGRAM, guarded
from fitcheck.cli.output import say, write_error
from fitcheck.cli.start import SUBCOMMANDS, VARIABLE_OF_COMPLETION, VARIABLE_OF_FOLDERS
from fitcheck.engine.errors import InputProblem

DEFAULT = "estimate"
MODES = "modes"  # key of the context under which the subcommands of modes are kept


class Router(click.Group):
    """A group that hands everything whose first word is no subcommand to the estimate, unchanged.

    The estimate is built when it is asked for, because its options come from the rule files, and
    `--rules` on the same line may add some.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*SUBCOMMANDS, *self.modes(ctx)})

    def modes(self, ctx: click.Context) -> dict[str, str]:
        """The subcommands of modes, of overlay folders on the command line too."""
        if MODES not in ctx.meta:
            from fitcheck.engine.modes import bundled_commands

            ctx.meta[MODES] = bundled_commands()
        found: dict[str, str] = ctx.meta[MODES]
        return found

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not ctx.resilient_parsing and (folders := overlays_for(args)):
            from fitcheck.engine.modes import commands

            ctx.meta[MODES] = commands([(f, True) for f in folders]) | self.modes(ctx)
        if not args or args[0] not in self.list_commands(ctx):
            ctx.meta[DEFAULT] = "implied"
            args = [DEFAULT, *args]
        return super().parse_args(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        known = cmd_name in SUBCOMMANDS or cmd_name in self.modes(ctx)
        return command(cmd_name, (), self.modes(ctx)) if known else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, rest = args[0], args[1:]
        # Without a name of its own the usage line reads `fitcheck MODEL`, as it was typed.
        shown = "" if ctx.meta.get(DEFAULT) else name
        # A key press for completion must not end in the report of a broken rule file.
        overlays = () if ctx.resilient_parsing else overlays_for(rest)
        return shown, command(name, overlays, self.modes(ctx)), rest

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        def action() -> Any:
            return super(Router, self).main(
                args,
                PROGRAM,
                VARIABLE_OF_COMPLETION,
                standalone_mode=False,
                windows_expand_args=windows_expand_args,
                **extra,
            )

        if not standalone_mode:
            return action()
        sys.exit(guarded(lambda: told(action)))


def overlays_for(args: Sequence[str]) -> tuple[str, ...]:
    """The folders of the environment, and over them those given with --rules."""
    return (*overlays_of_environment(), *overlays_in(args))


def overlays_of_environment() -> tuple[str, ...]:
    """The folders of FITCHECK_RULES; raises `InputProblem` for one that does not exist."""
    folders = tuple(f for f in os.environ.get(VARIABLE_OF_FOLDERS, "").split(os.pathsep) if f)
    for folder in folders:
        if not os.path.isdir(folder):
            raise InputProblem(f"{VARIABLE_OF_FOLDERS} names {folder}: there is no such folder.")
    return folders


def overlays_in(args: Sequence[str]) -> tuple[str, ...]:
    """The folders given with --rules, found before the options are known."""
    folders = []
    for position, word in enumerate(args):
        if word == "--":
            break
        if word == "--rules" and position + 1 < len(args):
            folders.append(args[position + 1])
        elif word.startswith("--rules="):
            folders.append(word.removeprefix("--rules="))
    return tuple(folders)


def command(name: str, overlays: tuple[str, ...], modes: Mapping[str, str]) -> click.Command:
    """A subcommand, imported when asked for; that of a mode is the estimate with its rules."""
    if name in SUBCOMMANDS:
        built: click.Command = import_module(SUBCOMMANDS[name]).build(overlays)
        return built
    from fitcheck.cli.estimate import build

    return build(overlays, modes[name])


HELP = {"help_option_names": ["-h", "--help"]}  # of every subcommand too

cli = Router(name=PROGRAM, add_help_option=False, context_settings=HELP)


def run(words: Sequence[str]) -> int:
    """The exit status of one command line; raises what `errors.guarded` puts into words."""
    return told(lambda: cli.main([*words], standalone_mode=False))


def told(action: Callable[[], Any]) -> int:
    """The exit status of an action, after saying what click found wrong with the command line."""
    try:
        status = action()
    except click.ClickException as error:
        say("error", error.format_message())
        if isinstance(error, click.UsageError):
            path = error.ctx.command_path if error.ctx else PROGRAM
            write_error(f"Try '{path} --help' for help.")
        return COULD_NOT_RUN
    except click.Abort:
        return INTERRUPTED
    return status if isinstance(status, int) else 0
