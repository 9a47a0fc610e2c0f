"""What may follow on a line, from the options that the commands have."""

from __future__ import annotations

import os

import click

from fitcheck.cli.completion import complete_card, complete_model
from fitcheck.cli.session import running
from fitcheck.cli.session.commands import ALIASES, PASSED_ON, table
from fitcheck.cli.session.state import TRAINING, State
from fitcheck.engine.errors import FitcheckError

Found = list[tuple[str, str]]  # words, each with a few words about it
FILES = ("save", "load", "check")


def words(state: State, before: list[str], last: str) -> Found | None:
    """The words that may stand here; None where it is the name of a file."""
    try:
        return following(state, before, last)
    except (FitcheckError, click.ClickException, OSError):
        return []  # a key press is no place for an error


def following(state: State, before: list[str], last: str) -> Found | None:
    if not before:
        known = {**{n: c.about for n, c in table(state).items()}, **ALIASES}
        return [(name, about) for name, about in known.items() if name.startswith(last)]
    name, rest = ALIASES.get(before[0], before[0]), before[1:]
    if name == "help":
        return [(n, c.about) for n, c in table(state).items() if n.startswith(last)]
    if name == "model":
        return None if os.path.sep in last and last[0] in "./~" else models(state, last)
    if name == "gpu" and not last.startswith("-"):
        return cards(state, last)
    if name == "derive" and not rest and not last.startswith("-"):
        ids = {*state.rules(TRAINING).formulas, *state.rules(state.last).formulas}
        return [(i, "") for i in sorted(ids) if i.startswith(last)]
    if name in running.commands_of(state):
        return of_command(state, name, rest, last)
    if name in PASSED_ON and not rest:
        made = running.command(state, name)
        if isinstance(made, click.Group):
            ctx = click.Context(made, info_name=name, resilient_parsing=True)
            return [(n, "") for n in made.list_commands(ctx) if n.startswith(last)]
    return None if name in FILES else []


def models(state: State, last: str) -> Found:
    context = click.Context(click.Command("model"), resilient_parsing=True)
    found = complete_model(context, click.Argument(["model"]), last)
    return [(str(item.value), "") for item in found if item.type == "plain"]


def cards(state: State, last: str) -> Found:
    context = click.Context(click.Command("gpu"), resilient_parsing=True)
    return [(str(i.value), "") for i in complete_card(context, click.Argument(["gpu"]), last)]


def of_command(state: State, name: str, rest: list[str], last: str) -> Found | None:
    """Options of a command, or the values of the option before."""
    made = running.inside(state, name)
    if name in FILES and not last.startswith("-"):
        return None
    ctx = made.make_context(name, [], resilient_parsing=True)
    params = made.get_params(ctx)
    named = {o: p for p in params if isinstance(p, click.Option) for o in p.opts}
    option = named.get(rest[-1]) if rest else None
    if option is not None and not option.is_flag:
        found = option.shell_complete(ctx, last)
        if any(item.type == "file" for item in found):
            return None
        return [(str(item.value), item.help or "") for item in found if item.type == "plain"]
    if not last.startswith("-"):
        for param in params:
            if isinstance(param, click.Argument):
                items = param.shell_complete(ctx, last)
                return [(str(i.value), "") for i in items if i.type == "plain"]
    shown = [p for p in params if isinstance(p, click.Option) and not p.hidden]
    both = [(o, p.help or "") for p in shown for o in (*p.opts, *p.secondary_opts)]
    return [(o, about) for o, about in both if o.startswith(last) and o.startswith("--")]
