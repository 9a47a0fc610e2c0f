"""`fitcheck rules why ID [MODEL] [flags]`: which case holds for a run, and why not the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from fitcheck.cli import options
from fitcheck.cli.completion import complete_model
from fitcheck.cli.estimate import EstimateCommand
from fitcheck.cli.rules.folders import complete_id
from fitcheck.cli.rules.layout import columns, counted, paragraph, say
from fitcheck.cli.words import settings_words
from fitcheck.engine.api import SOURCES, prepare, rules_for
from fitcheck.engine.config_fields import text_part
from fitcheck.engine.errors import InputProblem
from fitcheck.engine.json_kinds import json_text
from fitcheck.engine.record import as_dict
from fitcheck.engine.report import Prepared
from fitcheck.engine.rules import Rules
from fitcheck.engine.sources import load_model
from fitcheck.engine.workshop import why
from fitcheck.engine.workshop.index import find
from fitcheck.engine.workshop.reference import configurations

ABOUT = """\
Which case of a quantity holds for a run, condition by condition, and why the others do not.

ID is a quantity, a kind of profile (reserve) or one of them, a status or `statuses`, an
architecture or `architectures`. MODEL and flags are those of an estimate; without a MODEL that of
the first reference configuration is taken.
"""
STATUSES = ("statuses", "status", "verdict")
ARCHITECTURES = ("architectures", "architecture")
OWN = ("gpu", "vram_mib", "source", "rules", "as_json")
SIGNS = {True: "yes", False: "no", None: "?"}


class WhyCommand(EstimateCommand):
    """The options of an estimate, with the id of what is asked about before the model."""

    def __init__(self, rules: Rules, overlays: Sequence[str]) -> None:
        self.rules, self.overlays = rules, tuple(overlays)
        own = [o for o in options.own_options(rules.flags.default_card) if o.name in OWN]
        click.Command.__init__(
            self,
            "why",
            params=[
                click.Argument(["id"], shell_complete=complete_id),
                click.Argument(["model"], required=False, shell_complete=complete_model),
                *options.flag_options(rules.flags),
                *own,
            ],
            help=ABOUT,
        )

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return ["ID", "[MODEL]", "[OPTIONS]"]

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        return None

    def invoke(self, ctx: click.Context) -> int:
        flags = options.flags_given(options.given(ctx), self.rules.flags)
        return answer(self.rules, ctx.params, flags)


def build(overlays: Sequence[str]) -> WhyCommand:
    """The command for the bundled rules with overlay folders on top."""
    return WhyCommand(rules_for(overlays), overlays)


def answer(rules: Rules, values: dict[str, Any], flags: dict[str, Any]) -> int:
    """Explain and print."""
    model = values["model"] or configurations()[0].model
    source = values["source"] if values["model"] else "catalogue"
    assert source in SOURCES
    name = values["id"]
    kind, chosen_id = target(rules, name)
    head: list[str] = []
    if kind == ARCHITECTURES[0]:
        choices = architecture_choices(rules, model, source)
    else:
        prepared = prepare(
            rules,
            model,
            gpu=values["gpu"],
            vram_mib=values["vram_mib"],
            source=source,
            flags=flags,
        )
        head = heading(prepared)
        choices = choices_of(prepared, kind, chosen_id)
    if values["as_json"]:
        say(json_text("rules-why", {"choices": [as_dict(c) for c in choices]}))
        return 0
    say(*head, *(line for choice in choices for line in block(choice)))
    return 0


def target(rules: Rules, name: str) -> tuple[str, str]:
    """What is asked about: the kind (`formula`, `statuses`, ..., or a profile kind) and the id."""
    if name in STATUSES:
        return STATUSES[0], ""
    if name in ARCHITECTURES:
        return ARCHITECTURES[0], ""
    if name in rules.profiles and name not in rules.formulas:
        return name, ""
    if name.removeprefix("profiles/").rstrip("/") in rules.profiles and "/" in name:
        return name.removeprefix("profiles/").rstrip("/"), ""
    entry = find(rules, name)
    if entry.mode is not None:
        command = home.command if (home := rules.modes[entry.mode].mode) else entry.mode
        raise InputProblem(
            f"`{name}` is of the mode {entry.mode}: `fitcheck {command} MODEL --derive ID` says "
            "which case of a quantity holds and why."
        )
    if entry.kind in ("component", "quantity"):
        return "formula", entry.id
    if entry.kind in ("profile", "status", "architecture"):
        return entry.folder.rpartition("/")[2], entry.id
    raise InputProblem(
        f"`{name}` is a {entry.kind} file and has no cases; `fitcheck rules show {name}` prints it."
    )


def choices_of(prepared: Prepared, kind: str, name: str) -> list[why.Choice]:
    """The alternatives of a quantity, of the statuses, or of a kind of profile."""
    run = prepared.run_with(prepared.unsettled())
    if kind == STATUSES[0]:
        return [why.why_statuses(run)]
    if kind in prepared.rules.profiles:
        return [why.why_profiles(run, kind)]
    formula = why.formula_of(prepared.rules, name)
    found = why.why_formula(run, formula)
    kinds = dict.fromkeys(
        s.source.split(".")[1] for s in formula.symbols.values() if s.source.startswith("profiles.")
    )
    return [*found, *(why.why_profiles(run, kind) for kind in kinds)]


def architecture_choices(rules: Rules, model: str, source: Any) -> list[why.Choice]:
    """Which architecture file claims the config of a model, and which its text part."""
    raw = load_model(model, source=source)
    found = [why.why_architectures(rules, raw.name, raw.config)]
    chosen = next((a for a in rules.architectures if a.id == found[0].result), None)
    nested = chosen.data.get("text") if chosen is not None else None
    if nested is not None:
        text = text_part(raw.config, nested["at"], nested.get("model_type"))
        found.append(why.why_architectures(rules, f"the text part of {raw.name}", text))
    return found


def heading(prepared: Prepared) -> list[str]:
    """What the answer is for."""
    words = [w for w, changed in settings_words(prepared.rules.flags, prepared.settings) if changed]
    flags = f", {', '.join(words)}" if words else ", every flag at its default"
    return [paragraph(f"For {prepared.model.name} on {prepared.card.title}{flags}:"), ""]


def block(choice: why.Choice) -> list[str]:
    """One choice: what holds first, then the others, each condition with its values."""
    item = f", {choice.item}" if choice.item else ""
    lines = [f"{choice.title} ({choice.id}{item}): {choice.result}"]
    if choice.note:
        lines.append(paragraph(choice.note, "  "))
    keyed = choice.kind in ("profiles", "architectures")
    others = [b for b in choice.branches if choice.kind == "architectures" and of_others(b)]
    for branch in sorted(choice.branches, key=lambda b: not b.holds):
        if branch not in others:
            lines += branch_lines(branch, keyed)
    if others:
        says = "other file is" if len(others) == 1 else "other files are"
        lines.append(f"  {len(others)} {says} for other model types (--json has all).")
    return [*lines, ""]


def of_others(branch: why.Branch) -> bool:
    """Whether a file goes by the model type alone, and that is another one."""
    return [p.holds for p in branch.parts] == [False] and branch.parts[0].text.startswith(
        "model_type:"
    )


def shortened(text: str, most: int = 160) -> str:
    """A long list cut after a word; the whole of it is in the JSON and in the file."""
    return text if len(text) <= most else f"{text[:most].rpartition(' ')[0]} ..."


def branch_lines(branch: why.Branch, keyed: bool) -> list[str]:
    """One alternative with the parts of its condition."""
    sign = "holds" if branch.holds else "does not"
    lines = [f"  {sign:<8}  {branch.id}  [{branch.place}]"]
    if branch.holds and branch.expr:
        lines += columns([(f"= {branch.expr}",)], 12)
    if branch.says:
        lines += columns([(branch.says,)], 12)
    if not branch.parts and not branch.expr:
        lines.append(f"{'':12}{branch.condition or 'holds for every run'}")
    parts = branch.parts
    if not branch.holds and keyed:
        parts = [p for p in parts if p.holds is not True]  # what holds is not why it fails
    rows = [("" if p.holds is None and not p.values else SIGNS[p.holds], _text(p)) for p in parts]
    lines += columns(rows, 12)
    left_out = len(branch.parts) - len(parts)
    if left_out:
        lines.append(f"{'':12}({counted(left_out, 'other key holds', 'other keys hold')})")
    return lines


def _text(part: why.Part) -> str:
    text = f"{'  ' * part.depth}{shortened(part.text)}"
    values = [f"{n} = {v}" for n, v in part.values]
    return f"{text}   ({', '.join(values)})" if values else text
