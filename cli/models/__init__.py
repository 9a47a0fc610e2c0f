"""`fitcheck models ...`: the catalogue, and what a config.json resolves to."""

from __future__ import annotations

from collections.abc import Sequence

import click

ABOUT = """\
List the models of the bundled catalogue, or show what a model resolves to.

`fitcheck models llama 70b` lists the entries whose name has all these words, as `fitcheck models
list llama 70b` does. `fitcheck models show MODEL` prints the canonical model: its layers, its
parameters by part, and what is uncertain.
"""
LIST, SHOW = "list", "show"


class Models(click.Group):
    """A first word that is no command is searched for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [LIST, SHOW]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        named = [*self.list_commands(ctx), *ctx.help_option_names]
        return super().parse_args(ctx, args if args and args[0] in named else [LIST, *args])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name == SHOW:
            from fitcheck.cli.models.showing import show_command

            return show_command
        from fitcheck.cli.models.listing import list_command

        return list_command if cmd_name == LIST else None


group = Models(name="models", help=ABOUT)


def build(overlays: Sequence[str]) -> click.Command:
    """The group; its commands read overlay folders themselves."""
    return group
