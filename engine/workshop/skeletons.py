"""New rule files that lint clean as drafts, to be filled in from top to bottom."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable

from ..errors import InputProblem
from ..expression import RESERVED
from ..formula import Symbol
from ..loading import files_of
from ..record import record
from ..rules import Rules
from ..scope import suggest

_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "skeletons")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,60}")
_STEM = re.compile(r"[a-z0-9][a-z0-9._-]{0,60}")


@record
class Skeleton:
    """A new file: its place, such as `formulas/x.yaml`, its text, and what to do next."""

    place: str
    text: str
    next: str


def skeleton(rules: Rules, kind: str, name: str) -> Skeleton:
    """
    The skeleton of a `component`, `quantity`, `card`, or of a profile.

    Profiles are asked for by their kind (`overhead my-card`) or as `profile overhead/my-card`.

    Raises
    ------
    InputProblem
        The kind is unknown or has no skeleton, or the name is malformed or taken.
    """
    wanted = kind.casefold()
    if wanted == "profile":
        wanted, _, name = name.rpartition("/")
        if not wanted:
            kinds = " or ".join(f"{k}/{name}" for k in rules.profiles)
            raise InputProblem(f"Say what the profile is for: {kinds}.")
    if wanted in rules.profiles:
        return _profile(rules, wanted, name)
    makers: dict[str, Callable[[Rules, str], Skeleton]] = {
        "component": lambda r, n: _formula(r, "component", n),
        "quantity": lambda r, n: _formula(r, "quantity", n),
        "card": _card,
        "gpu": _card,
    }
    if wanted in makers:
        return makers[wanted](rules, name)
    raise InputProblem(_refusal(rules, kind, wanted))


def kinds(rules: Rules) -> list[str]:
    """What `skeleton` can make."""
    return ["component", "quantity", "card", *rules.profiles]


def _refusal(rules: Rules, kind: str, wanted: str) -> str:
    if wanted in ("status", "statuses"):
        return (
            "A new status takes its runs from the others, because exactly one holds for every run: "
            "`fitcheck rules eject DIR` with the ids of all statuses copies them to be changed."
        )
    if wanted in ("architecture", "architectures"):
        return (
            "An architecture is made from a config.json: "
            "`fitcheck rules new architecture --from config.json`."
        )
    if wanted in ("model", "models"):
        return (
            "Models are read from the Hub, a config.json or the bundled catalogue, and not from "
            "rule folders."
        )
    known = kinds(rules)
    return (
        f"There is no skeleton for `{kind}`.{suggest(wanted, known)} There are {', '.join(known)}."
    )


def _formula(rules: Rules, kind: str, name: str) -> Skeleton:
    _check(name, _NAME, "letters, digits and _, beginning with a letter")
    if name in RESERVED:
        raise InputProblem(f"`{name}` is a word of the formula language; use another id.")
    _free(rules, "formulas", name)
    symbol = _symbol(rules)
    assert symbol.unit is not None
    text = _filled(
        kind,
        {
            "id": name,
            "title": _title(name),
            "phases": ", ".join(rules.phases),
            "symbol": symbol.name,
            "unit": symbol.unit.text,
            "entry": _entry(symbol),
        },
    )
    then = "Change the expression and its example; `fitcheck rules graph` shows who could read it."
    if kind == "component":
        then = "It is in every total at once. Change the expression and its example."
    return Skeleton(f"formulas/{name}.yaml", text, then)


def _symbol(rules: Rules) -> Symbol:
    """A symbol that formulas read from a whole-number flag, to show how one is declared."""
    for flag in rules.flags.flags.values():
        for formula in rules.formulas.values() if flag.kind == "integer" else ():
            for symbol in formula.symbols.values():
                if symbol.source == f"flags.{flag.id}" and symbol.unit and symbol.unit.text != "1":
                    return symbol
    raise InputProblem("No formula reads a whole-number flag, so there is nothing to begin with.")


def _entry(symbol: Symbol) -> str:
    unit = symbol.unit.text if symbol.unit else ""
    low = f"min: {symbol.low}, " if symbol.low is not None else ""
    whole = "integer: true, " if symbol.integer else ""
    meaning = json.dumps(symbol.meaning, ensure_ascii=False)
    return f"{{from: {symbol.source}, unit: {unit}, {low}{whole}meaning: {meaning}}}"


def _card(rules: Rules, name: str) -> Skeleton:
    _check(name, _STEM, "lower-case letters, digits, dot, _ and -")
    _free(rules, "gpus", name)
    text = _filled("card", {"id": name, "title": _title(name)})
    return Skeleton(f"gpus/{name}.yaml", text, "Give both figures, and what they rest on.")


def _profile(rules: Rules, kind: str, name: str) -> Skeleton:
    """A profile that begins as a copy of the fallback and matches no card yet."""
    _check(name, _STEM, "lower-case letters, digits, dot, _ and -")
    folder = f"profiles/{kind}"
    _free(rules, folder, name)
    fallback = next((p for p in rules.profiles[kind] if not p.matches), None)
    if fallback is None:
        raise InputProblem(f"{folder} has no fallback to copy.")
    text = fallback.source.text
    for key, value in {
        "id": name,
        "title": _title(name),
        "status": "draft                 # a draft lowers every verdict that rests on it",
        "matches": f"{{card: {name}}}    # flags, card or card.FIELD with the value it must have",
    }.items():
        line = re.compile(rf"^{key}:.*$", re.MULTILINE)
        text = line.sub(f"{key}: {value}", text)  # no backslash can stand in these values
    then = f"Say under `matches` which runs it is for; the values are those of {fallback.id}."
    return Skeleton(f"{folder}/{name}.yaml", text, then)


def _check(name: str, form: re.Pattern[str], words: str) -> None:
    if not form.fullmatch(name):
        raise InputProblem(f"`{name[:60]}` cannot be an id: use {words}.")


def _free(rules: Rules, folder: str, name: str) -> None:
    files = files_of(rules.roots, folder)
    taken = {stem.casefold(): said for stem, (_, said, _) in files.items()}
    said = taken.get(name.casefold())
    if said is not None:
        raise InputProblem(
            f"{said} is there already: `fitcheck rules eject DIR {name}` copies it to be changed."
        )


def _title(name: str) -> str:
    words = name.replace("_", " ").replace("-", " ").strip()
    return words[:1].upper() + words[1:]


def _filled(kind: str, values: dict[str, str]) -> str:
    with open(os.path.join(_FOLDER, f"{kind}.yaml"), encoding="utf-8") as handle:
        text = handle.read()
    return re.sub(r"@([a-z]+)", lambda match: values[match[1]], text)
