"""The options of an estimate: the flags that its rules declare, and our own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click
from click.core import ParameterSource

from fitcheck.cli.answer import ALL
from fitcheck.cli.completion import (
    complete_card,
    complete_folder,
    complete_formula,
    complete_model,
    complete_picture,
    picture_names,
)
from fitcheck.engine.errors import InputProblem
from fitcheck.engine.flags import Flag, FlagSet
from fitcheck.engine.spelling import opposite

GPU, ORIGIN, OUTPUT = "GPU options", "Model and rules", "Output options"
FORMATS = ("text", "markdown", "latex", "json")
SOURCES = ("auto", "local", "catalogue", "hub")
SHELLS = ("bash", "zsh", "fish")


class Option(click.Option):
    """An option with its section of the help; of an on/off pair `shown` comes first there."""

    def __init__(
        self, declarations: Sequence[str], section: str, shown: str | None = None, **settings: Any
    ) -> None:
        super().__init__(declarations, **settings)
        self.section, self.shown = section, shown

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        record = super().get_help_record(ctx)
        if record is None or self.shown is None:
            return record
        return f"{self.shown} / {opposite(self.shown)}", record[1]


class PictureOption(Option):
    """Names the pictures in the help, which read a file that nothing else needs."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        record = super().get_help_record(ctx)
        names = ", ".join(picture_names(ctx))
        return record and (record[0], record[1].replace("picture of", f"picture ({names}) of"))


class Word(click.ParamType):  # type: ignore[type-arg]
    """One of a few words, in any case; others are passed on, so that the engine says why not."""

    name = "word"

    def __init__(self, choices: Sequence[str]) -> None:
        self.choices = choices

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        folded = str(value).casefold()
        return next((c for c in self.choices if c.casefold() == folded), str(value)[:60])

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> Any:
        from click.shell_completion import CompletionItem

        return [CompletionItem(c) for c in self.choices if c.startswith(incomplete.casefold())]


class OneOf(Word):
    """One of a few words of our own, refused here."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        found = super().convert(value, param, ctx)
        if found not in self.choices:
            *most, last = self.choices
            self.fail(f"'{found}' is not one of {', '.join(most)} and {last}.", param, ctx)
        return found


class Whole(click.ParamType):  # type: ignore[type-arg]
    """A whole number; what is none is passed on, so that the engine says what is wanted."""

    name = "int"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        try:
            return int(value)
        except ValueError:
            return str(value)[:60]


def flag_options(flags: FlagSet) -> list[Option]:
    """One option for each flag and shorthand, in the order of the file, section by section."""
    options = [_option(flag) for flag in flags.flags.values()]
    options += [
        Option([short.id, short.option], short.group, help=short.help, is_flag=True)
        for short in flags.shorthands.values()
    ]
    order = {group: position for position, group in enumerate(flags.groups)}
    return sorted(options, key=lambda o: order.get(o.section, len(order)))


def _option(flag: Flag) -> Option:
    if flag.kind == "switch":
        pair = (flag.option, opposite(flag.option))
        on, off = reversed(pair) if flag.inverse else pair
        return Option(
            [flag.id, f"{on}/{off}"], flag.group, flag.option, help=flag.help, default=None
        )
    default = next((p for p, words in flag.presets.items() if words == flag.default), flag.default)
    settings: dict[str, Any] = {"type": click.STRING, "metavar": "TEXT"}
    if flag.kind == "choice":
        settings = {"type": Word(tuple(flag.values)), "metavar": "|".join(flag.values)}
    elif flag.kind == "integer":
        settings = {"type": Whole(), "metavar": "INT"}
    elif flag.kind == "version":
        settings["metavar"] = "VERSION"
    elif flag.presets:
        settings["type"] = _Preset(tuple(flag.presets))
    text = f"{flag.help} [default: {default}]" if default != "" else flag.help
    return Option([flag.id, flag.option, *flag.aliases], flag.group, help=text, **settings)


class _Preset(Word):
    """A list of words, or the name of one; only the names are completed."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        return value


def own_options(default_card: str) -> list[Option]:
    """GPU, source and output options."""
    return [
        Option(
            ["gpu", "--gpu"],
            GPU,
            metavar="TEXT",
            help="GPU by name, such as 4090, t4, 'RTX A6000', h100; auto for that of this machine, "
            f"auto:1 for its second. [default: {default_card}]",
            shell_complete=complete_card,
        ),
        Option(
            ["vram_mib", "--vram-mib"],
            GPU,
            type=Whole(),
            metavar="MIB",
            help="Memory of a GPU that is not in the database; not all of it counts as usable.",
        ),
        Option(
            ["list_gpus", "--list-gpus"],
            GPU,
            is_flag=True,
            help="Print the GPU database and exit; with --gpu auto the GPUs of this machine.",
        ),
        config_option(),
        Option(
            ["source", "--source"],
            ORIGIN,
            type=OneOf(SOURCES),
            metavar="|".join(SOURCES),
            default="auto",
            help="Where to look for the model. [default: auto]",
        ),
        Option(
            ["stack", "--stack"],
            ORIGIN,
            metavar="NAME=VERSION",
            help="Library versions that facts hang on, such as transformers=4.57.6; several with "
            "commas.",
        ),
        Option(
            ["rules", "--rules"],
            ORIGIN,
            multiple=True,
            metavar="DIR",
            help="Folder with changed or added rule files; may be repeated, the last one wins.",
            shell_complete=complete_folder,
        ),
        Option(
            ["as_json", "--json"], OUTPUT, is_flag=True, help="Print JSON, for scripts and CI jobs."
        ),
        Option(
            ["verbose", "--verbose"],
            OUTPUT,
            is_flag=True,
            help="Add what one layer costs, and every quantity behind the answer.",
        ),
        Option(
            ["explain", "--explain"],
            OUTPUT,
            is_flag=True,
            help="Say in plain English what is large and why, and what each change would save.",
        ),
        Option(
            ["derive", "--derive"],
            OUTPUT,
            is_flag=False,
            flag_value=ALL,
            metavar="[COMPONENT]",
            help="Print formulas with their numbers and where each came from: all, or of one "
            "component.",
            shell_complete=complete_formula,
        ),
        Option(
            ["form", "--format"],
            OUTPUT,
            type=OneOf(FORMATS),
            metavar="|".join(FORMATS),
            help="Format of --derive. [default: text]",
        ),
        Option(["no_color", "--no-color"], OUTPUT, is_flag=True, help="Print without colours."),
        Option(
            ["completion", "--completion"],
            OUTPUT,
            type=OneOf(SHELLS),
            metavar="|".join(SHELLS),
            help="Print the completion script of a shell, to be sourced there.",
        ),
        Option(
            ["version", "-V", "--version"], OUTPUT, is_flag=True, help="Print the version and exit."
        ),
    ]


