"""Training and all modes as one set of rules, for what speaks of files and not of runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..flags import Flag
from ..formula import Formula
from ..profile import Profile
from ..record import replace
from ..rules import Rules


class Everything(Rules):
    """
    The quantities of all modes under their ids, which are unique.

    Flags of several modes are those of training; profiles of a kind stand in one list. Nothing is
    evaluated with it: a run needs the rules of its mode, which `home` gives.
    """

    def __init__(self, rules: Rules, modes: Iterable[Rules]) -> None:
        parts = self.parts = (rules, *modes)
        formulas: dict[str, Formula] = {}
        flags: dict[str, Flag] = {}
        phases: dict[str, str] = {}
        profiles: dict[str, list[Profile]] = {}
        self._homes: dict[str, Rules] = {}
        for part in reversed(parts):  # what training has too is training's
            formulas |= part.formulas
            flags |= part.flags.flags
            phases |= part.phases
            self._homes |= dict.fromkeys(part.formulas, part)
        for part in parts:
            for kind, found in part.profiles.items():
                profiles[kind] = [*profiles.get(kind, ()), *found]
        super().__init__(
            rules.roots,
            rules.units,
            replace(rules.flags, flags=in_order(flags, parts), functions={}),
            {name: phases[name] for part in parts for name in part.phases},
            rules.hints,
            dict(sorted(formulas.items())),
            profiles,
            rules.statuses,
            rules.architectures,
            rules.lists,
            frozenset().union(*(part.broken for part in parts)),
        )
        self.blocks = rules.blocks

    def home(self, name: str) -> Rules:
        """The rules in which a quantity is evaluated."""
        return self._homes[name]

    def reads_of(self, formula: Formula) -> set[str]:
        return self._homes[formula.id].reads_of(formula)


def in_order(flags: Mapping[str, Flag], parts: Iterable[Rules]) -> dict[str, Flag]:
    """Flags as the files list them, training first."""
    return {name: flags[name] for part in parts for name in part.flags.flags}


def everything(rules: Rules) -> Everything:
    """The rules of training with those of every mode."""
    return Everything(rules, rules.modes.values())


def own(rules: Rules, part: Rules) -> list[Formula]:
    """The quantities that a mode has to itself; of training all."""
    if part is rules:
        return list(rules.formulas.values())
    return [f for f in part.formulas.values() if f.id not in rules.formulas]
