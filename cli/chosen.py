"""Commands over estimates of any mode, which a switch named as the mode's command chooses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from fitcheck.cli import options
from fitcheck.cli.estimate import EstimateCommand
from fitcheck.engine.api import rules_for
from fitcheck.engine.modes import bundled_commands, commands

MODE = "mode_"  # how the name of the parameter of such a switch begins


class ChosenCommand(EstimateCommand):
    """
    A command with the options of the mode that the words choose, of training where they do not.

    Subclasses say which options of their own it has (`own`) and what it does (`answer`).
    """

    title, about = "", ""
    usage: tuple[str, ...] = ("MODEL", "[OPTIONS]")
    sample: tuple[str, ...] = ()  # command lines to begin with
    status: tuple[tuple[str, str], ...] = ()  # exit codes

    def __init__(self, overlays: Sequence[str]) -> None:
        self.switches = {**commands([(f, True) for f in overlays]), **bundled_commands()}
        super().__init__(rules_for(overlays), overlays)
        self.name, self.help = self.title, self.about
        self.choose(None)

    def own(self) -> list[click.Parameter]:
        """Arguments and options beside the flags of the rules."""
        raise NotImplementedError

    def choose(self, mode: str | None) -> None:
        """Take the rules and options of a mode."""
        self.rules = rules_for(self.overlays, mode)
        switches = [
            options.Option(
                [f"{MODE}{command}", f"--{command}"],
                options.ORIGIN,
                is_flag=True,
                help=f"Take the flags and rules of `fitcheck {command}`; see --{command} --help.",
            )
            for command in self.switches
        ]
        own = self.own()
        arguments = [p for p in own if isinstance(p, click.Argument)]
        rest = [p for p in own if not isinstance(p, click.Argument)]
        self.params = [*arguments, *options.flag_options(self.rules.flags), *switches, *rest]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        named = args[: args.index("--")] if "--" in args else args
        chosen = [command for command in self.switches if f"--{command}" in named]
        if len(chosen) > 1:
            both = " and ".join(f"--{command}" for command in chosen)
            raise click.UsageError(f"{both} are two kinds of runs: give one.", ctx)
        self.choose(self.switches[chosen[0]] if chosen else None)
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return self.usable(self.usage)

    def exit_codes(self) -> Sequence[tuple[str, str]]:
        return self.status

    def examples(self) -> list[str]:
        return list(self.sample)

    def invoke(self, ctx: click.Context) -> int:
        raise NotImplementedError


def shared_options(default_card: str, names: Sequence[str]) -> list[click.Parameter]:
    """Those of the estimate's own options that have these names, in their order."""
    return [option for option in options.own_options(default_card) if option.name in names]


def typed_words(values: dict[str, Any], name: str) -> tuple[str, ...]:
    """The words of an argument that takes several."""
    return tuple(values.get(name) or ())
