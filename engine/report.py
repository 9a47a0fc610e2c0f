"""The answer: exact bytes, verdict, caveats and evidence of one estimate, frozen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from .architecture import Model
from .cards import Card
from .errors import FitcheckError, Refusal
from .evaluation import CURRENT, NO_LOOP, EvaluationError, Loop
from .flags import Settings
from .formula import Formula, Limit
from .grades import Grade, Grader
from .record import record, replace
from .rules import Rules, Status
from .run import Facts, Run
from .spelling import opposite

if TYPE_CHECKING:
    from .pictures import AnyPicture


@record(identity=True)
class Prepared:
    """Everything resolved, nothing computed: rules, flags, card and canonical model."""

    rules: Rules
    settings: Settings
    card: Card
    model: Model
    told: tuple[str, ...] = ()  # what was asked for and is not priced

    def unsettled(self) -> tuple[str, ...]:
        """
        What keeps a run from being called safe: drafts, overlays, unverified architectures, and
        limits that say so.
        """
        rules = self.rules
        found = [f"changed rules in {folder}" for folder in rules.overlays]
        changed = [f.source.path for f in rules.formulas.values() if f.overlay]
        changed += [p.source.path for ps in rules.profiles.values() for p in ps if p.overlay]
        if rules.overlays:
            from .loading import changed_families

            changed += changed_families(rules.roots)
        found += [f"changed file {path}" for path in changed]
        if self.card.status != "stable":
            found.append(f"the card file {self.card.id} is a draft")
        if not self.model.verified:
            found.append(f"model_type {self.model.model_type} is not verified")
        found += self.model.absent
        found += self.told
        found += [f"{path} is a draft" for path in self.model.drafts]
        found += [
            f"{f.source.path} is a draft" for f in rules.formulas.values() if f.status != "stable"
        ]
        if rules.mode is not None and rules.mode.formula.status != "stable":
            found.append(f"{rules.mode.formula.source.path} is a draft")
        probe = self.run_with(())
        for kind in rules.profiles:
            profile = probe.profile(kind)[0]
            if profile.status != "stable":
                found.append(f"{profile.source.path} is a draft")
        found += [f"{formula.title}: {limit.id}" for formula, limit in capped(probe)]
        return tuple(found)

    def run_with(self, unsettled: Sequence[str]) -> Run:
        """A run over these facts."""
        model = {
            **self.model.fields,
            **self.model.stored,
            "verified": self.model.verified and not self.model.warnings,
            "counted": self.model.counted_parameters is not None,
            "counted_parameters": self.model.counted_parameters,
        }
        records = {"model": model, "card": self.card.facts(), "run": {"unsettled": bool(unsettled)}}
        phases = [{"id": name, "title": says} for name, says in self.rules.phases.items()]
        return Run(
            self.rules, Facts(self.settings, records, {**self.model.lists, "phases": phases})
        )

    def changed(self, **values: Any) -> Prepared:
        """The same with other flag values (not checked for conflicts)."""
        return replace(self, settings=self.settings.changed(**values))


@record
class Component:
    """One line of the table."""

    id: str
    title: str
    bytes: int
    phases: tuple[str, ...]
    case: str
    says: str
    grade: Grade
    shown: bool = True  # whether the table has its line


@record
class Caveat:
    """A limit that holds for this run."""

    formula: str
    id: str
    level: str
    direction: str
    says: str

    @property
    def warns(self) -> bool:
        """Whether a job may want to branch on it: what is told and may be too low does so too."""
        return self.level == "warn" or (self.level == "tell" and self.direction == "under")


@record(identity=True)
class Report(Mapping[str, Any]):
    """
    One estimate.

    As a mapping it holds every computed quantity by its id, exactly (bytes are integers):
    `report["total"]`; the same ids are attributes. `components` are the lines of the table,
    `phases` the bytes that are live in each phase.
    """

    prepared: Prepared
    run: Run
    status: str
    title: str
    exit_code: int
    safe: bool
    style: str
    reasons: tuple[str, ...]
    unsettled: tuple[str, ...]
    components: tuple[Component, ...]
    phases: Mapping[str, int]
    caveats: tuple[Caveat, ...]

    def __getitem__(self, name: str) -> Any:
        formula = self.prepared.rules.formulas.get(name)
        if formula is None or not self._has(formula):
            raise KeyError(name)
        return self.run.value(name)

    def _has(self, formula: Formula) -> bool:
        """Whether a quantity has one value here: without adapters there is no largest rank."""
        return formula.per is None and not without_meaning(self.run, formula)

    __hash__ = object.__hash__
    __eq__ = object.__eq__

    def __repr__(self) -> str:
        return f"<Report {self}: {self.status}>"

    def __reduce__(self) -> Any:
        prepared = self.prepared
        card = prepared.card
        memory = None if card.listed else card.total >> 20
        name = None if card.id == "custom" else card.id
        mode = prepared.rules.mode
        parts = (
            *(self.overlays, prepared.settings, name, memory, prepared.model, mode and mode.id),
            prepared.told,
        )
        if card.here:  # the machine where it is read again has another card, or other free memory
            kept = replace(card, evidence={}, mark=None, here=dict(card.here))
            return rebuilt, (*parts, kept)
        return rebuilt, parts  # the rules hold functions, so they are read again

    def __iter__(self) -> Iterator[str]:
        return (n for n, f in self.prepared.rules.formulas.items() if self._has(f))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"the report has no quantity `{name}`") from None

    @property
    def warnings(self) -> tuple[str, ...]:
        """Caveats that a job may want to branch on, among them all that say it may be too low."""
        told = (c.says for c in self.caveats if c.warns)
        model = self.prepared.model
        known = (*model.warnings, *map(without_class, model.absent), *self.prepared.told)
        return (*known, *told, *self._stray)

    @cached_property
    def _stray(self) -> tuple[str, ...]:
        if not self.overlays:
            return ()
        from .stray_files import not_read, says

        return tuple(map(says, not_read(self.overlays)))

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a person should be told once, beside the answer."""
        told = (c.says for c in self.caveats if c.level == "tell" and not c.warns)
        return (*self.prepared.model.remarks, *told)

    @property
    def overlays(self) -> tuple[str, ...]:
        """Folders whose rule files replaced or joined the bundled ones."""
        return self.prepared.rules.overlays

    @cached_property
    def _grader(self) -> Grader:
        return Grader(self.run)

    def grade(self, name: str) -> Grade:
        """How well a quantity is supported."""
        self.run.value(name)
        return self._grader.grade(name)

    def to_dict(self) -> dict[str, Any]:
        """The published JSON contract (see docs/json.md)."""
        from .contract import to_dict

        return to_dict(self)

    def facts(self) -> list[tuple[str, str]]:
        """What its mode says below the verdict: a label and a sentence, those that hold."""
        mode, rules = self.prepared.rules.mode, self.prepared.rules
        return [
            (fact.label, sentence(self.run, mode.formula, fact.says))
            for index, fact in enumerate(mode.facts if mode else ())
            if mode
            and rules.function(mode.formula, fact.when, ("facts", index, "when"))(self.run, NO_LOOP)
        ]

    def pictures(self, *only: str) -> tuple[AnyPicture, ...]:
        """
        What is drawn of it, all pictures or those of these ids, as exact points and stacks (see
        `pictures.py`); needs no library. Raises `InputProblem` for an unknown id.
        """
        if only not in self._pictures:
            from .pictures import pictures

            self._pictures[only] = pictures(self, only)
        return self._pictures[only]

    @cached_property
    def _pictures(self) -> dict[tuple[str, ...], tuple[AnyPicture, ...]]:
        return {}

    def explain(self) -> str:
        """Plain English: the largest component and why, and what each change would save or cost."""
        from .explain import explain

        return explain(self)

    def derive(self, component: str | None = None, format: str = "text") -> str:
        """Formula, the same with numbers, result, and where every value came from."""
        from .derivation import derive, render_derivations

        return render_derivations(derive(self, component), format)

    def __str__(self) -> str:
        return f"{self.title}: {self.prepared.model.name} on {self.prepared.card.title}"

    def _repr_html_(self) -> str:
        from .notebook import to_html

        return to_html(self)


