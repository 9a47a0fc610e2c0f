"""How far today's rules are from what was measured: `python -m fitcheck.measurement.accuracy`.

Every row is estimated again with its own dimensions, exact parameter count and flags, and compared
on two tiers:

- tensors: the total without the overhead against the largest allocated memory of the step,
- process: the total against the largest reserved memory plus the CUDA context.

An error is (estimate - measured) / measured in percent: positive is too high, negative is the
direction in which a run would be called fitting and then run out of memory.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from fitcheck.engine.api import rules_for
from fitcheck.engine.architecture import resolve
from fitcheck.engine.cards import find_card
from fitcheck.engine.errors import FitcheckError
from fitcheck.engine.report import Prepared
from fitcheck.engine.rules import Rules
from fitcheck.engine.template import MIB
from fitcheck.measurement.rows import Row, read_rows

OVERHEAD = "overhead"  # the one component that is no tensor
SETS: Mapping[str, tuple[str, ...]] = {
    "calibration + repeat": ("calibration", "repeat"),
    "holdout": ("holdout",),
    "notebook": ("extra",),
}
TAINTED = ("t4-2026-09-10-notebook-D1_fullft",)  # see `caveats` in the manifest


@dataclass(frozen=True, eq=False)
class Score:
    """One row against its estimate; amounts in MiB, errors in percent of the measured value."""

    row: Row
    tensors: float
    process: float
    activations: float

    @property
    def tensors_error(self) -> float:
        return percent_off(self.tensors, self.row.measured["peak_allocated"])

    @property
    def process_error(self) -> float:
        return percent_off(self.process, self.row.measured["process"])

    @property
    def activations_error(self) -> float:
        """Against peak minus resident, optimizer and gradients, which is not read but derived."""
        return percent_off(self.activations, self.row.measured["activations"])


@dataclass(frozen=True)
class Figures:
    """Errors of a set of rows in percent: mean of the absolute ones, largest and smallest."""

    rows: int
    mean: float
    over: float
    under: float

    @property
    def worst(self) -> float:
        """The error that is furthest from zero, with its sign."""
        return max(self.over, self.under, key=abs)


@dataclass(frozen=True)
class Line:
    """Both tiers for one set, or for one group of it (kernel and storage)."""

    set: str
    group: str | None
    tensors: Figures
    process: Figures


def percent_off(estimate: float, measured: float) -> float:
    """Relative error in percent, negative where the estimate is too low."""
    return (estimate / measured - 1) * 100


def prepare_row(row: Row, rules: Rules | None = None) -> Prepared:
    """The row's flags, card and model, ready to be estimated; raises `FitcheckError`."""
    rules = rules or rules_for()
    names = rules.flags.names()
    flags = {k: v for k, v in row.run.items() if k in names}
    if row.run["lora_r"] is None:  # a full fine-tune has neither rank nor targets
        flags = {k: v for k, v in flags.items() if not k.startswith("lora_")} | {"lora": False}
    model = resolve(
        rules.architectures, row.model, row.config, row.id, row.parameters, stack=rules.stack
    )
    card = find_card(row.card, rules.folders("gpus"), rules.units)
    return Prepared(rules, rules.flags.resolve(flags), card, model)


def score(row: Row, rules: Rules | None = None) -> Score:
    """The row against an estimate with these rules (the bundled ones if None)."""
    run = prepare_row(row, rules).run_with(())
    total = run.value("total")
    return Score(
        row, (total - run.value(OVERHEAD)) / MIB, total / MIB, run.value("activations") / MIB
    )


def score_set(name: str, rules: Rules | None = None) -> list[Score]:
    """Every row of one of `SETS`, without tainted rows and second records of the same run."""
    return [
        score(row, rules)
        for row in read_rows(*SETS[name])
        if row.id not in TAINTED and "same_run_as" not in row.data["source"]
    ]


def figures(errors: Iterable[float]) -> Figures:
    """Mean absolute, largest and smallest error; raises `ValueError` on none at all."""
    found = list(errors)
    if not found:
        raise ValueError("there is no row to score")
    return Figures(len(found), sum(map(abs, found)) / len(found), max(found), min(found))


def both_tiers(set_name: str, group: str | None, scores: Sequence[Score]) -> Line:
    """One line of the table."""
    return Line(
        set_name,
        group,
        figures(s.tensors_error for s in scores),
        figures(s.process_error for s in scores),
    )


def table(rules: Rules | None = None) -> Iterator[Line]:
    """Each set, followed by its groups."""
    for name in SETS:
        scores = score_set(name, rules)
        yield both_tiers(name, None, scores)
        for group in sorted({s.row.group for s in scores}):
            yield both_tiers(name, group, [s for s in scores if s.row.group == group])


def render(lines: Iterable[Line]) -> str:
    """The table as text; errors in percent, mean of absolute values, worst over, worst under."""
    tier = f"{'mean':>8}{'over':>8}{'under':>8}"
    text = [
        f"{'':32}{'':>5} {'tensors, %':>24} {'process, %':>24}",
        f"{'set, group':32}{'rows':>5} {tier} {tier}",
    ]
    for line in lines:
        name = line.set if line.group is None else f"  {line.group}"
        cells = (
            f"{f.mean:8.2f}{f.over:+8.2f}{f.under:+8.2f}" for f in (line.tensors, line.process)
        )
        text.append(f"{name:32}{line.tensors.rows:5} {' '.join(cells)}")
    return "\n".join(text)


def render_rows(scores: Iterable[Score]) -> str:
    """One line a row: both errors in percent, and the row's id."""
    return "\n".join(f"{s.tensors_error:+8.2f}{s.process_error:+8.2f}  {s.row.id}" for s in scores)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; exit code 2 where the rules or the evidence cannot be used."""
    parser = argparse.ArgumentParser(
        prog="python -m fitcheck.measurement.accuracy", description=__doc__
    )
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--rules", action="append", default=[], metavar="DIR", help="changed rules")
    parser.add_argument("--rows", action="store_true", help="print every row too")
    options = parser.parse_args(arguments)
    try:
        rules = rules_for(options.rules)
        print(render(table(rules)))
        if options.rows:
            for name in SETS:
                print(f"\n{name}: tensors, process, row\n{render_rows(score_set(name, rules))}")
    except FitcheckError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
