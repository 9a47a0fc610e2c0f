"""Where the command starts: plain command lines are answered without loading click.

Click is half of a start. Taken here are exact forms only: a MODEL first (or the command of a mode
and then one), then the options of the rules and the GPU, each with its value, for the table or
`--json`. Everything else is left to click, and so is a command line that would be refused: options,
messages and exit codes are defined there alone. A test runs the same command lines through both.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from fitcheck.engine.flags import FlagSet

VARIABLE_OF_FOLDERS = "FITCHECK_RULES"  # folders with rule files, separated as in PATH
VARIABLE_OF_COMPLETION = "_FITCHECK_COMPLETE"  # set by the shell's script when it asks for names
SUBCOMMANDS = {  # name to the module whose build(overlay folders) makes the click command
    "advise": "fitcheck.cli.advise",
    "compare": "fitcheck.cli.compare",
    "estimate": "fitcheck.cli.estimate",
    "models": "fitcheck.cli.models",
    "optimize": "fitcheck.cli.optimize",
    "rules": "fitcheck.cli.rules",
}
HELP = (["--help"], ["-h"])
TEXT_OPTIONS = {"--gpu": "gpu"}
NUMBER_OPTIONS = {"--vram-mib": "vram_mib"}
LEFT_ALONE = {  # what the other options of `fitcheck --help` are where they are not given
    "gpu": None,
    "vram_mib": None,
    "source": "auto",
    "as_json": False,
    "no_color": False,
    "verbose": False,
    "explain": False,
    "derive": None,
    "form": None,
}


def main() -> NoReturn:
    """Run the command line and exit with its status."""
    gc.set_threshold(100_000)  # what a run makes it needs until it ends: looking for more is 8 %
    from fitcheck.cli.errors import guarded

    status = guarded(lambda: run(sys.argv[1:]))
    end(status)


def end(status: int) -> NoReturn:
    """
    End the process without taking the interpreter apart, which would cost a table 3 ms of 77.

    Where something waits for the exit (coverage, logging, a library) or output cannot be written,
    Python ends as usual.
    """
    if not atexit._ncallbacks() and flushed():
        os._exit(status)
    gc.freeze()  # at least without a last search for cycles
    sys.exit(status)


def flushed() -> bool:
    """Whether all output has been written."""
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:  # closed by the caller of the process
                stream.flush()
    except (OSError, ValueError):
        return False
    return True


def run(words: Sequence[str]) -> int:
    """The exit status of one command line; raises what `errors.guarded` puts into words."""
    action = plain(words)
    if action is not None:
        return action()
    if list(words) in HELP and not changed():
        from fitcheck.cli.help_text import show

        return show(lambda: by_click(words))
    return by_click(words)


def by_click(words: Sequence[str]) -> int:
    """The exit status of a command line that click takes apart."""
    from fitcheck.cli.main import run as run_click

    return run_click(words)


def changed() -> bool:
    """Whether the environment changes the rules or asks for completion."""
    return bool(os.environ.get(VARIABLE_OF_FOLDERS)) or VARIABLE_OF_COMPLETION in os.environ


def plain(words: Sequence[str]) -> Callable[[], int] | None:
    """What answers a plain command line; None where click has to."""
    if not words or words[0].startswith("-") or words[0] in SUBCOMMANDS:
        return None
    if changed():
        return None
    mode = mode_of(words[0])
    if mode is not None:
        words = words[1:]
        if not words or words[0].startswith("-"):
            return None
    from fitcheck.engine.api import choose_card, rules_for
    from fitcheck.engine.errors import InputProblem

    rules = rules_for((), mode)
    found = parsed(words[1:], rules.flags)
    if found is None:
        return None
    flags, others = found
    values = {**LEFT_ALONE, **others}
    try:
        rules.flags.resolve(flags)
        choose_card(rules, values["gpu"], values["vram_mib"])
    except InputProblem:
        return None
    from fitcheck.cli.answer import Request, answer

    shown = {name: value for name, value in others.items() if name != "as_json"}
    return lambda: answer(rules, Request(words[0], flags, shown), values)


def mode_of(word: str) -> str | None:
    """The mode that a first word asks for; most models have a slash or a dot in their name."""
    if "/" in word or "." in word:
        return None
    from fitcheck.engine.modes import bundled_commands

    return bundled_commands().get(word)


def parsed(words: Sequence[str], flags: FlagSet) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """(flags, other options) where every word is exactly one or its value, else None."""
    by_option = {name: f for f in flags.flags.values() for name in (f.option, *f.aliases)}
    shorthands = {short.option: short.id for short in flags.shorthands.values()}
    given: dict[str, Any] = {}
    others: dict[str, Any] = {}
    rest = iter(words)
    for word in rest:
        flag = by_option.get(word)
        if word == "--json":
            others["as_json"] = True
        elif word in shorthands:
            given[shorthands[word]] = True
        elif flag is not None and flag.kind == "switch":
            given[flag.id] = not flag.inverse
        else:
            numeric = word in NUMBER_OPTIONS or (flag is not None and flag.kind == "integer")
            value = _value(next(rest, ""), numeric)
            if value is None:
                return None
            if flag is not None:
                if flag.kind == "choice" and value not in flag.values:
                    return None
                given[flag.id] = value
            elif name := TEXT_OPTIONS.get(word) or NUMBER_OPTIONS.get(word):
                others[name] = value
            else:
                return None
    return given, {name: others[name] for name in LEFT_ALONE if name in others}


def _value(word: str, numeric: bool) -> str | int | None:
    """The value of an option; None where only click can say what is wrong with it."""
    if not word or word.startswith("-"):
        return None
    if not numeric:
        return word
    return int(word) if word.isascii() and word.isdigit() and len(word) < 20 else None