def without_meaning(run: Run, formula: Formula) -> str:
    """Why a quantity is none in this run: a search over a flag that plays no part; else empty."""
    flags = run.rules.flags
    flag = flags.flags[formula.search.flag] if formula.search else None
    needs = flag.null_without if flag else None
    if flag is None or not needs or run.flag(needs):
        return ""
    other = flags.flags[needs]
    switch = other.option if other.inverse else opposite(other.option)
    return f"`{formula.id}` has no meaning with {switch}: {flag.option} plays no part in that run."


def rebuilt(
    overlays: tuple[str, ...],
    settings: Settings,
    gpu: str | None,
    memory: int | None,
    model: Model,
    mode: str | None = None,
    told: tuple[str, ...] = (),
    card: Card | None = None,
) -> Report:
    """A report from what pickling keeps of one; `card` is one of the machine where it was made."""
    from .api import choose_card, rules_for

    rules = rules_for(overlays, mode)
    card = choose_card(rules, gpu, memory) if card is None else card
    return build_report(Prepared(rules, settings, card, model, told))


def build_report(prepared: Prepared) -> Report:
    """Evaluate everything; raises `Refusal` where a limit says that the run is not modelled."""
    try:
        return _build_report(prepared)
    except RecursionError:
        raise FitcheckError(
            "The formulas refer to each other in a chain that is too long."
        ) from None


