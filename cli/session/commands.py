"""The commands of a session: what their names are, and those that have no options of their own."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import click

from fitcheck.cli.errors import PROGRAM, guarded
from fitcheck.cli.output import say, write
from fitcheck.cli.session import files, running, showing
from fitcheck.cli.session.state import TRAINING, State, option_words
from fitcheck.engine.errors import InputProblem
from fitcheck.engine.suggest import suggest

ALIASES = {
    "mem": "memory",
    "serve": "infer",
    "inference": "infer",
    "kv": "infer",
    "sweep": "advise",
    "q": "exit",
    "quit": "exit",
    "?": "help",
    "h": "help",
    "config": "show",
    "state": "show",
    "list-gpus": "gpus",
}
LEAVE = "exit"
PASSED_ON = ("models", "rules")  # groups of commands that know nothing of the session


class Command(NamedTuple):
    """A command of the session: what follows its name, what it does, and the function."""

    usage: str
    about: str
    action: Callable[[State, list[str]], int]


def model(state: State, words: list[str]) -> int:
    """Load a model; the one before stays where it cannot be read."""
    if len(words) != 1:
        raise InputProblem("Write `model NAME`, such as `model meta-llama/Llama-3.1-8B`.")
    from fitcheck.engine import sources
    from fitcheck.engine.api import read_model

    if sources.kept is not None:  # asked for again, so read again
        sources.kept = {k: v for k, v in sources.kept.items() if k[0] != words[0]}
    rules = state.rules()
    found = read_model(rules, words[0], state.shared.get("source", "auto"))
    state.model = words[0]
    state.forget_answers()
    write(showing.model_line(found))
    for text in found.warnings:
        say("warning", text, state.no_color)
    return 0


def gpu(state: State, words: list[str]) -> int:
    """Choose the card, by name, by its memory, or both."""
    from fitcheck.cli.options import Whole, own_options
    from fitcheck.engine.api import choose_card

    taken = [o for o in own_options(state.rules().flags.default_card) if o.name == "vram_mib"]
    assert isinstance(taken[0].type, Whole)
    parser = click.Command("gpu", params=[click.Argument(["name"], required=False), *taken])
    values = parser.make_context("gpu", words).params
    if values["name"] is None and values["vram_mib"] is None:
        raise InputProblem("Write `gpu NAME`, such as `gpu 4090`; `gpus` lists all.")
    card = choose_card(state.rules(), values["name"], values["vram_mib"])
    state.gpu, state.vram_mib = values["name"], values["vram_mib"]
    state.forget_answers()
    write(showing.card_line(state, card))
    if card.note:
        say("note", card.note, state.no_color)
    return 0


def explain(state: State, words: list[str]) -> int:
    """The last training estimate in plain English; it is computed where there is none."""
    return running.run(state, running.MEMORY, ["--explain", *option_words(state.once), *words])


def derive(state: State, words: list[str]) -> int:
    """The formulas behind the last estimate."""
    name = next((n for n, mode in state.modes().items() if mode == state.last), running.MEMORY)
    if words and words[0] not in state.rules(state.last).formulas:
        others = {running.MEMORY: TRAINING, **state.modes()}
        name = next((n for n, m in others.items() if words[0] in state.rules(m).formulas), name)
    return running.run(state, name, ["--derive", *words])


def reset(state: State, words: list[str]) -> int:
    """Every flag back to its default; model and card stay."""
    nothing_more("reset", words)
    for kept in (state.flags, state.foreign, state.other, state.sweep, state.shared):
        kept.clear()
    state.forget_answers()
    write("All flags and swept ranges are back to their defaults.")
    return 0


def gpus(state: State, words: list[str]) -> int:
    """The GPU database."""
    nothing_more("gpus", words)
    from fitcheck.cli.cards_table import list_cards

    list_cards(state.rules(), False, state.no_color)
    return 0


def show(state: State, words: list[str]) -> int:
    """What the session holds."""
    nothing_more("show", words)
    for line in showing.state_lines(state):
        write(line)
    return 0


def help_(state: State, words: list[str]) -> int:
    """The commands, or the options of one."""
    if words:
        name = ALIASES.get(words[0], words[0])
        if name in running.commands_of(state):
            return running.run(state, name, ["--help"])
        if name in PASSED_ON:
            return passed_on([name, "--help"])
        known = table(state)
        if name not in known:
            raise InputProblem(f"There is no command `{words[0]}`.{suggest(words[0], known)}")
        write(f"{name} {known[name].usage}".strip() + f"  {known[name].about}")
        return 0
    for line in showing.help_lines(table(state), ALIASES):
        write(line)
    return 0


def nothing_more(name: str, words: Sequence[str]) -> None:
    if words:
        raise InputProblem(f"`{name}` takes nothing behind it, and here is {shlex.join(words)}.")


def passed_on(words: Sequence[str]) -> int:
    """A whole command line that has nothing to do with the session's state."""
    from fitcheck.cli.main import run

    return run(words)


