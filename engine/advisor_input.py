"""What a sweep was asked for: axes, further swept flags and cards, and flags held fixed."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from .advice import GPU
from .advise_rules import Axis, Plan
from .advisor_grid import MOST, size_of
from .api import choose_card
from .errors import InputProblem
from .flags import Flag, FlagSet
from .record import record
from .rules import Rules
from .suggest import suggest

LONGEST_LIST = 100_000  # values of one axis
BETWEEN_LISTS = "/"  # between values that are lists themselves
TRUTHS = {"on": True, "true": True, "yes": True, "off": False, "false": False, "no": False}
_PART = re.compile(r"([0-9_]{1,15})(?:\.\.([0-9_]{1,15})(?::([0-9_]{1,15}))?)?")


@record
class Asked:
    """
    Values of every axis, sorted and each once; `others` are further flags and `gpu` by the values
    that they are swept over; `explicit` flags that are held fixed. `first` are the flags of the
    first combination that goes together.
    """

    axes: Mapping[str, tuple[int, ...]]
    others: Mapping[str, tuple[Any, ...]]
    explicit: Mapping[str, Any]
    cards: tuple[str | None, ...]
    first: Mapping[str, Any]

    @property
    def combinations(self) -> int:
        """How many grids there are."""
        return math.prod(map(len, self.others.values()))

    def combined(self) -> Iterator[tuple[dict[str, Any], str | None]]:
        """Every combination of the other swept flags, with the card."""
        names = [name for name in self.others if name != GPU]
        for values in itertools.product(*(self.others[name] for name in names)):
            for card in self.cards:
                yield dict(zip(names, values, strict=True)), card

    def flags(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """The flags of a combination at its first point."""
        return {**self.explicit, **settings, **{n: values[0] for n, values in self.axes.items()}}


def asked_for(
    rules: Rules,
    plan: Plan,
    given: Mapping[str, Any],
    sweep: Mapping[str, Any],
    gpu: str | None,
    vram_mib: int | None,
) -> Asked:
    """What was asked for, checked; raises `InputProblem`."""
    flags = rules.flags
    typed = {name: value for name, value in given.items() if value is not None}
    axes: dict[str, tuple[int, ...]] = {}
    for axis in plan.axes:
        names = [name for name in (axis.json, axis.flag) if name in typed]
        values = typed.pop(names[0]) if names else axis.default
        most = typed.pop(axis.most.json, None) if axis.most else None
        axes[axis.flag] = axis_values(flags, axis, values, most)
    explicit = held_fixed(flags, plan, typed)
    others = swept(flags, plan, sweep)
    for name in others:
        option = flags.spelled(name)
        if name in explicit or (name == GPU and (gpu is not None or vram_mib is not None)):
            also = "--gpu or --vram-mib" if name == GPU else option
            raise InputProblem(f"--sweep {name} and {also} say two things: give one.", flag=name)
    by_card = {choose_card(rules, c, vram_mib).id: c for c in reversed(others.get(GPU, (gpu,)))}
    cards = tuple(reversed(by_card.values()))  # of two names of one card the first
    if GPU in others:
        others[GPU] = cards
    asked = Asked(axes, others, explicit, cards, {})
    points = size_of(tuple(axes.values())) * asked.combinations
    if points > MOST:
        raise InputProblem(
            f"This sweep has {points:,} points, and {MOST:,} are possible: give fewer values."
        )
    return Asked(axes, others, explicit, cards, first_of(flags, asked))


def first_of(flags: FlagSet, asked: Asked) -> dict[str, Any]:
    """The flags of the first combination that goes together; raises why none does."""
    problem: InputProblem | None = None
    for settings, _ in asked.combined():
        chosen = asked.flags(settings)
        try:
            flags.resolve(chosen)
        except InputProblem as error:
            problem = problem or error
            continue
        return chosen
    assert problem is not None
    raise problem


def axis_values(flags: FlagSet, axis: Axis, values: Any, most: Any) -> tuple[int, ...]:
    """The values of an axis, sorted and each once, within the bound that was given for it."""
    flag = flags.flags[axis.flag]
    if isinstance(values, str):
        values = numbers(axis.option, values)
    elif isinstance(values, int):
        values = [values]
    found = sorted({checked(flags, flag, axis.option, value) for value in values})
    if not found:
        raise InputProblem(
            f"{axis.option} is missing: give values such as {axis.option} 1024,2048,4096.",
            flag=axis.flag,
        )
    if most is not None and axis.most is not None:
        bound = checked(flags, flag, axis.most.option, most)
        longer = [value for value in found if value > bound]
        if longer:
            raise InputProblem(
                f"{axis.option} {','.join(map(str, longer[:5]))} is more than {axis.most.option} "
                f"{bound}: leave it out, or raise {axis.most.option}.",
                flag=axis.flag,
            )
    return tuple(found)


def checked(flags: FlagSet, flag: Flag, option: str, value: Any) -> Any:
    """One value of a swept flag; its message names the option that was typed."""
    try:
        return flags.check(flag, value)
    except InputProblem as problem:
        said = str(problem).removeprefix(flag.option).lstrip(": ")
        raise InputProblem(f"{option}: {said}", flag=flag.id) from None


def numbers(option: str, text: str) -> list[int]:
    """
    `1,2,4` or `512..8192:512` as numbers, ranges with both ends.

    Raises `InputProblem` for anything else.
    """
    found: list[int] = []
    for part in text.split(","):
        match = _PART.fullmatch(part.strip())
        if match is None:
            raise InputProblem(
                f"{option} {text[:60]}: {part.strip()[:30]!r} is no whole number. Write numbers "
                "with commas (1,2,4) or a range with its step (512..8192:512)."
            )
        first, last, step = (int(g.replace("_", "") or 0) if g else None for g in match.groups())
        assert first is not None
        if last is None:
            found.append(first)
            continue
        if step is None:
            raise InputProblem(
                f"{option} {part.strip()}: a range has its step, such as {part.strip()}:512."
            )
        if step == 0 or last < first:
            raise InputProblem(f"{option} {part.strip()}: a range rises, by a step of 1 or more.")
        values = range(first, last + 1, step)
        if len(values) + len(found) > LONGEST_LIST:
            raise InputProblem(f"{option}: more than {LONGEST_LIST:,} values.")
        found += values
    return found


def held_fixed(flags: FlagSet, plan: Plan, typed: Mapping[str, Any]) -> dict[str, Any]:
    """Flags and shorthands by id, checked; raises `InputProblem` for one that is swept or held."""
    known, found = flags.names(), {}
    for name, value in typed.items():
        if name not in known:
            near = suggest(name, [*known, *(axis.json for axis in plan.axes)])
            raise InputProblem(f"There is no flag `{name}`.{near}")
        flag = flags.flags.get(known[name])
        refuse_held(flags, plan, known[name])
        if flag is None:
            found[known[name]] = value
            continue
        if flag.inverse and name != flag.id and isinstance(value, bool):
            value = not value
        found[flag.id] = flags.check(flag, value)
    return found


def refuse_held(flags: FlagSet, plan: Plan, name: str) -> None:
    """Raise `InputProblem` for a flag that has no place in a sweep, or is an axis of it."""
    option = flags.spelled(name)
    if name in plan.held:
        raise InputProblem(f"{option} has no place here: {plan.held[name]}", flag=name)
    axis = plan.axis(name)
    if axis is not None:
        raise InputProblem(f"{option} is swept here: give its values to {axis.option}.", flag=name)


def swept(flags: FlagSet, plan: Plan, sweep: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
    """The values of what is swept beside the axes, by flag id or `gpu`, in the order given."""
    known, found = flags.names(), {}
    for name, values in sweep.items():
        key = name.strip().lstrip("-").replace("-", "_")
        flag_id = GPU if key == GPU else known.get(key, key)
        if flag_id in found:
            raise InputProblem(f"--sweep {name} is given twice: put all its values into one.")
        if flag_id in flags.shorthands:
            sets = ", ".join(flags.spelled(n) for n in flags.shorthands[flag_id].sets)
            raise InputProblem(
                f"--sweep {name}: {flags.spelled(flag_id)} is short for several flags; sweep "
                f"those ({sets}).",
                flag=flag_id,
            )
        refuse_held(flags, plan, flag_id)
        flag = flags.flags.get(flag_id)
        if flag is None and flag_id != GPU:
            raise InputProblem(
                f"--sweep {name}: there is no such flag; NAME is that of an option without its "
                f"dashes, or {GPU}.{suggest(key, [GPU, *known])}"
            )
        given = [values] if isinstance(values, (bool, int)) else values
        cells = split(name, flag, given) if isinstance(given, str) else list(given)
        known_cells = cells if flag is None else [value_of(flags, name, flag, c) for c in cells]
        found[flag_id] = tuple(dict.fromkeys(known_cells))
        if not found[flag_id]:
            raise InputProblem(f"--sweep {name} needs values: --sweep {name}=FIRST,SECOND.")
    return found


def split(name: str, flag: Flag | None, text: str) -> list[Any]:
    """The values in a text; those of a flag that takes a list are separated by a slash."""
    if flag is not None and flag.kind == "integer":
        return list(numbers(f"--sweep {name}", text))
    sign = BETWEEN_LISTS if flag is not None and flag.kind == "words" else ","
    parts = [part.strip() for part in text.split(sign)]
    if not all(parts):
        raise InputProblem(f"--sweep {name}={text[:60]}: a value is empty.")
    return parts


def value_of(flags: FlagSet, name: str, flag: Flag, value: Any) -> Any:
    """One value of a swept flag; words in any case, switches as on and off."""
    if flag.kind == "switch" and isinstance(value, str):
        if value.casefold() not in TRUTHS:
            raise InputProblem(
                f"--sweep {name}: {value[:30]!r} is neither on nor off, and {flag.option} is a "
                "switch.",
                flag=flag.id,
            )
        return TRUTHS[value.casefold()]
    if flag.kind == "choice" and isinstance(value, str):
        value = next((v for v in flag.values if v.casefold() == value.casefold()), value)
    return checked(flags, flag, f"--sweep {name}", value)
