"""The golden appendix: every exact number of the reference configurations, as Markdown."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from ..loading import bundled_root
from ..rules import Rules
from ..spelling import spelled
from .reference import Configuration, Outcome, configurations, evaluate
from .values import mib_text, value_text

HEAD = """\
# Golden appendix

Every number of the rules for the reference configurations (`engine/workshop/reference.yaml`),
exact to the byte. `fitcheck rules golden --write` writes this page and `fitcheck rules golden`
checks it; a change of it is a change of an answer, and the CHANGELOG says why.
"""


def page(rules: Rules) -> str:
    """The whole appendix."""
    return "\n".join([HEAD, *(line for c in configurations() for line in _section(rules, c))])


def _section(rules: Rules, configuration: Configuration) -> Iterator[str]:
    outcome, words = evaluate(rules, configuration), " ".join(command(rules, configuration))
    rules = configuration.rules(rules)
    yield f"## {configuration.title}"
    yield ""
    yield f"`{words}`"
    yield ""
    if outcome.refused:
        yield f"Refused: {outcome.refused}"
        yield ""
        return
    yield f"**{outcome.verdict}**"
    yield ""
    yield "| quantity | value | MiB | unit |"
    yield "|:---|---:|---:|:---|"
    yield from _rows(rules, outcome)
    yield ""


def _rows(rules: Rules, outcome: Outcome) -> Iterator[str]:
    for name, value in outcome.values.items():
        formula = rules.formulas[name.partition("[")[0]]
        unit = formula.unit.text
        mib = mib_text(value).removesuffix(" MiB") if unit == "byte" else ""
        shown = f"**{name}**" if formula.live else name
        yield f"| {shown} | {_exact(value)} | {mib} | {'' if unit in ('truth', 'text') else unit} |"


def _exact(value: Any) -> str:
    """A value without rounding: a fraction that no decimal ends stays one."""
    text = value_text(value)
    exact = not hasattr(value, "denominator") or value.denominator == 1
    return text if exact else f"{text} ({value.numerator}/{value.denominator})"


def command(rules: Rules, configuration: Configuration) -> list[str]:
    """The words of the command line that asks for a configuration."""
    rules = configuration.rules(rules)
    words = ["fitcheck", *([rules.mode.command] if rules.mode else []), configuration.model]
    for name, value in configuration.flags.items():
        short = rules.flags.shorthands.get(name)
        if short is not None:
            words.append(short.option)
        elif name in rules.flags.flags:
            flag = rules.flags.flags[name]
            words += spelled(flag, rules.flags.check(flag, value))
    if configuration.gpu is not None:
        words += ["--gpu", configuration.gpu]
    if configuration.vram_mib is not None:
        words += ["--vram-mib", str(configuration.vram_mib)]
    return words


def checkout() -> str | None:
    """The top of the source checkout around the bundled rules; None in an installed package."""
    top = os.path.dirname(os.path.realpath(os.path.join(bundled_root(), "formulas")))
    return top if os.path.isfile(os.path.join(top, "pyproject.toml")) else None
