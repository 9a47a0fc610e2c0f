"""The answer of a sweep: records, the command of a row, and the published JSON."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from .advise_rules import Plan
from .advisor_grid import Block
from .cards import Card
from .contract import converted, flags_block, model_block, plain, put, version, whole_mib
from .json_kinds import schema_id
from .record import record
from .report import Report
from .rules import Rules, Status
from .spelling import spelled

GPU = "gpu"  # the name under which cards are swept


@record
class Typed:
    """What was asked for, as a command has to repeat it; `model` is None for a parsed config."""

    model: str | None
    flags: Mapping[str, Any]  # flags and shorthands that were given, by id
    gpu: str | None
    vram_mib: int | None
    source: str
    rules: tuple[str, ...]


@record
class Row:
    """
    One edge of what fits. `values` are the axes at the canonical split, `settings` and `gpu` what
    else was swept; `splits` are all values of the split axes at the same cost. `total` is exact.
    """

    values: Mapping[str, int]
    objectives: Mapping[str, int]
    splits: tuple[tuple[int, ...], ...]
    settings: Mapping[str, Any]
    gpu: str | None
    card: Card
    total: int
    status: Status


@record
class Limit:
    """Where an axis ends with all else as at the anchor; `total` bytes there, or at 1 for 0."""

    axis: str
    title: str
    value: int
    total: int
    capped: bool


@record
class Price:
    """What one step along an axis costs at the anchor; negative bytes are saved."""

    axis: str
    title: str
    before: int
    after: int
    delta: int


@record(identity=True)
class Advice:
    """
    One sweep. `axes` are the swept values by flag, `others` those of further flags and cards;
    `blocks` hold every point. `refusals` says how many points are not modelled, and why.
    """

    rules: Rules
    plan: Plan
    typed: Typed
    axes: Mapping[str, tuple[int, ...]]
    others: Mapping[str, tuple[Any, ...]]
    blocks: tuple[Block, ...]
    grid_size: int
    fitting_count: int
    refusals: Mapping[str, int]
    frontier: tuple[Row, ...]
    safest: Row | None  # the best row that is safe
    anchor: Report
    ceilings: tuple[Limit, ...]
    prices: tuple[Price, ...]
    warnings: tuple[str, ...]

    @property
    def recommended(self) -> Row | None:
        """The head of the frontier."""
        return self.frontier[0] if self.frontier else None

    @property
    def fits(self) -> bool:
        """Whether any point fits by its point estimate."""
        return self.fitting_count > 0

    @property
    def exit_code(self) -> int:
        """0 where a point fits, else 1."""
        return 0 if self.fits else 1

    def words(self, row: Row) -> list[str] | None:
        """The command line that estimates a row; None where the model was no text."""
        typed, flags = self.typed, self.rules.flags
        if typed.model is None:
            return None
        chosen = {**typed.flags, **row.settings, **row.values}
        words = ["fitcheck", typed.model]
        words += [s.option for s in flags.shorthands.values() if chosen.get(s.id)]
        for flag in flags.flags.values():
            if flag.id in chosen:
                words += spelled(flag, chosen[flag.id])
        others: list[tuple[str, Any]] = [("--gpu", row.gpu), ("--vram-mib", typed.vram_mib)]
        others += [("--source", typed.source if typed.source != "auto" else None)]
        others += [("--rules", folder) for folder in typed.rules]
        for option, value in others:
            words += [option, str(value)] if value is not None else []
        return words

    def command(self, row: Row) -> str | None:
        """The same as a text that a shell takes."""
        words = self.words(row)
        return None if words is None else shlex.join(words)

    def to_dict(self) -> dict[str, Any]:
        """The JSON contract: keys are added in later versions, never renamed or removed."""
        axes = {axis.json: list(self.axes[axis.flag]) for axis in self.plan.axes}
        swept = {n: [plain(v) for v in vs] for n, vs in self.others.items() if n != GPU}
        head = heads(self.anchor)
        verdict = {**head.pop("verdict"), "fits": self.fits}
        return {
            "schema": schema_id("advise"),
            "fitcheck_version": version(),
            **head,
            "sweep": {**axes, "settings": swept, "gpus": list(self.others.get(GPU, ()))},
            "anchor": flags_block(self.anchor.prepared),
            "grid_size": self.grid_size,
            "fitting_count": self.fitting_count,
            "refused_count": sum(self.refusals.values()),
            "frontier": [self.row(row) for row in self.frontier],
            "recommended": self.row(self.recommended),
            "recommended_safe": self.row(self.safest),
            "ceilings": [
                {
                    "axis": limit.axis,
                    "max_value": limit.value,
                    "total_mib_at_max": mib(limit.total),
                    "capped": limit.capped,
                }
                for limit in self.ceilings
            ],
            "prices": [
                {
                    "axis": price.axis,
                    "from_value": price.before,
                    "to_value": price.after,
                    "delta_mib": mib(price.delta),
                }
                for price in self.prices
            ],
            "verdict": verdict,
            "refusals": [{"points": n, "reason": says} for says, n in self.refusals.items()],
            "warnings": list(self.warnings),
            "overlays": list(self.rules.overlays),
        }

    def row(self, row: Row | None) -> dict[str, Any] | None:
        """A row of the frontier in the JSON contract."""
        if row is None:
            return None
        flags = self.rules.flags.flags
        return {
            **{flags[name].json or name: value for name, value in row.values.items()},
            **row.objectives,
            "total_mib": mib(row.total),
            "fits": True,
            "status": row.status.id,
            "safe": row.status.safe,
            "settings": {name: plain(value) for name, value in row.settings.items()},
            "gpu": row.card.id,
            "command": self.command(row),
            "equivalent_splits": [list(split) for split in row.splits],
        }


def mib(value: int | Fraction) -> float:
    """Bytes as MiB with two decimals."""
    return float(converted(value, "MiB"))


def heads(report: Report) -> dict[str, Any]:
    """The blocks of model and card as an estimate has them, and its verdict's facts of the card."""
    card = report.prepared.card
    result: dict[str, Any] = {
        "model": model_block(report.prepared),
        "gpu": {
            "name": card.title,
            "vram_mib": whole_mib(card.total),
            "usable_mib": None,
            "key": card.id,
        },
        "verdict": {},
    }
    for formula in report.prepared.rules.formulas.values():
        for key, unit in formula.json.items():
            of_head = key.startswith(("model.", "gpu.", "verdict.gpu_"))
            if formula.per is None and of_head:
                put(result, key, converted(report.run.value(formula.id), unit))
    return result