def fit_option() -> Option:
    """The table of all cards, for modes that say what it shows."""
    return Option(
        ["fit", "--fit"],
        OUTPUT,
        is_flag=True,
        help="Add every card that holds it, with the most of each that it holds.",
    )


def command_option() -> Option:
    """The command line of another program, for modes that know some."""
    return Option(
        ["from_command", "--from-command"],
        ORIGIN,
        metavar="TEXT",
        help="Read what an engine is started with: 'vllm serve MODEL --max-model-len 8192'.",
    )


def plot_options() -> list[Option]:
    """The pictures, for rules that say what they draw."""
    plot = Option(
        ["plot", "--plot"],
        OUTPUT,
        type=click.Path(),
        metavar="FILE",
        help="Draw it too: FILE.png or FILE.svg (needs the extra `plot`), or - for the terminal.",
    )
    picture = PictureOption(
        ["picture", "--picture"],
        OUTPUT,
        multiple=True,
        metavar="NAME",
        help="Which picture of --plot; may be repeated.",
        shell_complete=complete_picture,
    )
    return [plot, picture]


def model_argument() -> click.Argument:
    """MODEL, optional so that --version and --list-gpus work without one."""
    return click.Argument(["model"], required=False, shell_complete=complete_model)


CONFIG = "config"  # key of the context: the saved run of --config


def config_option() -> Option:
    """A saved run, whose values are taken where nothing is typed."""
    return Option(
        [CONFIG, "--config"],
        ORIGIN,
        type=click.Path(),
        metavar="FILE",
        is_eager=True,  # before the options that it gives values to
        callback=take_config,
        help="A saved run (`save FILE` in a session): its model, card and flags, where none is "
        "typed.",
    )


def take_config(ctx: click.Context, param: click.Parameter, path: str | None) -> str | None:
    """Read a saved run; click then takes from it what is not typed."""
    if path is None or ctx.resilient_parsing:
        return path
    from fitcheck.engine.run_file import SWEEP, read_run

    try:
        saved = read_run(path)
    except InputProblem as problem:
        raise click.UsageError(str(problem), ctx) from None
    ctx.meta[CONFIG] = saved
    own = {p.name for p in ctx.command.params}
    sweep = saved.sections.get(SWEEP, {})
    found = {**sweep, **saved.top}
    several = {p.name for p in ctx.command.params if getattr(p, "multiple", False)}
    ctx.default_map = {
        name: (value,) if name in several else value for name, value in found.items() if name in own
    }
    return path


def given(ctx: click.Context) -> dict[str, Any]:
    """What was typed, and what a saved run says beside it, in the order of declaration."""
    sources = {p.name: ctx.get_parameter_source(p.name) for p in ctx.command.params if p.name}
    typed = {n for n, source in sources.items() if source is ParameterSource.COMMANDLINE}
    saved = {n for n, source in sources.items() if source is ParameterSource.DEFAULT_MAP}
    if "gpu" in typed and "vram_mib" in saved:  # that is the memory of another card
        ctx.params["vram_mib"] = None
        saved.discard("vram_mib")
    return {
        name: ctx.params[name]
        for name in sources
        if name in ctx.params and name != CONFIG and name in typed | saved
    }


def flags_given(
    typed: Mapping[str, Any], flags: FlagSet, ctx: click.Context | None = None, section: str = ""
) -> dict[str, Any]:
    """
    The flags and shorthands alone, as the engine takes them, over those of a saved run.

    Raises `InputProblem`.
    """
    known = {*flags.flags, *flags.shorthands}
    found = {name: value for name, value in typed.items() if name in known}
    if ctx is None or CONFIG not in ctx.meta:
        return found
    from fitcheck.engine.run_file import TRAINING
    from fitcheck.engine.sticky import folded

    return folded(flags, ctx.meta[CONFIG].flags(section or TRAINING, flags), found)


def with_stack(flags: FlagSet, stack: str | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """The flags with the versions of --stack; raises `InputProblem` where both name one."""
    if not stack:
        return dict(given)
    versions = flags.stack(stack)
    twice = [name for name in versions if given.get(name, versions[name]) != versions[name]]
    if twice:
        raise InputProblem(f"--stack and {flags.spelled(twice[0])} name two versions: give one.")
    return {**versions, **given}
