"""`fitcheck compare MODEL GPU [GPU ...]`: one run on several cards, ranked by headroom."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from fitcheck.cli import options
from fitcheck.cli.chosen import ChosenCommand, shared_options, typed_words
from fitcheck.cli.completion import complete_card
from fitcheck.cli.estimate import flags_of
from fitcheck.cli.output import say, write
from fitcheck.engine.api import choose_card, prepare
from fitcheck.engine.cards import Card, cards_of
from fitcheck.engine.comparing import Compared, compare
from fitcheck.engine.errors import InputProblem

if TYPE_CHECKING:
    from fitcheck.engine.report import Prepared
    from fitcheck.engine.rules import Rules

ABOUT = """\
Compare one run of MODEL on several GPUs, each a full estimate, most headroom first.

GPU is a name such as 4090, t4 or h100, as often as you like; --all takes every card of the
database, and --fits shows only those on which the point estimate fits. With --infer it is serving
that is compared, with the options of `fitcheck infer`.
"""
SHARED = ("config", "source", "stack", "rules", "as_json", "no_color")


class CompareCommand(ChosenCommand):
    title, about = "compare", ABOUT
    usage = ("MODEL", "GPU...", "[OPTIONS]")
    sample = (
        "fitcheck compare meta-llama/Llama-3.1-8B 4090 a100-40 h100 --qlora --flash-attn",
        "fitcheck compare Qwen/Qwen2.5-7B --all --fits --qlora --batch-size 2",
        "fitcheck compare Qwen/Qwen3-8B 3090 l4 a10 --infer --seq-len 16384 --json",
    )
    status = (
        ("0", "on at least one of the cards it is safe"),
        ("1", "on none of them"),
        ("2", "the comparison could not be run"),
    )

    def own(self) -> list[click.Parameter]:
        return [
            options.model_argument(),
            click.Argument(["gpus"], nargs=-1, shell_complete=complete_card),
            options.Option(
                ["every", "--all"], options.GPU, is_flag=True, help="Every card of the database."
            ),
            options.Option(
                ["fits", "--fits"],
                options.GPU,
                is_flag=True,
                help="Show only the cards on which the point estimate fits.",
            ),
            options.Option(
                ["gpu", "--gpu"],
                options.GPU,
                multiple=True,
                metavar="TEXT",
                help="The same as a GPU among the words; may be repeated.",
                shell_complete=complete_card,
            ),
            options.Option(
                ["vram_mib", "--vram-mib"],
                options.GPU,
                type=options.Whole(),
                metavar="MIB",
                help="Also a GPU that is not in the database, by its memory.",
            ),
            *shared_options(self.rules.flags.default_card, SHARED),
        ]

    def invoke(self, ctx: click.Context) -> int:
        typed = options.given(ctx)
        values = with_saved_model(self.rules, ctx)
        if values["model"] is None:
            raise click.UsageError(
                "MODEL is missing: write fitcheck compare MODEL GPU..., such as fitcheck compare "
                "Qwen/Qwen2.5-7B 4090 h100.",
                ctx,
            )
        try:
            flags, told = flags_of(ctx, self.rules, values, typed)
            cards = chosen_cards(self.rules, values)
        except InputProblem as error:
            raise click.UsageError(str(error), ctx) from None
        from fitcheck.engine.sources import waiting

        waiting.tell = lambda text: say("note", text, values["no_color"])
        prepared = prepare(
            self.rules,
            values["model"],
            gpu=None,  # any card: each line has its own
            vram_mib=None,
            source=values["source"],
            flags=flags,
            told=told,
        )
        found = compare(prepared, cards)
        shown = [c for c in found if c.fits] if values["fits"] else found
        if values["as_json"]:
            write(json.dumps(as_json(prepared, shown, len(found)), indent=2))
        else:
            from fitcheck.cli.compare_table import print_comparison

            print_comparison(prepared, shown, len(found), values["no_color"])
        for card in cards:
            if card.note:
                say("note", card.note, values["no_color"])
        told = (*prepared.model.warnings, *prepared.told)
        lines = warned(shown)
        for text in dict.fromkeys((*prepared.model.remarks, *told, *lines)):
            say("warning", text, values["no_color"])
        return 0 if any(c.safe for c in found) else 1


def with_saved_model(rules: Rules, ctx: click.Context) -> dict[str, Any]:
    """The values, with a first word that names a card as one where a saved run has the model."""
    values = ctx.params
    saved = ctx.meta.get(options.CONFIG)
    model = saved.top.get("model") if saved is not None else None
    if model is None or values["model"] in (None, model):
        return values
    try:
        choose_card(rules, values["model"], None)
    except InputProblem:
        return values
    return {**values, "model": model, "gpus": (values["model"], *typed_words(values, "gpus"))}


def chosen_cards(rules: Rules, values: dict[str, Any]) -> list[Card]:
    """The cards that the words name, each once; raises `InputProblem`."""
    names = (*typed_words(values, "gpus"), *typed_words(values, "gpu"))
    found = cards_of(rules) if values["every"] else []
    found += [choose_card(rules, name, None) for name in names]
    if values["vram_mib"] is not None:
        found.append(choose_card(rules, None, values["vram_mib"]))
    if not found:
        raise InputProblem(
            "No GPU is named: write at least one after MODEL, such as 4090 h100, or --all for "
            "every card."
        )
    return list({(c.id, c.title, c.here.get("selector")): c for c in found}.values())


def as_json(prepared: Prepared, shown: Sequence[Compared], compared: int) -> dict[str, Any]:
    """The JSON contract of a comparison: what is the same everywhere, then one object a card."""
    from fitcheck.engine.contract import run_blocks

    assert prepared.rules.hints is not None
    most = prepared.rules.hints.data["compare"]["most"]["quantity"]
    return {
        **run_blocks(prepared, "compare"),
        "compared": compared,
        "cards": [card.to_dict(most) for card in shown],
        "warnings": [*prepared.model.warnings, *prepared.told],
        "overlays": list(prepared.rules.overlays),
    }


def build(overlays: Sequence[str]) -> CompareCommand:
    """The command, with overlay folders on top of the bundled rules."""
    return CompareCommand(overlays)


def warned(shown: Sequence[Compared]) -> list[str]:
    """Warnings and remarks of the cards, with their names where they are not for all of them."""
    found: dict[str, list[str]] = {}
    for line in shown:
        for text in (*line.remarks, *line.warnings):
            found.setdefault(text, []).append(line.card.id)
    return [
        text if len(cards) == len(shown) else f"{', '.join(cards)}: {text}"
        for text, cards in found.items()
    ]
