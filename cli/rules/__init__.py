"""`fitcheck rules ...`: find, read, check, prove, try, copy and compare the formula files."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from importlib import import_module

import click

from fitcheck.cli.output import write_error

ABOUT = """\
Read, check and change the rule files that every number comes from.

Copy what you want to change (eject), edit it, and let lint, test and prove check it. Then
`fitcheck MODEL ... --rules DIR` answers with the changed files, and diff says which numbers moved.
"""
SECTIONS = {
    "Read": {
        "list": ("reading", "Every formula, profile, status, architecture and block."),
        "show": ("show", "One rule file with what is behind it."),
        "why": ("why", "Which case, profile or status holds for a run, and why not the others."),
        "graph": ("publishing", "Which quantity reads which: text, DOT or SVG."),
    },
    "Check": {
        "lint": ("checking", "Every problem of every file, each with its place."),
        "explain": ("reading", "What a lint code means, with a wrong and a right example."),
        "test": ("checking", "Every worked example, with what was expected and what came out."),
        "prove": ("proving", "Every claim: proved, or tried, or refuted by a counter-example."),
    },
    "Change": {
        "eject": ("changing", "Copy bundled files into a folder, to be edited."),
        "new": ("changing", "Begin a component, quantity, card or profile."),
        "diff": ("comparing", "Which numbers a folder of changed files moves, and by how much."),
    },
    "Publish (in a source checkout)": {
        "golden": ("publishing", "Check the golden appendix, or write it."),
        "docs": ("publishing", "Write the generated pages, or check them."),
    },
}
COMMANDS = {name: found for section in SECTIONS.values() for name, found in section.items()}
EXIT = (
    ("0", "clean"),
    ("1", "problems: lint, test, prove, golden or docs --check found something"),
    ("2", "could not run"),
)


class Workshop(click.Group):
    """Commands that are imported when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return self.built(ctx, cmd_name, ())

    def built(self, ctx: click.Context, name: str, rest: Sequence[str]) -> click.Command | None:
        """The command of this name; the options of `why` come from the rules of its own line."""
        if name not in COMMANDS:
            return None
        if name == "why":
            from fitcheck.cli.main import overlays_for
            from fitcheck.cli.rules.why import build

            return build(() if ctx.resilient_parsing else overlays_for(rest))
        module = import_module(f"fitcheck.cli.rules.{COMMANDS[name][0]}")
        command: click.Command = getattr(module, f"{name}_command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, rest = args[0], args[1:]
        command = self.built(ctx, name, rest)
        if command is None and not ctx.resilient_parsing:
            near = " or ".join(difflib.get_close_matches(name, COMMANDS, 2))
            hint = f"Did you mean {near}?" if near else f"There are {', '.join(COMMANDS)}."
            raise click.UsageError(f"There is no command 'rules {name[:40]}'. {hint}", ctx)
        return name, command, rest

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name, says) for name, (_, says) in commands.items()])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Exit status"):
            formatter.write_dl(EXIT)


@click.command(cls=Workshop, name="rules", help=ABOUT, invoke_without_command=True)
@click.pass_context
def group(ctx: click.Context) -> int | None:
    """Print the help where no command was named."""
    if ctx.invoked_subcommand is None:
        write_error(ctx.get_help())
        return 2
    return None


def build(overlays: Sequence[str]) -> click.Command:
    """The group; its commands read overlay folders themselves."""
    return group
