"""
A line of the session with the options of a command: what it says is kept, and the very command of
the one-liner answers, with the kept words put back in front of it.
"""

from __future__ import annotations

import copy
import shlex
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from fitcheck.cli import options
from fitcheck.cli.advise import AdviseCommand
from fitcheck.cli.engine_options import take_out
from fitcheck.cli.errors import COULD_NOT_RUN
from fitcheck.cli.estimate import PROGRAM, EstimateCommand, build
from fitcheck.cli.output import write
from fitcheck.cli.session.state import TRAINING, State
from fitcheck.cli.start import SUBCOMMANDS
from fitcheck.engine.errors import InputProblem
from fitcheck.engine.spelling import opposite, spelled
from fitcheck.engine.sticky import folded

if TYPE_CHECKING:
    from fitcheck.engine.flags import FlagSet

MEMORY, COMPARE = "memory", "compare"
WITHOUT_CARD = (COMPARE,)  # its cards are its words
LEFT_OUT = ("model", "list_gpus", "no_color", "version", "completion", "rules", "config")
SHARED = ("source", "stack")  # kept for every command
KEPT = ("from_command",)  # kept for its mode


class Missing(InputProblem):
    """Something has to be chosen before this line can be answered."""


def commands_of(state: State) -> list[str]:
    """The session commands that take options of the command line."""
    names = ("advise", "compare", "optimize")
    return [MEMORY, *state.modes(), *(name for name in names if name in SUBCOMMANDS)]


def command(state: State, name: str) -> click.Command:
    """The command of the one-liner behind a command of the session."""
    modes = state.modes()
    if name == MEMORY or name in modes:
        return build(state.overlays, modes.get(name))
    made: click.Command = import_module(SUBCOMMANDS[name]).build(state.overlays)
    return made


def inside(state: State, name: str) -> click.Command:
    """The command as the session offers it: without MODEL and what makes no sense here."""
    made = command(state, name)
    if isinstance(made, EstimateCommand):
        made.left_out = LEFT_OUT
    return made


def run(state: State, name: str, words: Sequence[str]) -> int:
    """
    Answer a line; returns the exit status of the one-liner. Raises what `main.told` puts in words.

    Flags that were typed are kept when the line could be run.
    """
    parser = inside(state, name)
    mode = state.modes().get(name, TRAINING)
    ctx = context(parser, name, [*program_words(state, mode, words), *words])
    rules = getattr(parser, "rules", None)
    if rules is None or not isinstance(parser, EstimateCommand):
        return invoke(command(state, name), name, list(words), state)
    mode = rules.mode.id if rules.mode is not None else TRAINING
    refuse_pairs(rules.flags, words, ctx)
    before = copy.deepcopy((state.flags, state.foreign, state.other, state.sweep, state.shared))
    status, missing = COULD_NOT_RUN, False
    try:
        keep(state, mode, ctx, words, parser)
        line = prepared(state, mode, name, ctx)
        status = answer(state, mode, name, [*line, *words], ctx)
    except Missing:
        missing = True  # what was typed is right, and waits for the rest
        raise
    finally:
        if status == COULD_NOT_RUN and not missing:
            state.flags, state.foreign, state.other, state.sweep, state.shared = before
    return status


def context(parser: click.Command, name: str, words: list[str]) -> click.Context:
    """The line taken apart; raises `click.UsageError`, and Exit after --help."""
    try:
        return parser.make_context(name, words)
    except click.UsageError as error:
        if "unexpected extra argument" in error.format_message().lower():
            said = error.format_message().rstrip(".")
            says = f"{said}. The model is set by `model NAME`, for every line."
            raise click.UsageError(says, error.ctx) from None
        raise


def program_words(state: State, mode: str, words: Sequence[str]) -> list[str]:
    """The kept flags that choose another program, whose options may be typed alone."""
    flags, found = state.rules(mode).flags, []
    for flag in flags.flags.values():
        kept = state.of(mode).get(flag.id)
        if flag.of and kept is not None and not typed_as(flag.option, words):
            found += list(spelled(flag, kept))
    return found


def typed_as(option: str, words: Sequence[str]) -> bool:
    return any(word == option or word.startswith(f"{option}=") for word in words)


def refuse_pairs(flags: FlagSet, words: Sequence[str], ctx: click.Context) -> None:
    """Raise `click.UsageError` where a switch is typed both on and off."""
    for flag in flags.flags.values():
        if flag.kind == "switch" and flag.option in words and opposite(flag.option) in words:
            raise click.UsageError(
                f"{flag.option} and {opposite(flag.option)} on one line: give one.", ctx
            )


