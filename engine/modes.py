"""Modes: further kinds of runs beside training, each a folder below `formulas/` of its own.

The files of a mode read the shared quantities of `formulas/` under their ids; its statuses and
profiles lie in folders of its name below those of training (`profiles/statuses/MODE/`). Nothing of
a mode is read before somebody asks for it.
"""

from __future__ import annotations

import os
from functools import lru_cache
from typing import TYPE_CHECKING

from .beside import Beside
from .errors import InputProblem
from .paths import bundled_root, rule_files
from .plot_rules import Drawn, read_plots
from .record import record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .formula import Formula
    from .units import Units
    from .yaml_source import Source

FOLDER, HEAD = "formulas", "mode"  # formulas/MODE/mode.yaml makes a folder a mode
NAMES = ("id", "title", "status", "reads", "symbols")  # keys of a mode file that a formula has too


@record
class Fact:
    """One line below the verdict: shown where `when` holds."""

    label: str
    when: str
    says: str


@record
class ModeTable:
    """A table with one line for each item of a list, shown where `when` holds."""

    id: str  # its key in the JSON
    title: str
    per: str
    when: str
    columns: Mapping[str, str]  # heading to quantity


@record(identity=True)
class Mode:
    """What `mode.yaml` says beside flags and phases; conditions are text over `formula`'s names."""

    id: str
    title: str
    command: str  # the subcommand that asks for it
    about: str
    block: str  # key of the JSON that holds the flags
    facts: tuple[Fact, ...]
    fit: tuple[str, ...]  # quantities that --fit shows for every card
    plots: tuple[Drawn, ...]  # pictures that --plot draws
    tables: tuple[ModeTable, ...]
    beside: Beside | None  # a second model
    examples: tuple[str, ...]
    formula: Formula  # the names that facts may use


def read_mode(source: Source, units: Units, overlay: bool) -> Mode:
    """Read `mode.yaml`; raises `RuleFileError`."""
    from .formula import spelled
    from .formula_reader import FormulaReader

    data = source.data
    reader = FormulaReader(source, units, overlay)
    reader.data = {key: data[key] for key in NAMES if key in data}
    facts = [
        Fact(str(f["label"]), spelled(f.get("when", True)), str(f["says"]))
        for f in data.get("facts", ())
    ]
    return Mode(
        str(data["id"]),
        str(data["title"]),
        str(data["command"]),
        str(data["about"]),
        str(data["block"]),
        tuple(facts),
        tuple(data.get("fit", ())),
        read_plots(data.get("plots", ())),
        tuple(
            ModeTable(
                str(t["id"]),
                str(t["title"]),
                str(t["per"]),
                spelled(t.get("when", True)),
                dict(t["columns"]),
            )
            for t in data.get("tables", ())
        ),
        Beside(str(data["beside"]["flag"]), dict(data["beside"]["facts"]))
        if "beside" in data
        else None,
        tuple(data.get("examples", ())),
        reader.read(),
    )


def modes_of(roots: Sequence[tuple[str, bool]]) -> tuple[str, ...]:
    """The modes of any root, by name."""
    found: set[str] = set()
    for root, _ in roots:
        found.update(_modes_below(os.path.join(root, FOLDER)))
    return tuple(sorted(found))


def _modes_below(folder: str) -> list[str]:
    if not os.path.isdir(folder):
        return []
    with os.scandir(folder) as entries:
        names = [entry.name for entry in entries if entry.name[0] != "." and entry.is_dir()]
    return [n for n in names if os.path.isfile(os.path.join(folder, n, f"{HEAD}.yaml"))]


def commands(roots: Sequence[tuple[str, bool]]) -> dict[str, str]:
    """Subcommand to mode; of a mode file whose command cannot be read there is none."""
    from .data_cache import read_source
    from .errors import RuleFileError

    found: dict[str, str] = {}
    for root, overlay in roots:
        for name in _modes_below(os.path.join(root, FOLDER)):
            place = f"{FOLDER}/{name}/{HEAD}.yaml"
            path = os.path.join(root, *place.split("/"))
            try:
                data = read_source(path, path if overlay else place, overlay).data
                found.setdefault(str(data["command"]), name)  # none can take that of another
            except (RuleFileError, KeyError, TypeError):
                continue  # said where the mode is read
    return found


def bundled_commands() -> dict[str, str]:
    """`commands` of the bundled folder, without reading it where a wheel knows them."""
    try:
        from . import _compiled_modes  # type: ignore[attr-defined]  # only in a wheel
    except ImportError:
        return commands([(bundled_root(), False)])
    found: dict[str, str] = _compiled_modes.COMMANDS
    return found


def refuse_unknown(roots: Sequence[tuple[str, bool]], mode: str) -> None:
    """Raise `InputProblem` for a mode that has no folder."""
    known = modes_of(roots)
    if mode not in known:
        from .suggest import suggest

        names = ", ".join(known)
        raise InputProblem(f"There is no mode `{mode}`; there is {names}.{suggest(mode, known)}")


@lru_cache(maxsize=1)
def homes() -> dict[str, str]:
    """
    Each quantity of a bundled mode to its folder, `formulas/MODE`.

    A flat overlay folder has no folders, so its files belong where the bundled file of that name
    lies.
    """
    from .loading import SPECIAL

    root = bundled_root()
    return {
        stem: f"{FOLDER}/{mode}"
        for mode in modes_of([(root, False)])
        for stem, _ in rule_files(os.path.join(root, FOLDER, mode))
        if stem not in (*SPECIAL, HEAD)
    }
