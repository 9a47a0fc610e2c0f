"""A sweep: what fits at the edge, where each axis ends, and what a step along it costs."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from .advice import GPU, Advice, Row, Typed
from .advise_rules import Plan, plan_of
from .advisor_anchor import ceilings, prices
from .advisor_front import Group, groups
from .advisor_grid import Block, at, block_of, count, numpy_wanted, size_of
from .advisor_input import Asked, asked_for
from .api import choose_card, prepare
from .errors import FitcheckError, Refusal, RuleFileError
from .flags import fill
from .profile_defaults import filled
from .record import replace
from .report import Prepared, Report, build_report, status_of
from .rules import Rules
from .run import Run
from .spelling import spelled

Tell = Callable[[int, int], None]  # (points done, points in all)


def advise(
    rules: Rules,
    model: str | os.PathLike[str] | Mapping[str, Any],
    given: Mapping[str, Any],
    sweep: Mapping[str, Any],
    *,
    gpu: str | None = None,
    vram_mib: int | None = None,
    source: Any = "auto",
    folders: Sequence[str] = (),
    tell: Tell | None = None,
) -> Advice:
    """
    Sweep the axes of `formulas/advise.yaml`, and whatever else `sweep` names.

    Parameters
    ----------
    given : mapping
        Axes by the name of their list or flag (a list of numbers, or a text such as '1,2,4'), their
        bounds, and flags that are held fixed.
    sweep : mapping
        Flag, or `gpu`, to a list of values or a text; each value multiplies the grid.
    folders : sequence of str
        Overlay folders as given, which a command has to repeat.
    tell : callable, optional
        Told of progress: points done, points in all.

    Raises
    ------
    InputProblem
        A flag, a value, the card or the model cannot be used, or the sweep is too large.
    Refusal
        No combination of what is swept is modelled.
    """
    plan = plan_of(rules)
    asked = asked_for(rules, plan, given, sweep, gpu, vram_mib)
    base = prepare(
        rules,
        model,
        gpu=asked.cards[0],
        vram_mib=vram_mib,
        source=source,
        flags=asked.first,
        checkpoint=rules.advice,
    )
    text = None if isinstance(model, Mapping) else os.fspath(model)
    typed = Typed(text, asked.explicit, gpu, vram_mib, source, tuple(folders))
    walk = Walk(plan, asked, base, model, typed, tell)
    return walk.answer()


class Walk:
    """One sweep on its way."""

    def __init__(
        self,
        plan: Plan,
        asked: Asked,
        base: Prepared,
        model: Any,
        typed: Typed,
        tell: Tell | None,
    ) -> None:
        self.plan, self.asked, self.base, self.model, self.typed = plan, asked, base, model, typed
        self.rules = base.rules
        self.axes = tuple(asked.axes[name] for name in plan.flags)
        self.size = size_of(self.axes)
        self.tell, self.finished = tell, 0
        self.refusals: dict[str, int] = {}
        self.read: dict[Any, Prepared] = {self.versions(base): base}  # by versions of libraries

    def versions(self, prepared: Prepared) -> Any:
        found = self.rules.flags.versions(prepared.settings)
        return tuple((name, str(version)) for name, version in found.items())

    def answer(self) -> Advice:
        """The whole sweep; raises `FitcheckError` where nothing of it is modelled."""
        plan, asked = self.plan, self.asked
        blocks = self.blocks()
        found = groups(self.rules, plan, self.axes, blocks)
        frontier = tuple(self.row(blocks, group) for group in found)
        safest = self.safest(blocks, frontier)
        anchor = build_report(self.anchor(blocks, found))
        return Advice(
            self.rules,
            plan,
            self.typed,
            asked.axes,
            asked.others,
            blocks,
            self.size * asked.combinations,
            sum(count(block.fits) for block in blocks),
            self.refusals,
            frontier,
            safest,
            anchor,
            ceilings(plan, anchor.run),
            prices(plan, anchor.run),
            (*self.too_long(), *self.warnings(blocks, found, anchor)),
        )

    def blocks(self) -> tuple[Block, ...]:
        """The grid for every combination that is modelled."""
        total = self.size * self.asked.combinations
        arrays = numpy_wanted(total)
        found: list[Block] = []
        first: FitcheckError | None = None
        for settings, gpu in self.asked.combined():
            before = self.finished
            try:
                block = block_of(
                    self.plan,
                    self.prepared(settings, gpu),
                    self.axes,
                    (settings, gpu),
                    arrays,
                    self.done,
                )
            except RuleFileError:
                raise
            except FitcheckError as error:
                first = first or error
                self.refuse(str(error), self.size)
                self.finished = before
                self.done(self.size)
                continue
            if block.refused:
                self.refuse(self.why(block), block.refused)
            found.append(block)
        if first is not None and not found:
            raise first
        if all(block.refused == self.size for block in found):
            raise Refusal(next(iter(self.refusals)))
        return tuple(found)

    def refuse(self, says: str, points: int) -> None:
        self.refusals[says] = self.refusals.get(says, 0) + points

    def why(self, block: Block) -> str:
        """The sentence of the first point that is refused."""
        index = next(i for i, total in enumerate(block.total) if math.isnan(total))
        values = dict(zip(self.plan.flags, at(self.axes, index), strict=True))
        try:
            build_report(block.prepared.changed(**values))
        except FitcheckError as error:
            return str(error)
        return "not modelled"

    def done(self, points: int) -> None:
        self.finished += points
        if self.tell is not None:
            self.tell(self.finished, self.size * self.asked.combinations)

    def prepared(self, settings: Mapping[str, Any], gpu: str | None) -> Prepared:
        """The run that a combination starts from; raises `FitcheckError` where it is refused."""
        flags = self.asked.flags(settings)
        card = choose_card(self.rules, gpu, self.typed.vram_mib)
        chosen = filled(self.rules, self.rules.flags.resolve(flags), card.facts())
        here = replace(self.base, settings=chosen, card=card)
        key = self.versions(here)
        if key not in self.read:  # a version decides what a class builds, so it is read again
            self.read[key] = prepare(
                self.rules,
                self.model,
                gpu=gpu,
                vram_mib=self.typed.vram_mib,
                source=self.typed.source,  # type: ignore[arg-type]
                flags=flags,
                checkpoint=self.rules.advice,
            )
        return replace(here, model=self.read[key].model)

    def row(self, blocks: Sequence[Block], group: Group) -> Row:
        """A group of the frontier with exact figures."""
        first = group.first
        block, plan = blocks[first.block], self.plan
        values = dict(zip(plan.flags, first.values, strict=True))
        run = self.settled(block.prepared.changed(**values))
        places = [plan.flags.index(name) for name in plan.splits]
        return Row(
            values,
            {o.id: v for o, v in zip(plan.objectives, first.objectives, strict=True)},
            tuple(tuple(m.values[place] for place in places) for m in group.members),
            block.settings,
            block.gpu,
            block.prepared.card,
            run.value(plan.price),
            status_of(run),
        )

    def settled(self, prepared: Prepared) -> Run:
        """The run with what is not settled about it."""
        return prepared.run_with(prepared.unsettled())

    def safest(self, blocks: Sequence[Block], frontier: Sequence[Row]) -> Row | None:
        """The best row that is safe, asked for exactly."""
        if frontier and frontier[0].status.safe:
            return frontier[0]
        if not any(count(block.safe) for block in blocks):
            return None
        rows = (
            self.row(blocks, group)
            for group in groups(self.rules, self.plan, self.axes, blocks, "safe")
        )
        return next((row for row in rows if row.status.safe), None)

    def anchor(self, blocks: Sequence[Block], found: Sequence[Group]) -> Prepared:
        """The recommended point, or the smallest one that comes nearest where nothing fits."""
        if found:
            first = found[0].first
            block, values = blocks[first.block], first.values
        else:
            block, index = self.smallest(blocks)
            values = at(self.axes, index)
        return block.prepared.changed(**dict(zip(self.plan.flags, values, strict=True)))

    def smallest(self, blocks: Sequence[Block]) -> tuple[Block, int]:
        """The first point that is modelled, of the block that takes least of its card there."""
        found = []
        for block in blocks:
            index = next((i for i, t in enumerate(block.total) if not math.isnan(t)), None)
            if index is not None:
                found.append((block.total[index] / block.prepared.card.total, block, index))
        _, block, index = min(found, key=lambda entry: entry[0])
        return block, index

    def warnings(
        self, blocks: Sequence[Block], found: Sequence[Group], anchor: Report
    ) -> Iterator[str]:
        """What an estimate of the anchor tells, then what that of another combination adds."""
        plain = dict.fromkeys((*anchor.remarks, *anchor.warnings))
        yield from plain
        added: dict[str, list[str]] = {}
        best: dict[int, Group] = {}
        for group in found:
            best.setdefault(group.first.block, group)
        for number, group in best.items():
            block = blocks[number]
            values = dict(zip(self.plan.flags, group.first.values, strict=True))
            report = build_report(block.prepared.changed(**values))
            for text in dict.fromkeys((*report.remarks, *report.warnings)):
                added.setdefault(text, []).append(self.label(block))
        for text, labels in added.items():
            if text not in plain:
                more = f" and {len(labels) - 1} more" if len(labels) > 1 else ""
                yield f"{labels[0]}{more}: {text}"

    def label(self, block: Block) -> str:
        """A combination as options."""
        flags = self.rules.flags.flags
        words = [word for n, value in block.settings.items() for word in spelled(flags[n], value)]
        return " ".join([*words, *(["--gpu", block.gpu] if block.gpu else [])])

    def too_long(self) -> list[str]:
        """Warnings of values past what the model was made for."""
        found = []
        for axis in self.plan.axes:
            made = axis.made_for
            limit = self.base.model.stored.get(made.fact, 0) if made else 0
            longest = max(self.asked.axes[axis.flag])
            if made and 0 < limit < longest:
                words = {"model": self.base.model.name, "limit": limit, "value": longest}
                found.append(fill(made.says, words))
        return found


__all__ = ["GPU", "Advice", "advise"]
