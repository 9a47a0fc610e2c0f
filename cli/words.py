"""Values of a report as words: the settings, counts, and the command that repeats an estimate."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from fitcheck.engine.errors import FitcheckError, InputProblem
from fitcheck.engine.flags import Flag, FlagSet, FromProfile, Settings
from fitcheck.engine.spelling import spelled
from fitcheck.engine.template import MIB

if TYPE_CHECKING:
    from fitcheck.cli.answer import Request
    from fitcheck.engine.report import Report


def whole_mib(value: int | Fraction) -> str:
    """Bytes as whole MiB; what is less than half of one is said to be so."""
    amount = Fraction(value) / MIB
    return "<1" if 0 < amount < Fraction(1, 2) else f"{round(amount):,}"


def gib(value: int | Fraction) -> str:
    return f"{float(Fraction(value) / MIB / 1024):,.1f} GiB"


def count(value: int | Fraction) -> str:
    """A count with three digits: `8.03 B`, `54.5 M`."""
    for size, sign in ((10**12, " T"), (10**9, " B"), (10**6, " M"), (10**3, " k")):
        if Fraction(value) / size >= Fraction(9995, 10_000):  # 999.9 M is 1 B
            return f"{float(Fraction(value) / size):.3g}{sign}"
    return str(value)


def settings_words(
    flags: FlagSet, settings: Settings, of: Mapping[str, Flag] | None = None
) -> list[tuple[str, bool]]:
    """The resolved flags (all, or these) in words, each with whether it is not its default."""
    words = []
    for flag in (flags.flags if of is None else of).values():
        value = settings.values[flag.id]
        if _idle(flags, flag, settings):
            continue
        changed = is_changed(flag, settings)
        if not changed and flag.quiet:
            continue
        if not changed and (value == () or (flag.kind == "integer" and value == 0)):
            continue  # nothing is chosen, as nobody asked for it
        if flag.kind != "switch":
            words.append((f"{_bare(flag.option)} {_shown(flag, value)}", changed))
        elif value or changed:
            (option,) = spelled(flag, value)
            if option == flag.option:
                words.append((_bare(option), changed))
    return words


def is_changed(flag: Flag, settings: Settings) -> bool:
    """Whether a flag differs from its default; one that a profile fills, whether it was given."""
    if isinstance(flag.default, FromProfile):
        return settings.origin[flag.id] == flag.option
    return bool(settings.values[flag.id] != flag.default)


def _idle(flags: FlagSet, flag: Flag, settings: Settings) -> bool:
    """Whether a flag has no meaning beside the others: it would be refused if it were given."""
    try:
        flags.refuse_conflicts(settings, {flag.id: settings.values[flag.id]})
    except InputProblem:
        return True
    return False


def _bare(option: str) -> str:
    return option.removeprefix("--")


def _shown(flag: Flag, value: Any) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    text = spelled(flag, value)[1]
    short = {name: letter for letter, name in flag.short.items()}
    return ",".join(short.get(word, word) for word in text.split(","))


def quantities(report: Report) -> dict[str, dict[str, Any]]:
    """Every quantity by id: title, unit and value (one for each item where it has several)."""
    result: dict[str, dict[str, Any]] = {}
    for formula in report.prepared.rules.formulas.values():
        if formula.per is None:
            if formula.id not in report:
                continue
            value: Any = _plain(report[formula.id])
        else:
            value = {
                str(item.get("id", position)): _plain(report.run.value_at(formula.id, item))
                for position, item in enumerate(report.run.items(formula.per))
            }
        result[formula.id] = {
            "title": formula.title,
            "unit": formula.unit.text,
            "value": value,
        }
    return result


def _plain(value: Any) -> Any:
    if isinstance(value, Fraction):
        return value.numerator if value.denominator == 1 else float(value)
    return value


def repeated(report: Report, request: Request, changes: Mapping[str, Any]) -> list[str] | None:
    """
    The words of the command that was typed, with flags changed.

    A change that only restores what would hold anyway drops the flag. None where no command line
    leads to the changed settings.
    """
    flags = report.prepared.rules.flags
    changes = {n: flags.check(flags.flags[n], value) for n, value in changes.items()}
    wanted = {**report.prepared.settings.values, **changes}
    chosen = {n: v for n, v in request.flags.items() if n not in changes}
    for name, value in changes.items():
        if _resolved(flags, chosen).get(name) != value:
            chosen[name] = value
    found = _resolved(flags, chosen)
    if any(found.get(n) != v for n, v in wanted.items() if n in changes or not _left(report, n)):
        return None
    mode = report.prepared.rules.mode
    words = ["fitcheck", *([mode.command] if mode else []), request.model]
    words += [s.option for s in flags.shorthands.values() if chosen.get(s.id)]
    for flag in flags.flags.values():
        if flag.id in chosen:
            words += spelled(flag, wanted[flag.id])
    return words + other_words(request.others)


def _left(report: Report, name: str) -> bool:
    """Whether a flag was left to a profile or the checkpoint, as a repeated command does too."""
    flags, origin = report.prepared.rules.flags, report.prepared.settings.origin[name]
    typed = {flags.flags[name].option, *(short.option for short in flags.shorthands.values())}
    return origin not in {"default", *typed}


def _resolved(flags: FlagSet, chosen: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        return flags.resolve(chosen).values
    except FitcheckError:
        return {}


def other_words(others: Mapping[str, Any]) -> list[str]:
    """The options beside the training flags as they were typed."""
    words: list[str] = []
    for name, value in others.items():
        for one in value if isinstance(value, tuple) else (value,):
            words += [f"--{name.replace('_', '-')}", str(one)]
    return words


def command_lines(words: list[str], width: int) -> list[str]:
    """A command that can be pasted, broken before options where it is wider than `width`."""
    parts: list[str] = []
    for word in words:
        quoted = shlex.quote(word)
        if parts and not word.startswith("--") and parts[-1].startswith("--"):
            parts[-1] += f" {quoted}"
        else:
            parts.append(quoted)
    lines = [parts[0]]
    for part in parts[1:]:
        if len(lines[-1]) + len(part) + 3 <= width:
            lines[-1] += f" {part}"
        else:
            lines[-1] += " \\"
            lines.append(f"    {part}")
    return lines
