"""The reference configurations, and every number of the rules for them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from ..api import prepare
from ..errors import FitcheckError, RuleFileError
from ..record import record
from ..report import find_caveats, verdict
from ..rules import Rules
from ..run import Run
from ..yaml_source import read

_FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "reference.yaml")


@record
class Configuration:
    """One run to compare rules on; its model is in the catalogue, so no network is needed."""

    id: str
    title: str
    model: str
    gpu: str | None
    vram_mib: int | None
    flags: Mapping[str, Any]
    mode: str | None = None

    def rules(self, rules: Rules) -> Rules:
        """The rules it is evaluated with: those of its mode."""
        return rules.modes[self.mode] if self.mode else rules


@record
class Outcome:
    """
    What rules say about one configuration.

    `values` maps a quantity, or `quantity[item]`, to its exact value, and `cases` holds the
    (quantity, case) pairs that were used. The verdict disregards drafts and overlays, which cap
    every verdict at uncertain and would hide what the numbers say. `refused` is the sentence with
    which the run is refused or fails; everything else is empty then.
    """

    verdict: str
    values: Mapping[str, Any]
    cases: frozenset[tuple[str, str]]
    refused: str = ""


@lru_cache(maxsize=1)
def configurations() -> tuple[Configuration, ...]:
    """The configurations of `reference.yaml`, in its order."""
    data = read(_FILE, "engine/workshop/reference.yaml").data
    return tuple(
        Configuration(
            str(entry["id"]),
            str(entry["title"]),
            str(entry["model"]),
            entry.get("gpu"),
            entry.get("vram_mib"),
            dict(entry["flags"]),
            entry.get("mode"),
        )
        for entry in data["configurations"]
    )


def evaluate(rules: Rules, configuration: Configuration) -> Outcome:
    """Every quantity of the rules for one configuration."""
    try:
        rules = configuration.rules(rules)
        prepared = prepare(
            rules,
            configuration.model,
            gpu=configuration.gpu,
            vram_mib=configuration.vram_mib,
            source="catalogue",
            flags=configuration.flags,
        )
        run = prepared.run_with(())
        refused = [c.says for c in find_caveats(run) if c.level == "refuse"]
        if refused:
            return Outcome("", {}, frozenset(), refused[0])
        values = all_values(run)
        status, _ = verdict(run)
    except RuleFileError as error:
        return Outcome("", {}, frozenset(), error.problems[0].message)
    except FitcheckError as error:
        return Outcome("", {}, frozenset(), str(error))
    cases = frozenset((name, case.id) for (name, _), case in run.chosen.items())
    return Outcome(status.title, values, cases)


def all_values(run: Run) -> dict[str, Any]:
    """Every quantity, components first; of a quantity with items, one value for each."""
    rules = run.rules
    components = [f.id for f in rules.components]
    values: dict[str, Any] = {}
    for name in (*components, *(n for n in rules.formulas if n not in components)):
        per = rules.per(name)
        if per is None:
            values[name] = run.value(name)
        else:
            for position, item in enumerate(run.items(per), 1):
                values[f"{name}[{item.get('id', position)}]"] = run.value_at(name, item)
    return values
