"""`fitcheck advise MODEL`: a sweep, as a screen or JSON."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from fitcheck.cli import options
from fitcheck.cli.estimate import EstimateCommand
from fitcheck.cli.output import say, write, write_error
from fitcheck.engine.advise_rules import Axis, Plan, plan_of
from fitcheck.engine.api import rules_for
from fitcheck.engine.errors import InputProblem

if TYPE_CHECKING:
    from fitcheck.engine.advice import Advice
    from fitcheck.engine.rules import Rules

SWEEP = "Sweep axes"
ABOUT = """\
Say what fits at the edge of a GPU, where each axis ends, and what a step along it costs.

Every combination of the swept values is estimated. MODEL is given as for `fitcheck MODEL`. A LIST
is written 1,2,4 or as a range with its step: 512..8192:512.
"""
EXAMPLES = (
    "fitcheck advise meta-llama/Llama-3.1-8B --qlora --flash-attn --seq-lens 1024,2048,4096",
    "fitcheck advise Qwen/Qwen2.5-7B --seq-lens 2048 --sweep quant=none,nf4 --sweep gpu=t4,4090",
    "fitcheck advise ./config.json --seq-lens 512..4096:512 --max-seq-len 4096 --qlora --json",
)
TAKEN_OVER = ("gpu", "vram_mib", "config", "source", "stack", "rules", "as_json", "no_color")
USAGE = 2
PATIENCE = 1.0  # seconds before progress is shown
EVERY = 0.2  # seconds between two lines of it


class NumberList(click.ParamType):  # type: ignore[type-arg]
    """Whole numbers with commas or as ranges; the engine reads them and says what is wrong."""

    name = "list"

    def get_missing_message(
        self, param: click.Parameter, ctx: click.Context | None = None
    ) -> str | None:
        """What to write, below click's sentence about an option that is required."""
        return f"Give values such as {param.opts[0]} 1024,2048,4096."


