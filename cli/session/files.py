"""`save FILE` and `load FILE`: the session as a saved run, which `--config` reads too."""

from __future__ import annotations

import shlex
from typing import Any

from fitcheck.cli import options
from fitcheck.cli.estimate import flags_of
from fitcheck.cli.output import write
from fitcheck.cli.session import running
from fitcheck.cli.session.running import MEMORY
from fitcheck.cli.session.state import TRAINING, State
from fitcheck.engine.errors import InputProblem
from fitcheck.engine.run_file import SWEEP, TRAINING as SECTION, named, read_run, write_run

FORCE = "--force"
NOTHING = {"model": None, "stack": None}  # what the flags are read without


def section(mode: str) -> str:
    """The part of the file that holds the flags of a mode."""
    return mode or SECTION


def save(state: State, words: list[str]) -> int:
    """Write what differs from the defaults."""
    names = [word for word in words if word != FORCE]
    if len(names) != 1:
        raise InputProblem("Write `save FILE`, such as `save run.yaml`.")
    top = {"model": state.model, "gpu": state.gpu, "vram_mib": state.vram_mib, **state.shared}
    sections = {
        section(mode): named(state.rules(mode).flags, kept)
        for name, mode in {MEMORY: TRAINING, **state.modes()}.items()
        if (kept := our_flags(state, name, mode))
    }
    sweep = {n: list(v) if isinstance(v, tuple) else v for n, v in state.sweep.items()}
    sections[SWEEP] = {n: v for n, v in sweep.items() if v not in (None, [])}
    write_run(names[0], {n: v for n, v in top.items() if v is not None}, sections, FORCE in words)
    write(f"saved to {names[0]}; `fitcheck --config {shlex.quote(names[0])}` runs it")
    return 0


def our_flags(state: State, name: str, mode: str) -> dict[str, Any]:
    """
    The flags of a mode, with what options of another program come to; raises `InputProblem` where
    some of them are no flags of ours, since a saved run could not hold them.
    """
    foreign = [w for words in state.foreign.get(mode, {}).values() for w in words]
    if not foreign and not state.other.get(mode):
        return state.of(mode)
    words = state.flag_words(mode)
    ctx = running.inside(state, name).make_context(name, words)
    flags, told = flags_of(ctx, state.rules(mode), {**ctx.params, **NOTHING}, options.given(ctx))
    if told:
        raise InputProblem(
            f"A saved run holds flags of fitcheck, and this is none of them: {' '.join(told)} Give "
            f"`{name}` without it, or `reset`."
        )
    return flags


def load(state: State, words: list[str]) -> int:
    """Take everything from a file; nothing changes where it is wrong."""
    if len(words) != 1:
        raise InputProblem("Write `load FILE`, such as `load run.yaml`.")
    take(state, words[0])
    for line in summary(state):
        write(line)
    return 0


def take(state: State, path: str) -> None:
    """The state of a saved run; raises `InputProblem` and leaves the state as it was."""
    from fitcheck.engine.api import choose_card, read_model

    saved = read_run(path)
    flags = {
        mode: saved.flags(section(mode), state.rules(mode).flags)
        for mode in (TRAINING, *state.modes().values())
        if section(mode) in saved.sections
    }
    top = dict(saved.top)
    name, gpu, memory = (top.pop(key, None) for key in ("model", "gpu", "vram_mib"))
    for key in ("gpu", "vram_mib"):
        try:
            if key in saved.top:
                choose_card(state.rules(), gpu, memory)
        except InputProblem as problem:
            saved.refuse((key,), str(problem))
    if name is not None:
        read_model(state.rules(), name, top.get("source", "auto"))
    state.model, state.gpu, state.vram_mib = name or state.model, gpu, memory
    state.flags, state.foreign, state.other, state.shared = flags, {}, {}, top
    state.sweep = dict(saved.sections.get(SWEEP, {}))
    state.forget_answers()


def summary(state: State) -> list[str]:
    from fitcheck.cli.session.showing import seeded

    return seeded(state) or ["the file holds nothing but defaults"]
