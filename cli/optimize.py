"""`fitcheck optimize MODEL`: what to run instead, each step a full estimate, and the command."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

import click

from fitcheck.cli import options
from fitcheck.cli.answer import Request
from fitcheck.cli.chosen import ChosenCommand, shared_options
from fitcheck.cli.estimate import REPEATED, flags_of
from fitcheck.cli.output import say, write
from fitcheck.cli.words import repeated
from fitcheck.engine.api import choose_card, prepare
from fitcheck.engine.errors import InputProblem
from fitcheck.engine.optimizing import Optimized, optimize

if TYPE_CHECKING:
    from fitcheck.engine.hints import Proposal
    from fitcheck.engine.report import Report

ABOUT = """\
Say how to run MODEL on a GPU: the micro-batch and accumulation to use, and, where the run does not
fit or is not safe, the cheapest change of its flags that makes it so, with the command to run.

Each step is a full second estimate. With --infer it is serving that is optimized, with the options
of `fitcheck infer`.
"""
SHARED = ("gpu", "vram_mib", "config", "source", "stack", "rules", "as_json", "no_color")


class OptimizeCommand(ChosenCommand):
    title, about = "optimize", ABOUT
    sample = (
        "fitcheck optimize meta-llama/Llama-3.1-8B --qlora --lora-r 64 --batch-size 4 --gpu 4090",
        "fitcheck optimize Qwen/Qwen2.5-7B --gpu 3060-12 --seq-len 8192",
        "fitcheck optimize Qwen/Qwen3-8B --infer --seq-len 32768 --concurrent 8 --gpu l4 --json",
    )
    status = (
        ("0", "the run is safe, or what is proposed is"),
        ("1", "nothing was found that is safe"),
        ("2", "it could not be run"),
    )

    def own(self) -> list[click.Parameter]:
        flags = self.rules.flags
        program = [options.command_option()] if any(f.of for f in flags.flags.values()) else []
        shared = shared_options(flags.default_card, SHARED)
        return [options.model_argument(), *program, *shared]

    def invoke(self, ctx: click.Context) -> int:
        values, typed = ctx.params, options.given(ctx)
        try:
            flags, told = flags_of(ctx, self.rules, values, typed)
            choose_card(self.rules, values["gpu"], values["vram_mib"])
        except InputProblem as error:
            raise click.UsageError(str(error), ctx) from None
        if values["model"] is None:
            raise click.UsageError(
                "MODEL is missing: give a Hub id, a path of a config.json, or a name of the "
                "catalogue.",
                ctx,
            )
        from fitcheck.engine.report import build_report
        from fitcheck.engine.sources import waiting

        waiting.tell = lambda text: say("note", text, values["no_color"])
        prepared = prepare(
            self.rules,
            values["model"],
            gpu=values["gpu"],
            vram_mib=values["vram_mib"],
            source=values["source"],
            flags=flags,
            told=told,
        )
        report, found = build_report(prepared), optimize(prepared)
        others = {n: v for n, v in typed.items() if n in REPEATED}
        request = Request(values["model"], flags, others, told)
        if values["as_json"]:
            write(json.dumps(as_json(report, found, request), indent=2))
        else:
            from fitcheck.cli.optimize_view import print_optimized

            print_optimized(report, found, request, values["no_color"])
        for text in (prepared.card.note,) if prepared.card.note else ():
            say("note", text, values["no_color"])
        for text in (*report.remarks, *report.warnings):
            say("warning", text, values["no_color"])
        return 0 if found.reached else 1


def build(overlays: Any) -> OptimizeCommand:
    """The command, with overlay folders on top of the bundled rules."""
    return OptimizeCommand(overlays)


def as_json(report: Report, found: Optimized, request: Request) -> dict[str, Any]:
    """The JSON contract: the run as it is, proposals with steps and commands, another card."""
    from fitcheck.engine.contract import CARD, run_blocks, whole_mib

    prepared = report.prepared
    assert prepared.rules.hints is not None
    total = report.run.value(prepared.rules.hints.data["price"])
    last, offer = found.exhausted, found.offer
    return {
        **run_blocks(prepared, "optimize", CARD),
        "now": {
            "total_mib": round(total / 2**20, 2),
            "status": report.status,
            "safe_fits": report.safe,
            "reasons": list(report.reasons),
        },
        "proposals": [
            {
                **proposal_dict(report, request, proposal),
                "steps": [step.to_dict() for step in steps],
            }
            for proposal, steps in zip(found.proposals, found.steps, strict=True)
        ],
        "exhausted": None if last is None else proposal_dict(report, request, last),
        "card": None
        if offer is None
        else {
            "key": offer.card.id,
            "name": offer.card.title,
            "usable_mib": whole_mib(offer.card.usable),
            "safe_fits": offer.safe,
        },
        "warnings": list(report.warnings),
        "overlays": list(report.overlays),
    }


def proposal_dict(report: Report, request: Request, proposal: Proposal) -> dict[str, Any]:
    """One proposal with its reasons and the command that runs it."""
    words = repeated(report, request, proposal.changes)
    return {
        **proposal.to_dict(),
        "safe_fits": proposal.safe,
        "says": list(proposal.says),
        "command": shlex.join(words) if words else None,
    }
