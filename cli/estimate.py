"""`fitcheck MODEL` and the commands of modes: one estimate, as a table, JSON, or a derivation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

import click

from fitcheck.cli import options
from fitcheck.cli.answer import ALL, Request, answer
from fitcheck.cli.output import write
from fitcheck.engine.api import choose_card, rules_for
from fitcheck.engine.errors import InputProblem
from fitcheck.engine.machine import is_here

if TYPE_CHECKING:
    from fitcheck.engine.rules import Rules

ABOUT = """\
Say whether fine-tuning MODEL fits on a GPU, and where every byte goes.

MODEL is a Hugging Face Hub id (meta-llama/Llama-3.1-8B), a config.json or the folder it lies in, or
a model of the bundled catalogue, which needs no network.
"""
OUTPUT_ONLY = {  # they format an answer, so they need a model
    "as_json": "--json",
    "verbose": "--verbose",
    "explain": "--explain",
    "derive": "--derive",
    "form": "--format",
    "fit": "--fit",
    "plot": "--plot",
    "picture": "--picture",
}
PROGRAM = "program"  # key of the context: what options of another program say
OF_THE_PROGRAM = ("completion", "version")  # options that stand beside no subcommand
EXAMPLES = (
    "fitcheck meta-llama/Llama-3.1-8B --qlora --lora-r 64 --flash-attn --gpu 4090",
    "fitcheck ./my-model/config.json --no-lora --gpu h100 --json",
    "fitcheck advise --help  # ranges of batch sizes, lengths and ranks",
    'eval "$(fitcheck --completion bash)"     # complete names with the tab key',
)
REPEATED = ("gpu", "vram_mib", "source", "rules")  # they belong in a command that is proposed


class Context(click.Context):
    """A context that does not show the internal name where it was not typed."""

    @property
    def command_path(self) -> str:
        return super().command_path.rstrip()


class EstimateCommand(click.Command):
    """The estimate, with its options printed in sections."""

    context_class = Context
    left_out: Sequence[str] = ()  # parameters that make no sense where it runs, as in a session

    def __init__(self, rules: Rules, overlays: Sequence[str]) -> None:
        self.rules, self.overlays = rules, tuple(overlays)
        mode, own = rules.mode, options.own_options(rules.flags.default_card)
        if mode is not None:
            own = [o for o in own if o.name not in OF_THE_PROGRAM]
            own += [options.fit_option()] if mode.fit else []
            engines = any(flag.of for flag in rules.flags.flags.values())
            own += [options.command_option()] if engines else []
        own += options.plot_options() if mode is None or mode.plots else []
        super().__init__(
            mode.command if mode else "estimate",
            params=[options.model_argument(), *options.flag_options(rules.flags), *own],
            help=mode.about if mode else ABOUT,
            options_metavar="[OPTIONS]",
        )

    def formula_ids(self) -> tuple[str, ...]:
        """What --derive may name."""
        return tuple(self.rules.formulas)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if self.rules.mode is not None and not ctx.resilient_parsing:
            from fitcheck.cli.engine_options import take_out

            args, typed, title = take_out(self.rules, ctx, self.params, args)
            ctx.meta[PROGRAM] = typed and (typed, title)
        typed_first = next((word for word in args if not word.startswith("-")), "")
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx  # so that its own help is named
            hint = meant(typed_first) if not ctx.info_name else ""
            if hint and "extra argument" in error.format_message():
                raise click.UsageError(f"{error.format_message()}{hint}", ctx) from None
            raise

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        found = super().get_params(ctx)
        if not self.left_out:
            return found
        kept = [copy(param) for param in found if param.name not in self.left_out]
        for param in kept:
            param.required = False  # a session remembers it
        return kept

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return self.usable(["MODEL", "[OPTIONS]"])

    def usable(self, pieces: Sequence[str]) -> list[str]:
        """The words of the usage line without the arguments that are left out."""
        return [piece for piece in pieces if piece.lower() not in self.left_out]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx) if isinstance(param, click.Option) else None
            if record is not None:
                section = getattr(param, "section", options.OUTPUT)
                sections.setdefault(section, []).append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)

    def exit_codes(self) -> Sequence[tuple[str, str]]:
        """Exit codes and what they say, from the statuses of the rules."""
        codes: dict[int, list[str]] = {}
        for status in self.rules.statuses:
            codes.setdefault(status.exit_code, []).append(status.id.replace("_", " "))
        rows = [(str(code), " or ".join(titles)) for code, titles in sorted(codes.items())]
        return [*rows, ("2", "the estimate could not be run")]

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if self.left_out:
            return  # a session has no exit status, and examples of its own
        with formatter.section("Exit status"):
            formatter.write_dl(list(self.exit_codes()))
        if rows := self.other_commands():
            with formatter.section("Commands"):
                formatter.write_dl(rows)
        with formatter.section("Examples"):
            for line in self.examples():
                formatter.write(f"  {line}\n")

    def other_commands(self) -> list[tuple[str, str]]:
        """The other commands of the program, in its own help."""
        if self.name != "estimate":
            return []
        from fitcheck.cli.brief import BRIEF
        from fitcheck.engine.modes import bundled_commands

        modes = [(f"fitcheck {c} MODEL", f"memory of {m}") for c, m in bundled_commands().items()]
        others = [(f"fitcheck {name}", about) for name, (_, about) in BRIEF.items()]
        return [("fitcheck", "a session that remembers model, card and flags"), *modes, *others]

    def examples(self) -> list[str]:
        """Command lines to begin with."""
        if self.rules.mode is not None:
            return list(self.rules.mode.examples)
        from fitcheck.engine.modes import bundled_commands

        others = [f"fitcheck {c} --help  # {mode}" for c, mode in bundled_commands().items()]
        return [*EXAMPLES, *others]

    def invoke(self, ctx: click.Context) -> int:
        return run(ctx, self.rules, self.overlays)


def meant(word: str) -> str:
    """The command that a first word may have been, where it is none."""
    from fitcheck.cli.start import SUBCOMMANDS
    from fitcheck.engine.modes import bundled_commands
    from fitcheck.engine.suggest import suggest

    return suggest(word, (*SUBCOMMANDS, *bundled_commands()))


def build(overlays: Sequence[str], mode: str | None = None) -> EstimateCommand:
    """The command for the bundled rules, of training or of a mode, with overlay folders on top."""
    return EstimateCommand(rules_for(overlays, mode), overlays)


def run(ctx: click.Context, rules: Rules, overlays: Sequence[str]) -> int:
    """Answer one command line; returns the exit status."""
    values, typed = ctx.params, options.given(ctx)
    if values.get("version"):
        from fitcheck import __version__

        write(f"fitcheck {__version__}")
        return 0
    if values.get("completion"):
        from fitcheck.cli.completion import script

        write(script(ctx.find_root().command, values["completion"]))
        return 0
    if values["list_gpus"]:
        if is_here(values["gpu"] or ""):
            from fitcheck.cli.machine_table import list_machine

            return list_machine(rules, values["as_json"], values["no_color"])
        from fitcheck.cli.cards_table import list_cards

        list_cards(rules, values["as_json"], values["no_color"])
        return 0
    try:
        flags, told = flags_of(ctx, rules, values, typed)
        if values["model"] or "gpu" in typed or "vram_mib" in typed:
            choose_card(rules, values["gpu"], values["vram_mib"])
        if values.get("plot") is not None:
            from fitcheck.cli.plot import check_target

            check_target(values["plot"])
        if values.get("picture"):
            from fitcheck.cli.plot import check_names

            check_names(rules, values["picture"], values["plot"])
    except InputProblem as error:
        raise click.UsageError(str(error), ctx) from None
    take_model_from_derive(values, rules)
    if values["model"] is None:
        return without_model(ctx, rules, flags, typed)
    if values["form"] and values["derive"] is None:
        raise click.UsageError("--format is the format of --derive: give both.", ctx)
    others = {n: v for n, v in typed.items() if n in REPEATED}
    return answer(rules, Request(values["model"], flags, others, told), values, ctx.obj)


def flags_of(
    ctx: click.Context, rules: Rules, values: dict[str, Any], typed: Mapping[str, Any]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """
    The flags that the words give, checked, and what they ask for that is not priced.

    Raises `InputProblem`.
    """
    mode = rules.mode.id if rules.mode is not None else ""
    chosen = options.flags_given(typed, rules.flags, ctx, mode)
    flags, told = with_program(ctx, rules, values, chosen)
    flags = options.with_stack(rules.flags, values["stack"], flags)
    rules.flags.resolve(flags)
    return flags, told


def with_program(
    ctx: click.Context, rules: Rules, values: dict[str, Any], flags: dict[str, Any]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """
    The flags with those that another program's command or options say, which ours win over, and
    what is not priced of them. A command may name the model too. Raises `InputProblem`.
    """
    theirs: dict[str, Any] = {}
    assumed: Mapping[str, str] = {}
    told: tuple[str, ...] = ()
    if values.get("from_command"):
        from fitcheck.engine.programs import read_command

        program, typed = read_command(rules, values["from_command"])
        theirs, told, assumed = dict(typed.flags), typed.told(program), typed.assumes
        values["model"] = values["model"] or typed.model
    if ctx.meta.get(PROGRAM):
        typed, title = ctx.meta[PROGRAM]
        theirs, told = {**theirs, **typed.flags}, (*told, *typed.told(title))
    merged = {**theirs, **flags}
    told += tuple(said for flag, said in assumed.items() if flag not in merged)
    return merged, told


def take_model_from_derive(values: dict[str, Any], rules: Rules) -> None:
    """`--derive MODEL`: the option takes the word after it, which may have been the model."""
    word = values["derive"]
    if values["model"] is None and word not in (None, ALL) and word not in rules.formulas:
        values["model"], values["derive"] = word, ALL


def without_model(
    ctx: click.Context, rules: Rules, flags: dict[str, Any], typed: dict[str, Any]
) -> int:
    """A session that begins with what was typed; an error where one estimate is formatted."""
    formats = [option for name, option in OUTPUT_ONLY.items() if name in typed]
    if formats:
        verb = "formats" if len(formats) == 1 else "format"
        raise click.UsageError(
            f"MODEL is missing: {' and '.join(formats)} {verb} the estimate of one model. In a "
            f"session it is `{ctx.info_name or 'memory'} {formats[0]}`.",
            ctx,
        )
    if rules.mode is None:
        from fitcheck.cli.session.starting import start

        return start(flags, typed, ctx)
    raise click.UsageError(
        "MODEL is missing: give a Hub id, a path of a config.json, or a name of the catalogue.", ctx
    )
