"""How a session begins, where its lines come from, and that it ends with 0."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import click

from fitcheck.cli.output import say, write, write_error
from fitcheck.cli.session import commands, showing
from fitcheck.cli.session.running import SHARED
from fitcheck.cli.session.state import TRAINING, State
from fitcheck.engine import sources


def start(flags: dict[str, Any], typed: dict[str, Any], ctx: click.Context) -> int:
    """A session that begins with the flags of a command line; always 0."""
    state = State(
        overlays=tuple(getattr(ctx.command, "overlays", ())),
        no_color=bool(ctx.params.get("no_color")),
        gpu=typed.get("gpu"),
        vram_mib=typed.get("vram_mib"),
        flags={TRAINING: dict(flags)} if flags else {},
        shared={name: typed[name] for name in SHARED if name in typed},
    )
    for name in state.rules().flags.libraries():  # --stack is kept as it was typed
        if "stack" in state.shared and name in flags:
            state.of(TRAINING).pop(name, None)
    if saved := ctx.meta.get("config"):
        from fitcheck.engine.run_file import SWEEP

        for mode in state.modes().values():
            state.flags[mode] = saved.flags(mode, state.rules(mode).flags)
        state.sweep = dict(saved.sections.get(SWEEP, {}))
    sources.kept = {}
    try:
        converse(state)
    finally:
        sources.kept = None
    return 0


def in_terminal() -> bool:
    """Whether a person types."""
    streams = (sys.stdin, sys.stdout)
    return all(stream is not None and stream.isatty() for stream in streams)


def converse(state: State) -> None:
    """Perform line after line until there is none."""
    if in_terminal():
        for line in showing.banner(state):
            write(line)
        source = typed_lines(state)
    else:
        for line in showing.seeded(state):
            write_error(line)
        source = piped_lines()
    for line in joined(source):
        try:
            commands.perform(state, line)
        except EOFError:
            return
        except KeyboardInterrupt:
            say("note", "interrupted; the session goes on, `exit` leaves it", state.no_color)


def joined(source: Iterable[str]) -> Iterator[str]:
    """Single lines: what was pasted at once is cut apart, and a backslash at an end goes on."""
    begun = ""
    for text in source:
        for line in text.rstrip("\n").split("\n"):
            if line.endswith("\\"):
                begun += line[:-1] + " "
                continue
            yield begun + line
            begun = ""
    if begun:
        yield begun


def piped_lines() -> Iterator[str]:
    """Lines of standard input that is no terminal."""
    while sys.stdin is not None:
        try:
            line = sys.stdin.readline()
        except UnicodeDecodeError:
            say("error", "a line is no text in this encoding; it was left out")
            continue
        except (OSError, ValueError, KeyboardInterrupt):
            return
        if not line:
            return
        yield line


def typed_lines(state: State) -> Iterator[str]:
    """Lines that a person types, with history and completion."""
    if os.environ.get("TERM") == "dumb":
        while True:
            try:
                yield input("fitcheck> ")
            except KeyboardInterrupt:
                write("")
            except EOFError:
                return
    from fitcheck.cli.session.prompting import prompted

    yield from prompted(state)