def _build_report(prepared: Prepared) -> Report:
    unsettled = prepared.unsettled()
    run = prepared.run_with(unsettled)
    caveats = find_caveats(run)
    refused = [c.says for c in caveats if c.level == "refuse"]
    if refused:
        raise Refusal(refused[0])
    status, reasons = verdict(run)
    grader = Grader(run)
    components = []
    for formula in prepared.rules.components:
        value = run.value(formula.id)
        if value < 0:
            raise FitcheckError(f"{formula.source.path}: `{formula.id}` comes out below zero.")
        case = run.chosen[(formula.id, 0)]
        says = sentence(run, formula, case.says)
        components.append(
            Component(
                formula.id,
                formula.title,
                value,
                formula.live,
                case.id,
                says,
                grader.grade(formula.id),
                bool(value) or not formula.quiet,
            )
        )
    return Report(
        prepared,
        run,
        status.id,
        status.title,
        status.exit_code,
        status.safe,
        status.style,
        reasons,
        unsettled,
        tuple(components),
        phase_levels(run, components),
        caveats,
    )


def phase_levels(run: Run, components: Sequence[Component]) -> dict[str, int]:
    """Bytes that are live in each phase."""
    return {
        phase: sum(c.bytes for c in components if phase in c.phases or "always" in c.phases)
        for phase in run.rules.phases
    }


def verdict(run: Run) -> tuple[Status, tuple[str, ...]]:
    """The one status that holds, with the sentences that say why."""
    rules, status = run.rules, status_of(run)
    reasons = tuple(
        sentence(run, status.formula, says)
        for i, (when, says) in enumerate(status.because)
        if rules.function(status.formula, when, ("because", i, "when"))(run, NO_LOOP)
    )
    return status, reasons


def status_of(run: Run) -> Status:
    """The one status that holds."""
    rules = run.rules
    held = [s for s in rules.statuses if rules.function(s.formula, s.when, ("when",))(run, NO_LOOP)]
    if len(held) != 1:
        names = ", ".join(s.id for s in held) or "none"
        raise FitcheckError(
            f"profiles/statuses: exactly one status has to hold, and here it is {names}."
        )
    return held[0]


def is_refused(run: Run) -> bool:
    """Whether a limit says that this run is not modelled."""
    return any(
        limit.level == "refuse" and limit_holds(run, formula, limit) is not None
        for formula in run.rules.formulas.values()
        for limit in formula.limits
    )


def find_caveats(run: Run) -> tuple[Caveat, ...]:
    """Every limit whose condition holds, refusals first."""
    found = []
    for formula in run.rules.formulas.values():
        for limit in formula.limits:
            item = limit_holds(run, formula, limit)
            if item is not None:
                found.append(
                    Caveat(
                        formula.id,
                        limit.id,
                        limit.level,
                        limit.direction,
                        sentence(run, formula, limit.says, item),
                    )
                )
    return tuple(sorted(found, key=lambda c: c.level != "refuse"))


def capped(run: Run) -> Iterator[tuple[Formula, Limit]]:
    """The limits that hold and keep a run from being called safe."""
    for formula in run.rules.formulas.values():
        for limit in formula.limits:
            if limit.caps and limit_holds(run, formula, limit) is not None:
                yield formula, limit


def limit_holds(run: Run, formula: Formula, limit: Limit) -> Loop | None:
    """The loop of the first item for which the limit holds, None where it never does."""
    loops: list[Loop] = [NO_LOOP]
    if formula.per is not None:
        loops = [{CURRENT: item} for item in run.items(formula.per)]
    if not limit.when_text:
        return loops[0]
    condition = run.rules.function(formula, limit.when_text, (*limit.path, "when"))
    try:
        return next((loop for loop in loops if condition(run, loop)), None)
    except (EvaluationError, TypeError) as error:
        place = formula.source.mark((*limit.path, "when"))
        raise FitcheckError(f"{place}: {error} in the limit `{limit.id}`.") from None


def without_class(absent: str) -> str:
    """The warning about a version that cannot build the model."""
    return f"{absent}, so nothing was checked there and no run can start. Later versions have one."


def sentence(run: Run, formula: Formula, text: str, loop: Loop = NO_LOOP) -> str:
    """A sentence of a rule file with its holes filled from this run."""
    return run.rules.sentence(formula, text).render(run, loop)
