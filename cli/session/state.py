"""What a session remembers between two lines."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fitcheck.engine.api import rules_for
from fitcheck.engine.modes import bundled_commands, commands
from fitcheck.engine.spelling import spelled

if TYPE_CHECKING:
    from fitcheck.engine.report import Report
    from fitcheck.engine.rules import Rules

TRAINING = ""  # the mode of training, which has no name


@dataclass
class State:
    """
    The model, the card, and what was typed of each kind of run.

    `flags` holds flags and shorthands by id for each mode, `foreign` the words of options of
    another program by their name, `other` further options of a mode (`--from-command`), `sweep`
    the ranges of the advisor and `shared` options that hold for every command, all as typed.
    """

    overlays: tuple[str, ...] = ()
    no_color: bool = False
    model: str | None = None
    gpu: str | None = None
    vram_mib: int | None = None
    flags: dict[str, dict[str, Any]] = field(default_factory=dict)
    foreign: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    other: dict[str, dict[str, Any]] = field(default_factory=dict)
    sweep: dict[str, Any] = field(default_factory=dict)
    shared: dict[str, Any] = field(default_factory=dict)
    seen: dict[str, Report] = field(default_factory=dict)  # the last estimate of each mode
    last: str = TRAINING  # the mode of the last estimate
    once: dict[str, Any] = field(default_factory=dict)  # the card of the last line alone

    def rules(self, mode: str = TRAINING) -> Rules:
        """The rules of a mode."""
        return rules_for(self.overlays, mode or None)

    def modes(self) -> dict[str, str]:
        """Session command to mode, beside that of training."""
        return {**commands([(f, True) for f in self.overlays]), **bundled_commands()}

    def of(self, mode: str) -> dict[str, Any]:
        """The flags that were typed for a mode."""
        return self.flags.setdefault(mode, {})

    def forget(self, mode: str) -> None:
        """Put a mode back to its defaults."""
        for kept in (self.flags, self.foreign, self.other):
            kept.pop(mode, None)

    def forget_answers(self) -> None:
        """The last answers were those of another model, card or set of flags."""
        self.seen.clear()
        self.once.clear()

    def flag_words(self, mode: str, without: Collection[str] = ()) -> list[str]:
        """The flags of a mode as words of a command line, shorthands first."""
        flags = self.rules(mode).flags
        chosen = {n: v for n, v in self.of(mode).items() if n not in without}
        words = [s.option for s in flags.shorthands.values() if chosen.get(s.id)]
        for flag in flags.flags.values():
            if flag.id in chosen:
                words += spelled(flag, flags.check(flag, chosen[flag.id]))
        for others in self.foreign.get(mode, {}).values():
            words += others
        return words + option_words(self.other.get(mode, {}))

    def differs(self, mode: str) -> list[str]:
        """The words for what is not as by default; kept flags that are the default are left out."""
        flags, chosen = self.rules(mode).flags, self.of(mode)
        values = flags.resolve(chosen).values
        usual = flags.resolve({s: True for s in flags.shorthands if chosen.get(s)}).values
        words = [s.option for s in flags.shorthands.values() if chosen.get(s.id)]
        for flag in flags.flags.values():
            if values[flag.id] != usual[flag.id]:
                words += spelled(flag, values[flag.id])
        for others in self.foreign.get(mode, {}).values():
            words += others
        return words + option_words({**self.other.get(mode, {}), **self.shared})

    def card_words(self, typed: Mapping[str, Any]) -> list[str]:
        """The options of the session's card, where none is typed for one estimate."""
        if "gpu" in typed:
            return []
        memory = None if "vram_mib" in typed else self.vram_mib
        return option_words({"gpu": self.gpu, "vram_mib": memory})


def option_words(values: Mapping[str, Any]) -> list[str]:
    """Options by the names of their parameters as words; None is not given."""
    words: list[str] = []
    for name, value in values.items():
        several: Sequence[Any] = value if isinstance(value, (list, tuple)) else (value,)
        for one in several:
            if one is not None:
                words += [f"--{name.replace('_', '-')}", str(one)]
    return words
