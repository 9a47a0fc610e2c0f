"""`rules new architecture --from CONFIG`: propose, lint, resolve, and hold against the class."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import click

from fitcheck.cli.output import harmless, say as note
from fitcheck.cli.rules.changing import place
from fitcheck.cli.rules.layout import say
from fitcheck.engine.api import read_model, rules_for
from fitcheck.engine.architecture import Model
from fitcheck.engine.rules import Rules
from fitcheck.engine.sources.local import load_local
from fitcheck.engine.workshop.new_architecture import parameters, proposal

LONGEST = 600  # seconds that building a class may take


def begin(
    rules: Rules,
    name: str | None,
    config: str | None,
    folder: str,
    folders: tuple[str, ...],
    check: bool,
) -> int:
    """Write the file; the exit status is 1 where the class that is built says otherwise."""
    if config is None:
        raise click.UsageError("An architecture is made from a config: give --from CONFIG.")
    raw = load_local(config)
    made, matches = proposal(rules, name, raw.config)
    best = matches[0]
    read, unread = len({key for _, key in best.read}), len(best.unread)
    say(f"nearest: {best.architecture.id}, which reads {read} keys and leaves {unread} open")
    for part in made[1:]:
        say(f"the text part is of a new type too: {part.place}")
    others = {match.total: match.architecture.id for match in reversed(matches[:12])}
    others.pop(best.total, None)
    for total, family in list(others.items())[-2:]:
        say(f"read like {family} it would have {total:,} parameters")
    for file in made:
        place(file, folder)
    changed = rules_for((*folders, folder))
    model = read_model(changed, raw.config, "auto")
    total = parameters(model)
    say(f"resolves to {total:,} parameters in {layers(model)}: a guess until it was compared")
    return against_class(raw.config, total) if check else 0


def layers(model: Model) -> str:
    return " + ".join(str(group["title"]) for group in model.lists["layer_groups"])


def against_class(config: Mapping[str, Any], total: int) -> int:
    """Build the class in a process of its own and compare; 2 where it cannot be built."""
    import tempfile

    with tempfile.TemporaryDirectory() as scratch:
        path = os.path.join(scratch, "config.json")
        with open(path, "w", encoding="utf-8") as handle:
            json.dump(config, handle)
        command = [sys.executable, "-m", "fitcheck.measurement.built_class", path]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        note("error", f"the class could not be built: {harmless(last)}")
        return 2
    found = json.loads(done.stdout.strip().splitlines()[-1])
    label = f"{found['class']} of transformers {found['transformers']}"
    if found["parameters"] == total:
        say(f"{label} has exactly as many")
        return 0
    gap = total - found["parameters"]
    say(f"{label} has {found['parameters']:,}, {abs(gap):,} {'fewer' if gap > 0 else 'more'}")
    return 1
