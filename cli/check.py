"""`fitcheck check FILE`: training configurations of other programs, estimated."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from fitcheck.cli import options
from fitcheck.cli.answer import Request
from fitcheck.cli.estimate import REPEATED, EstimateCommand, flags_of
from fitcheck.cli.output import say, write
from fitcheck.engine.api import choose_card, rules_for
from fitcheck.engine.errors import InputProblem
from fitcheck.engine.json_kinds import schema_id

if TYPE_CHECKING:
    from fitcheck.cli.checked import Checked
    from fitcheck.engine.rules import Rules

ABOUT = """\
Estimate training configurations that you have: YAML and JSON of Axolotl, LLaMA-Factory, TRL,
transformers, torchtune and Unsloth, with the DeepSpeed and FSDP files that they name, shell scripts
that start them, and saved runs of fitcheck.

Every key that was used is listed, and every key that costs memory and is in no estimate, with the
direction of the error. Options typed here win over the file.
"""
OWN = ("gpu", "vram_mib", "source", "stack", "rules", "as_json", "verbose", "no_color")
EXAMPLES = (
    "fitcheck check qlora.yml --gpu 4090",
    "fitcheck check configs/*.yaml --gpu a100-80 --github   # in a pull request",
    "fitcheck check train.sh --gpu h100 --json",
    "fitcheck check --from-command 'trl sft --model_name_or_path Qwen/Qwen2.5-7B ...' --gpu l40s",
)


class CheckCommand(EstimateCommand):
    """Files in place of MODEL; its flags are those of the estimate."""

    def __init__(self, rules: Rules, overlays: Sequence[str]) -> None:
        self.rules, self.overlays = rules, tuple(overlays)
        own = options.own_options(rules.flags.default_card)
        click.Command.__init__(
            self,
            "check",
            params=[
                click.Argument(["files"], nargs=-1, type=click.Path()),
                options.Option(
                    ["form", "--format"],
                    options.ORIGIN,
                    metavar="NAME",
                    help="The program that the files are for, where it cannot be told from them.",
                ),
                options.Option(
                    ["model", "--model"],
                    options.ORIGIN,
                    metavar="MODEL",
                    help="The model, where a file names none or a path that is not here.",
                ),
                options.Option(
                    ["from_command", "--from-command"],
                    options.ORIGIN,
                    metavar="TEXT",
                    help="A command that starts a training, in place of a file.",
                ),
                *options.flag_options(rules.flags),
                *(option for option in own if option.name in OWN),
                options.Option(
                    ["github", "--github"],
                    options.OUTPUT,
                    is_flag=True,
                    help="Add annotations of a GitHub workflow at the lines of the files.",
                ),
            ],
            help=ABOUT,
            options_metavar="[OPTIONS]",
        )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return click.Command.parse_args(self, ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return ["FILE...", "[OPTIONS]"]

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Exit status"):
            formatter.write_dl(
                [
                    ("0", "every run is safe"),
                    ("1", "some do not fit, or are uncertain"),
                    ("2", "some could not be read or estimated"),
                ]
            )
        with formatter.section("Examples"):
            for line in EXAMPLES:
                formatter.write(f"  {line}\n")

    def invoke(self, ctx: click.Context) -> int:
        return run(ctx, self.rules, self.overlays)


def build(overlays: Sequence[str]) -> CheckCommand:
    """The command for the bundled rules with overlay folders on top."""
    return CheckCommand(rules_for(overlays), overlays)


def run(ctx: click.Context, rules: Rules, overlays: Sequence[str]) -> int:
    """Check every file; returns the exit status."""
    from fitcheck.cli.checked import check_document, check_file, documents_of
    from fitcheck.engine.importing.mapping import mappings

    values, typed = ctx.params, options.given(ctx)
    if not values["files"] and not values["from_command"]:
        raise click.UsageError(
            "FILE is missing: give a training configuration, such as fitcheck check config.yaml.",
            ctx,
        )
    try:
        flags, _ = flags_of(ctx, rules, {**values, "from_command": None}, typed)
        choose_card(rules, values["gpu"], values["vram_mib"])
        known = mappings(overlays)
        if values["form"] is not None:
            from fitcheck.engine.importing.recognising import named_importer

            named_importer(known, values["form"])
    except InputProblem as error:
        raise click.UsageError(str(error), ctx) from None
    others = {n: v for n, v in typed.items() if n in REPEATED}
    request = Request(values["model"] or "", flags, others)
    found: list[Checked] = [
        check_file(rules, known, path, request, values) for path in values["files"]
    ]
    if values["from_command"]:
        for document in documents_of("command", values["from_command"], known):
            found.append(check_document(rules, known, document, request, values))
    show(found, values)
    return max((checked.exit_code for checked in found), default=0)


def show(found: Sequence[Checked], values: dict[str, Any]) -> None:
    """Print the answers, and annotations where they are asked for."""
    if values["as_json"]:
        write(json.dumps(as_json(found), indent=2))
    else:
        from fitcheck.cli.check_view import print_checked, print_summary

        for number, checked in enumerate(found):
            if number:
                write("")
            print_checked(checked, values)
        if len(found) > 1:
            print_summary(found)
    if values["github"]:
        from fitcheck.cli.check_view import annotate
        from fitcheck.cli.output import write_error

        for checked in found:
            (write_error if values["as_json"] else write)(annotate(checked))
    if not values["as_json"]:
        return
    for checked in found:
        if checked.error is not None:
            say("error", str(checked.error), values["no_color"])


def as_json(found: Sequence[Checked]) -> dict[str, Any]:
    """The JSON contract: one object a file."""
    from fitcheck import __version__

    return {
        "schema": schema_id("check"),
        "fitcheck_version": __version__,
        "exit_code": max((checked.exit_code for checked in found), default=0),
        "files": [checked.to_dict() for checked in found],
    }
