"""What a session says of itself: its state, its commands, its first lines."""

from __future__ import annotations

import shlex
import shutil
import textwrap
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from fitcheck.cli.brief import BRIEF
from fitcheck.cli.session import running
from fitcheck.cli.session.state import TRAINING, State
from fitcheck.cli.words import count, settings_words, whole_mib
from fitcheck.engine.errors import FitcheckError

if TYPE_CHECKING:
    from fitcheck.engine.architecture import Model
    from fitcheck.engine.cards import Card

LABEL = 10
CLOSING = (
    "Flags are kept: `memory --qlora` and then `memory --batch-size 8` is both; --no-NAME undoes a",
    "switch, `reset` everything. --gpu behind a command is for that line only. `help memory` lists",
    "the flags of a command.",
)


def model_line(model: Model) -> str:
    """One line about a model that was read."""
    counted = model.counted_parameters
    size = f"{count(counted)} parameters · " if counted else ""
    return f"{model.name}: {size}{model.source}"


def card_line(state: State, card: Card) -> str:
    """One line about the chosen card."""
    usable = f": {whole_mib(card.usable)} MiB usable of {whole_mib(card.total)} MiB"
    return f"{card.title}{usable if card.usable else ''}"


def card_text(state: State) -> str:
    """The session's card as it was chosen."""
    if state.gpu is None and state.vram_mib is None:
        return "not set: `gpu NAME`"
    memory = "" if state.vram_mib is None else f"{state.vram_mib:,} MiB"
    return " with ".join(part for part in (state.gpu, memory) if part)


def state_lines(state: State) -> Iterator[str]:
    """Model, card, flags of both kinds of runs, what is swept, and the last estimates."""
    yield row("model", state.model or "not set: `model NAME`")
    yield row("gpu", card_text(state))
    for name, mode in {running.MEMORY: TRAINING, **state.modes()}.items():
        yield from rows(name, flags_text(state, mode))
        differs = state.differs(mode)
        yield row("", f"differs: {shlex.join(differs)}" if differs else "as by default")
    yield row("advise", swept_text(state))
    for name, value in state.shared.items():
        yield row(name, str(value))
    for name, mode in {running.MEMORY: TRAINING, **state.modes()}.items():
        report = state.seen.get(mode)
        if report is not None:
            total = whole_mib(report.run.value(total_of(report)))
            says = f"{total} MiB on {report.prepared.card.title}, {report.title}"
            yield row("last", f"{name}: {says}")


def total_of(report: Any) -> str:
    """The quantity that is the total of a report's rules."""
    return str(report.prepared.rules.hints.data["price"])


def row(label: str, text: str) -> str:
    return f"{label:<{LABEL}}{text}"


def rows(label: str, text: str) -> list[str]:
    """A label and a text that is as wide as the terminal at most."""
    room = max(shutil.get_terminal_size().columns - LABEL, 30)
    kept = text.replace(" · ", "\n").replace(" ", "\0").replace("\n", " · ")
    lines = textwrap.wrap(kept, room, break_on_hyphens=False)
    lines = [line.replace("\0", " ") for line in lines]
    return [row(label if not n else "", line) for n, line in enumerate(lines)]


def flags_text(state: State, mode: str) -> str:
    """Every flag that plays a part, with its value."""
    flags = state.rules(mode).flags
    try:
        words = settings_words(flags, flags.resolve(state.of(mode)))
    except FitcheckError as error:
        return str(error)
    return " · ".join(word for word, _ in words)


def swept_text(state: State) -> str:
    """The ranges of the advisor."""
    if not state.sweep:
        return "no ranges set: `advise --seq-lens 1024,2048,4096`"
    made = running.command(state, "advise")
    return shlex.join(running.option_words_of(made, state.sweep))


def usage_of(state: State, name: str) -> tuple[str, str]:
    """What follows a command, and the first sentence of its help."""
    if name == running.MEMORY:
        return "[OPTIONS]", "Estimate a training run: does it fit, and what takes the memory"
    modes = state.modes()
    if name in modes:
        mode = state.rules(modes[name]).mode
        return "[OPTIONS]", mode.title if mode is not None else ""
    usage, about = BRIEF[name]
    return usage, about[0].upper() + about[1:]


def help_lines(table: Mapping[str, Any], aliases: Mapping[str, str]) -> Iterator[str]:
    """The commands with what follows them, what they do, and other names."""
    others: dict[str, list[str]] = {}
    for alias, name in aliases.items():
        others.setdefault(name, []).append(alias)
    width = max(len(f"{name} {entry.usage}") for name, entry in table.items()) + 2
    for name, entry in table.items():
        also = f" (also {', '.join(others[name])})" if name in others else ""
        yield f"  {f'{name} {entry.usage}':<{width}}{entry.about}{also}"
    yield ""
    yield from CLOSING


def banner(state: State) -> list[str]:
    """The first lines in a terminal, with what the command line gave."""
    from fitcheck import __version__

    lines = [f"fitcheck {__version__}. `model NAME`, `gpu NAME`, `memory`; `help` lists commands."]
    return lines + seeded(state)


def seeded(state: State) -> list[str]:
    """What a session began with, where anything was given."""
    found = []
    if state.model is not None:
        found.append(row("model", state.model))
    if state.gpu is not None or state.vram_mib is not None:
        found.append(row("gpu", card_text(state)))
    differs = [
        shlex.join(d) for mode in (TRAINING, *state.modes().values()) if (d := state.differs(mode))
    ]
    found += [row("flags", text) for text in differs]
    return found + ([row("sweep", swept_text(state))] if state.sweep else [])
