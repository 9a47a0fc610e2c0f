"""Options of other programs on our command line: `--engine vllm --max-model-len 8192`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar

import click

from fitcheck.engine.errors import InputProblem
from fitcheck.engine.programs import (
    Typed,
    options_of,
    programs,
    read_command,
    read_options,
    refuse_near,
    spelled,
    with_value,
)

T = TypeVar("T")
COMMAND = "--from-command"

if TYPE_CHECKING:
    from fitcheck.engine.profile import Profile
    from fitcheck.engine.rules import Rules


def take_out(
    rules: Rules, ctx: click.Context, params: Sequence[click.Parameter], args: Sequence[str]
) -> tuple[list[str], Typed | None, str]:
    """
    The words that are ours, and what the others say of the program that was chosen, by its title.

    Raises `click.UsageError` for an option of another program than the chosen one.
    """
    own = {
        name: option
        for option in params
        if isinstance(option, click.Option)
        for name in (*option.opts, *option.secondary_opts)
    }
    chosen, others = chosen_program(rules, args), options_of(rules)
    ours: list[str] = []
    theirs: list[str] = []
    rest = list(args)
    while rest:
        word = rest.pop(0)
        name, sign, _ = word.partition("=")
        if word == "--":
            ours += [word, *rest]
            break
        if name in own or not word.startswith("-"):
            ours.append(word)
            option = own.get(name)
            if option is not None and not sign and not option.is_flag and rest:
                if getattr(option, "_flag_needs_value", False) and rest[0].startswith("-"):
                    continue
                ours.append(rest.pop(0))
        elif chosen is not None and (known := spelled(chosen.options, name)) in chosen.options:
            theirs.append(word)
            if not sign and rest and with_value(chosen, known, rest[0]):
                theirs.append(rest.pop(0))
        elif name in others:
            named = " or ".join(dict.fromkeys(others[name]))
            flag = next(programs(rules))[0]
            raise click.UsageError(
                f"{name} is an option of {named}: add {rules.flags.spelled(flag)} "
                f"{others[name][0]}, or see --help for our own.",
                ctx,
            )
        else:
            if chosen is not None:
                said(ctx, partial(refuse_near, chosen, name))
            ours.append(word)
    if not theirs or chosen is None:
        return ours, None, ""
    return ours, said(ctx, partial(read_options, rules, chosen, theirs)), chosen.title


def said(ctx: click.Context, action: Callable[[], T]) -> T:
    """The result of an action, with what is wrong as an error of usage."""
    try:
        return action()
    except InputProblem as problem:
        raise click.UsageError(str(problem), ctx) from None


def chosen_program(rules: Rules, args: Sequence[str]) -> Profile | None:
    """The file of the program that the words choose, by itself or in a whole command."""
    named: str | None = None
    for command in values_of(COMMAND, args):
        with contextlib.suppress(InputProblem):  # said where the command is read
            named = read_command(rules, command)[0]
    found: Profile | None = None
    for flag, value, profile in programs(rules):
        spec = rules.flags.flags[flag]
        wanted = [*values_of(spec.option, args), named or spec.default]
        if str(wanted[0]).casefold() == value.casefold():
            found = profile
    return found


def values_of(option: str, args: Sequence[str]) -> list[str]:
    """What follows an option wherever it stands, the last one first."""
    found = [after for word, after in pairwise(args) if word == option]
    found += [word.partition("=")[2] for word in args if word.startswith(f"{option}=")]
    return found[::-1]