class AdviseCommand(EstimateCommand):
    """The sweep; its fixed flags are those of the estimate."""

    def __init__(self, rules: Rules, overlays: Sequence[str]) -> None:
        self.rules, self.overlays, self.plan = rules, tuple(overlays), plan_of(rules)
        own = options.own_options(rules.flags.default_card)
        click.Command.__init__(
            self,
            "advise",
            params=[
                options.model_argument(),
                *axis_options(self.plan),
                *fixed_options(rules, self.plan),
                *(option for option in own if option.name in TAKEN_OVER),
                options.plot_options()[0],
            ],
            help=ABOUT,
            options_metavar="[OPTIONS]",
        )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args and not ctx.resilient_parsing and not self.left_out:
            write_error(ctx.get_help())
            ctx.exit(USAGE)
        return click.Command.parse_args(self, ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        needed = [f"{axis.option} LIST" for axis in self.plan.axes if not axis.default]
        return self.usable(["MODEL", *needed, "[OPTIONS]"])

    @property
    def ranges(self) -> tuple[str, ...]:
        """The parameters that are ranges to sweep, which a session keeps apart from flags."""
        return tuple(p.name for p in axis_options(self.plan) if p.name)

    def not_kept(self, kept: Mapping[str, Any]) -> list[str]:
        """The flags of a session that a sweep does without."""
        return not_fixed(self.rules, self.plan, kept)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Exit status"):
            formatter.write_dl(
                [
                    ("0", "at least one point of the sweep fits, by its point estimate"),
                    ("1", "none fits"),
                    ("2", "the sweep could not be run"),
                ]
            )
        with formatter.section("Examples"):
            for line in EXAMPLES:
                formatter.write(f"  {line}\n")

    def invoke(self, ctx: click.Context) -> int:
        return run(ctx, self.rules, self.plan)


def build(overlays: Sequence[str]) -> AdviseCommand:
    """The command for the bundled rules with overlay folders on top."""
    return AdviseCommand(rules_for(overlays), overlays)


def axis_options(plan: Plan) -> list[options.Option]:
    """A list option for each axis, its bound, and --sweep for everything else."""
    found = []
    for axis in plan.axes:
        found.append(axis_option(axis))
        if axis.most is not None:
            found.append(
                options.Option(
                    [axis.most.json, axis.most.option],
                    SWEEP,
                    type=options.Whole(),
                    metavar="INT",
                    help=axis.most.help,
                )
            )
    found.append(
        options.Option(
            ["sweep", "--sweep"],
            SWEEP,
            multiple=True,
            metavar="NAME=VALUES",
            help="Sweep another option too: optimizer=adamw,adam8bit, grad-checkpoint=on,off or "
            "gpu=t4,4090; lists with slashes: lora-targets=standard/full/q,v. May be repeated.",
        )
    )
    return found


def axis_option(axis: Axis) -> options.Option:
    """The list option of an axis; one without a default is required."""
    default = ",".join(map(str, axis.default))
    ending = f" [default: {default}]" if default else ""  # click says what is required
    return options.Option(
        [axis.json, axis.option],
        SWEEP,
        type=NumberList(),
        required=not default,
        metavar="LIST",
        help=f"{axis.help}{ending}",
    )


def fixed_options(rules: Rules, plan: Plan) -> list[options.Option]:
    """The options of an estimate; those with no place in a sweep are read, so that it says why."""
    found = options.flag_options(rules.flags)
    for option in found:
        option.hidden = option.name in plan.flags or option.name in plan.held
    return found


def not_fixed(rules: Rules, plan: Plan, kept: Mapping[str, Any]) -> list[str]:
    """
    The kept flags that a sweep does without: its axes, and those that have no place in it, unless
    an axis has no meaning with them.
    """
    flags = rules.flags.flags
    needed = {flags[name].null_without for name in plan.flags if name in flags}
    return [
        name
        for name, value in kept.items()
        if name in plan.flags
        or (name in plan.held and (name not in needed or value == flags[name].default))
    ]


def run(ctx: click.Context, rules: Rules, plan: Plan) -> int:
    """Answer one command line; returns the exit status."""
    from fitcheck.engine.advisor import advise
    from fitcheck.engine.advisor_input import asked_for, refuse_held
    from fitcheck.engine.sources import waiting

    values, typed = ctx.params, options.given(ctx)
    try:
        for name, value in options.flags_given(typed, rules.flags).items():
            flag = rules.flags.flags.get(name)
            if name not in plan.held or flag is None or value != flag.default:
                refuse_held(rules.flags, plan, name)
        flags = options.flags_given(typed, rules.flags, ctx)
        for name in not_fixed(rules, plan, flags):  # of a saved run, or what holds anyway
            del flags[name]
        flags = options.with_stack(rules.flags, values["stack"], flags)
        names = [a.json for a in plan.axes] + [a.most.json for a in plan.axes if a.most]
        given = {**flags, **{name: values[name] for name in names}}
        sweep = swept(values["sweep"])
        asked_for(rules, plan, given, sweep, values["gpu"], values["vram_mib"])
        if values["plot"] is not None:
            from fitcheck.cli.plot import check_target

            check_target(values["plot"])
    except InputProblem as error:
        raise click.UsageError(str(error), ctx) from None
    if values["model"] is None:
        raise click.UsageError(
            "MODEL is missing: give a Hub id, a path of a config.json, or a name of the catalogue.",
            ctx,
        )
    waiting.tell = lambda text: say("note", text, values["no_color"])
    progress = Progress()
    try:
        advice = advise(
            rules,
            values["model"],
            given,
            sweep,
            gpu=values["gpu"],
            vram_mib=values["vram_mib"],
            source=values["source"],
            folders=values["rules"],
            tell=progress.tell,
        )
    finally:
        progress.end()
    show(advice, values)
    if values["plot"] is not None:
        from fitcheck.cli.plot import edge_to

        edge_to(advice, values)
    return advice.exit_code


def swept(texts: Sequence[str]) -> dict[str, str]:
    """`--sweep NAME=VALUES` as a mapping; raises `InputProblem` for another form."""
    found: dict[str, str] = {}
    for text in texts:
        name, sign, values = text.partition("=")
        if not sign or not name.strip() or not values.strip():
            raise InputProblem(
                f"--sweep {text[:60]}: write NAME=VALUES, such as --sweep optimizer=adamw,sgd."
            )
        if name in found:
            raise InputProblem(f"--sweep {name} is given twice: put all its values into one.")
        found[name] = values
    return found


def show(advice: Advice, values: dict[str, Any]) -> None:
    """Print the answer, and what is to be told beside it."""
    if values["as_json"]:
        write(json.dumps(advice.to_dict(), indent=2))
    else:
        from fitcheck.cli.advise_view import advice_view
        from fitcheck.cli.screen import console, show as show_parts

        target = console(values["no_color"])
        show_parts(advice_view(advice, target.width), target=target)
    notes = {block.prepared.card.note: None for block in advice.blocks if block.prepared.card.note}
    for note in notes:
        say("note", note, values["no_color"])
    for text in advice.warnings:
        say("warning", text, values["no_color"])


class Progress:
    """How far a long sweep is, on standard error where that is a terminal."""

    def __init__(self) -> None:
        self.shown = False
        self.next = time.monotonic() + PATIENCE
        self.stream = sys.stderr if sys.stderr is not None and sys.stderr.isatty() else None

    def tell(self, done: int, total: int) -> None:
        """Take note of how many points are done; the first second nothing is shown."""
        if self.stream is None or time.monotonic() < self.next:
            return
        self.next = time.monotonic() + EVERY
        self.shown = True
        self.stream.write(f"\r{done:,} of {total:,} points ({100 * done // total} %)")
        self.stream.flush()

    def end(self) -> None:
        """Clear the line."""
        if self.stream is not None and self.shown:
            self.stream.write("\r\x1b[K")
            self.stream.flush()
