"""`fitcheck models show MODEL`: the canonical model, its layers and its parameters by part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from fitcheck.cli.models.drawing import layer_picture, part_table
from fitcheck.cli.output import harmless, say, write
from fitcheck.cli.words import count
from fitcheck.engine.json_kinds import json_text
from fitcheck.engine.sources import Source

if TYPE_CHECKING:
    from fitcheck.engine.report import Prepared
    from fitcheck.engine.run import Run

BUILT = "built_parameters"  # of which each quantity with a `part` is one
NARROW = 30  # columns, below which a terminal has to break lines itself
LISTS = ("layer_groups", "outer_groups", "tower_groups")


@click.command("show")
@click.argument("model")
@click.option("--rules", "folders", multiple=True, metavar="DIR", help="Changed or added rules.")
@click.option("--stack", metavar="NAME=VERSION", help="Library versions that facts hang on.")
@click.option("--source", default="auto", metavar="auto|local|catalogue|hub", help="Where to look.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--no-color", is_flag=True, help="Print without colours.")
def show_command(
    model: str,
    folders: tuple[str, ...],
    stack: str | None,
    source: Source,
    as_json: bool,
    no_color: bool,
) -> int:
    """Print what MODEL resolves to: layers, parameters by part, and what is uncertain.

    MODEL is a name of the catalogue, a config.json or the folder it lies in, or a Hub id.
    """
    from fitcheck.cli.main import overlays_of_environment
    from fitcheck.engine.api import prepare, rules_for
    from fitcheck.engine.report import without_class

    rules = rules_for((*overlays_of_environment(), *folders))
    flags: dict[str, Any] = dict(rules.flags.stack(stack)) if stack else {}
    prepared = prepare(rules, model, gpu=None, vram_mib=None, source=source, flags=flags)
    run = prepared.run_with(())
    if as_json:
        write(json_text("model", record(prepared, run)))
    else:
        print_model(prepared, run, no_color)
    for text in prepared.model.remarks:
        say("note", text, no_color)
    for text in (*prepared.model.warnings, *map(without_class, prepared.model.absent)):
        say("warning", text, no_color)
    return 0


def parts(run: Run) -> dict[str, int]:
    """Parameters by part, in order; what is in no named part are the other matrices."""
    found = [f for f in run.rules.formulas.values() if f.part]
    return {f.id: run.value(f.id) for f in sorted(found, key=lambda f: (f.order, f.id))}


def record(prepared: Prepared, run: Run) -> dict[str, Any]:
    """The canonical model as JSON."""
    from fitcheck.engine.report import without_class

    model, versions = prepared.model, prepared.rules.flags.versions(prepared.settings)
    derived = run.value(BUILT)
    return {
        "name": model.name,
        "model_type": model.model_type,
        "architecture": model.architecture,
        "verified": model.verified and not model.absent,
        "source": model.source,
        "stack": {name: str(version) for name, version in versions.items()},
        "parameters": {
            "total": derived,
            "counted": model.counted_parameters,
            "active": run.value("active_parameters"),
            "quantizable": run.value("linear_parameters"),
            **{name.removesuffix("_parameters"): value for name, value in parts(run).items()},
        },
        "fields": {name: plain(value) for name, value in model.fields.items()},
        **{name: [plain(group) for group in model.lists[name]] for name in LISTS},
        "origin": dict(model.origin),
        "warnings": [*model.warnings, *map(without_class, model.absent)],
        "notes": list(model.remarks),
    }


def plain(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value if isinstance(value, (bool, int, str)) else str(value)


def print_model(prepared: Prepared, run: Run, no_color: bool) -> None:
    """Heading, layers, and parameters by part."""
    from fitcheck.cli.screen import console, show

    model, target = prepared.model, console(no_color, narrowest=NARROW)
    lines: list[Any] = [*heading(prepared, run), ""]
    lines += layer_picture(model.lists["layer_groups"], target.width)
    total = run.value(BUILT)
    lines += ["", part_table(total, named_parts(run), target.width)]
    active = run.value("active_parameters")
    if active != run.value("parameters"):
        lines += ["", f"{active:,} ({count(active)}) parameters meet a token"]
    show(lines, no_color, target)


def heading(prepared: Prepared, run: Run) -> Sequence[str]:
    model = prepared.model
    versions = prepared.rules.flags.versions(prepared.settings).items()
    stack = ", ".join(f"{name} {version}" for name, version in versions)
    checked = "checked against its class" if model.verified else "never checked"
    checked = "; ".join(model.absent) or checked
    total = run.value(BUILT)
    counted = model.counted_parameters
    exact = "" if counted in (None, total) else f"; the source counts {counted:,}"
    return (
        f"{harmless(model.name)} ({harmless(model.model_type or 'no model_type')})",
        f"{total:,} parameters ({count(total)}){exact}",
        f"profiles/architectures/{model.architecture}.yaml, {checked}; facts of {stack}",
        harmless(model.source),
    )


def named_parts(run: Run) -> list[tuple[str, int]]:
    """(words, parameters) of every part that there is."""
    formulas = run.rules.formulas
    found = [(formulas[name].part, value) for name, value in parts(run).items() if value]
    rest = run.value(BUILT) - sum(value for _, value in found)
    return [*found, ("other matrices", rest)] if rest else found