def with_options(name: str) -> Callable[[State, list[str]], int]:
    return lambda state, words: running.run(state, name, words)


def group(name: str) -> Callable[[State, list[str]], int]:
    return lambda state, words: passed_on([name, *words])


def check(state: State, words: list[str]) -> int:
    """Configurations of other programs, on the session's card."""
    typed = {"gpu": True} if any(w.startswith(("--gpu", "--vram-mib")) for w in words) else {}
    return passed_on(["check", *words, *state.card_words(typed)])


def leave(state: State, words: list[str]) -> int:
    nothing_more(LEAVE, words)
    raise EOFError


def table(state: State) -> dict[str, Command]:
    """Every command by its name, in the order of the help."""
    found = {
        "model": Command("NAME", "Load a model: a Hub id, a path or a catalogue name", model),
        "gpu": Command("NAME [--vram-mib N]", "Choose the GPU", gpu),
    }
    for name in running.commands_of(state):
        found[name] = Command(*showing.usage_of(state, name), with_options(name))
    found |= {
        "explain": Command("", "The last training estimate in plain English", explain),
        "derive": Command("[COMPONENT]", "Formulas with the numbers of the last estimate", derive),
        "show": Command("", "Model, GPU, flags, swept ranges and last estimates", show),
        "reset": Command("", "All flags and swept ranges back to their defaults", reset),
        "save": Command("FILE [--force]", "Write model, GPU and flags to a file", files.save),
        "load": Command("FILE", "Take model, GPU and flags from a saved file", files.load),
        "gpus": Command("", "List the GPU database", gpus),
        "check": Command(*showing.usage_of(state, "check"), check),
        **{name: Command(*showing.usage_of(state, name), group(name)) for name in PASSED_ON},
        "help": Command("[COMMAND]", "This list, or the options of one command", help_),
        LEAVE: Command("", "Leave the session", leave),
    }
    return found


def perform(state: State, line: str) -> None:
    """
    Do what a line says. Raises EOFError where it leaves the session; all else becomes words.
    """
    try:
        words = shlex.split(line, comments=True)
    except ValueError as error:
        say("error", f"{str(error).rstrip('.').capitalize()}: check the quotes.", state.no_color)
        return
    if words:
        left = []

        def action() -> int:
            try:
                return dispatch(state, words)
            except EOFError:
                left.append(True)
                return 0

        guarded(lambda: told(action))
        if left:
            raise EOFError


def told(action: Callable[[], int]) -> int:
    """`main.told`, where the help of a command ends it as it should."""
    from fitcheck.cli import main

    try:
        return main.told(action)
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except KeyboardInterrupt:
        say("note", "interrupted; the session goes on, `exit` leaves it")
        return 0


def dispatch(state: State, words: list[str]) -> int:
    """Find the command and run it."""
    name, rest = ALIASES.get(words[0], words[0]), words[1:]
    if name == PROGRAM and rest:  # a command that an answer printed
        return passed_on(rest)
    if name == PROGRAM:
        raise InputProblem("This is a session already; `help` lists what it can do.")
    known: Mapping[str, Command] = table(state)
    if name not in known:
        hint = suggest(words[0], {**known, **ALIASES})
        if "/" in words[0]:
            hint = f" A model is loaded by `model {words[0]}`."
        elif words[0].startswith("-"):
            hint = f" Options follow a command: `memory {words[0]}`."
        raise InputProblem(f"There is no command `{words[0]}`.{hint or ' `help` lists them.'}")
    return known[name].action(state, rest)