def keep(
    state: State, mode: str, ctx: click.Context, words: Sequence[str], parser: EstimateCommand
) -> None:
    """Fold what was typed into the state; raises `click.UsageError`."""
    typed, flags = options.given(ctx), state.rules(mode).flags
    chosen = options.flags_given(typed, flags)
    for flag in flags.flags.values():  # those of `program_words` were not typed now
        if flag.of and flag.id in chosen and not typed_as(flag.option, words):
            del chosen[flag.id]
    if typed.get("from_command"):  # a whole command starts afresh
        state.forget(mode)
    if any(flags.flags[n].of for n in chosen if n in flags.flags):
        state.foreign.pop(mode, None)  # they were options of the program before
    try:
        state.flags[mode] = folded(flags, state.of(mode), chosen)
    except InputProblem as problem:
        raise click.UsageError(str(problem), ctx) from None
    if ctx.meta.get(PROGRAM):  # typed now, so it wins over what was kept under our own names
        theirs = ctx.meta[PROGRAM][0].flags
        state.flags[mode] = {
            n: v for n, v in state.flags[mode].items() if n in chosen or n not in theirs
        }
    state.foreign.setdefault(mode, {}).update(foreign_words(state, mode, ctx, words, parser))
    state.other.setdefault(mode, {}).update({n: typed[n] for n in KEPT if n in typed})
    state.shared.update({n: typed[n] for n in SHARED if n in typed})
    if isinstance(parser, AdviseCommand):
        state.sweep.update({n: typed[n] for n in parser.ranges if n in typed})


def foreign_words(
    state: State, mode: str, ctx: click.Context, words: Sequence[str], parser: EstimateCommand
) -> dict[str, list[str]]:
    """The options of another program, by name, with their values."""
    if parser.rules.mode is None:
        return {}
    all_words = [*program_words(state, mode, words), *words]
    ours = take_out(parser.rules, ctx, parser.params, all_words)[0]
    found: dict[str, list[str]] = {}
    name = ""
    for word in all_words:
        if ours and word == ours[0]:
            ours.pop(0)
        elif word.startswith("-") or not name:
            name = word.partition("=")[0]
            found[name] = [word]
        else:
            found[name].append(word)
    return found


def prepared(state: State, mode: str, name: str, ctx: click.Context) -> list[str]:
    """The words that are kept, before those typed; raises `InputProblem` where some are missing."""
    typed = options.given(ctx)
    if missing := missing_of(state, name, typed):
        raise Missing(missing)
    made = command(state, name)
    refuse_unset(made, state, typed)
    without = made.not_kept(state.of(mode)) if isinstance(made, AdviseCommand) else ()
    line = [str(state.model), *state.flag_words(mode, without)]
    line += [] if name in WITHOUT_CARD or sweeps_cards(state, typed) else state.card_words(typed)
    line += option_words_of(made, {n: v for n, v in state.sweep.items() if n not in typed})
    line += option_words_of(made, {n: v for n, v in state.shared.items() if n not in typed})
    if state.no_color:
        line.append("--no-color")
    return line


def sweeps_cards(state: State, typed: Mapping[str, Any]) -> bool:
    """Whether cards are swept, so that none is chosen beside them."""
    texts = typed.get("sweep") or state.sweep.get("sweep") or ()
    return any(str(text).lstrip("-").startswith("gpu=") for text in texts)


def missing_of(state: State, name: str, typed: Mapping[str, Any]) -> str:
    """What has to be chosen before a command; empty where nothing is missing."""
    chosen = state.gpu is not None or state.vram_mib is not None
    carded = chosen or name in WITHOUT_CARD or bool({"gpu", "vram_mib"} & typed.keys())
    carded = carded or sweeps_cards(state, typed)
    if state.model is None and not carded:
        return "Run `model NAME` and `gpu NAME` first; what was typed is kept."
    if state.model is None:
        return "Run `model NAME` first, such as `model meta-llama/Llama-3.1-8B`."
    return "" if carded else "Run `gpu NAME` first, such as `gpu 4090`; `gpus` lists all."


def answer(state: State, mode: str, name: str, words: list[str], ctx: click.Context) -> int:
    """Say what differs from the defaults, and run the one-liner's command."""
    typed, differs = options.given(ctx), state.differs(mode)
    state.once = {n: typed[n] for n in ("gpu", "vram_mib") if n in typed}
    if differs and not any(typed.get(n) for n in ("as_json", "derive")):
        write(f"differs: {shlex.join(differs)}")
    return invoke(command(state, name), name, words, state)


def refuse_unset(made: click.Command, state: State, typed: dict[str, Any]) -> None:
    """Raise `InputProblem` for a range without a default that was never given."""
    for param in made.params:
        if param.required and param.name not in {"model", *typed, *state.sweep}:
            option = param.opts[-1]
            raise Missing(
                f"{option} is not set: give it once, such as `{made.name} {option} "
                "1024,2048,4096`, and it is remembered; what else was typed is kept."
            )


def option_words_of(made: click.Command, values: dict[str, Any]) -> list[str]:
    """Options that a command has, by the names of their parameters, as words."""
    words: list[str] = []
    for param in made.params:
        if isinstance(param, click.Option) and param.name in values:
            value = values[param.name]
            for one in value if isinstance(value, (list, tuple)) else (value,):
                words += [param.opts[-1], str(one)]
    return words


def invoke(made: click.Command, name: str, words: list[str], state: State) -> int:
    """The exit status of a command in the session."""

    def seen(report: Any) -> None:
        mode = report.prepared.rules.mode
        state.last = mode.id if mode is not None else TRAINING
        state.seen[state.last] = report

    with made.make_context(name, words, obj=seen) as ctx:
        status = made.invoke(ctx)
    return status if isinstance(status, int) else 0
