"""Derivations as text, Markdown, LaTeX and JSON."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from .printer import LATEX
from .record import as_dict

if TYPE_CHECKING:
    from .derivation import Step

WIDTH = 100


def _heading(step: Step) -> str:
    return f"{step.title} ({step.id})" + (f", {step.item}" if step.item else "")


def _wrap(text: str, indent: str, first: str | None = None) -> str:
    return textwrap.fill(
        text,
        WIDTH,
        initial_indent=first if first is not None else indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def as_text(steps: Sequence[Step]) -> str:
    """Three lines a quantity (formula, numbers, result), then where each value came from."""
    blocks = []
    for step in steps:
        lines = [
            f"{_heading(step)}  [{step.place}{', case ' + step.case if step.case else ''}]",
            _wrap(step.formula, "      ", "  = "),
        ]
        if step.numbers != step.formula and step.numbers not in step.result:
            lines.append(_wrap(step.numbers, "      ", "  = "))
        lines.append(f"  = {step.result}")
        if step.says:
            lines.append(_wrap(step.says, "    ", "    "))
        if step.because:
            lines.append(_wrap(f"case {step.case} because {step.because}", "      ", "    "))
        if step.bindings:
            lines += _bindings(step)
        for proof in step.evidence:
            lines.append(_wrap(f"{proof.grade}: {proof.says} ({proof.where})", "      ", "    "))
        for limit in step.limits:
            lines.append(_wrap(f"limit, {limit}", "      ", "    "))
        if step.excludes:
            names = "; ".join(f"{n}: {s}" for n, s in step.excludes.items())
            lines.append(_wrap(f"not counted here: {names}", "      ", "    "))
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def _bindings(step: Step) -> list[str]:
    name_width = min(24, max(len(b.name) for b in step.bindings))
    values = [f"{b.value} {b.unit}".strip() for b in step.bindings]
    value_width = min(34, max(map(len, values)))
    lines = []
    for binding, value in zip(step.bindings, values, strict=True):
        head = f"      {binding.name:<{name_width}}  "
        origin = binding.origin + (f": {binding.meaning}" if binding.meaning else "")
        if len(value) > value_width:  # a list: it gets lines of its own
            lines.append(_wrap(value, " " * len(head), head))
            lines.append(_wrap(origin, " " * (len(head) + 2)))
        else:
            lines.append(_wrap(origin, " " * 44, f"{head}{value:<{value_width}}  "))
    return lines


def as_markdown(steps: Sequence[Step]) -> str:
    """One section a quantity."""
    blocks = []
    for step in steps:
        lines = [
            f"### {_heading(step)}",
            "",
            f"`{step.place}`"
            + (f", case `{step.case}`" if step.case else "")
            + (f", because `{step.because}`" if step.because else ""),
            "",
            "```text",
            f"{step.id} = {step.formula}",
        ]
        if step.numbers != step.formula:
            lines.append(f"{' ' * len(step.id)} = {step.numbers}")
        lines += [f"{' ' * len(step.id)} = {step.result}", "```", ""]
        if step.says:
            lines += [step.says, ""]
        if step.bindings:
            lines += ["| name | value | unit | from | meaning |", "|:---|---:|:---|:---|:---|"]
            lines += [
                "| "
                + " | ".join(
                    _cell(c) for c in (f"`{b.name}`", b.value, b.unit, b.origin, b.meaning)
                )
                + " |"
                for b in step.bindings
            ]
            lines.append("")
        lines += [f"- **{p.grade}**: {p.says} (`{p.where}`)" for p in step.evidence]
        lines += [f"- *limit, {limit}*" for limit in step.limits]
        blocks.append("\n".join(lines).rstrip())
    return "\n\n".join(blocks)


def _cell(text: str) -> str:
    return text.replace("|", r"\|").replace("\n", " ")


def as_latex(steps: Sequence[Step]) -> str:
    """One `align*` a quantity, ready to paste into a document that loads amsmath."""
    blocks = []
    for step in steps:
        lhs = LATEX.name(step.id)
        lines = [f"% {_heading(step)}, {step.place}", r"\begin{align*}"]
        if step.latex[0] == step.formula and not step.case:  # a search or a band: words, no math
            rows = [
                rf"\text{{{_latex_text(step.formula)}}}",
                rf"\text{{{_latex_text(step.numbers)}}}",
            ]
        else:
            rows = list(dict.fromkeys(step.latex))
        result = _latex_text(step.result).replace(",", "{,}")
        rows.append(rf"\text{{{result}}}")
        lines.append(f"{lhs} &= " + " \\\\\n &= ".join(rows))
        lines.append(r"\end{align*}")
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def _latex_text(text: str) -> str:
    for char in "\\{}":
        text = text.replace(char, "")
    for char in "_%&#$":
        text = text.replace(char, f"\\{char}")
    return text.replace("<", r"$<$").replace(">", r"$>$").replace("**", "^").replace("^", r"\^{}")


def as_json(steps: Sequence[Step]) -> str:
    """A list of objects with the same fields in the same order."""
    return json.dumps([_plain(as_dict(s)) for s in steps], indent=2, ensure_ascii=False)


def _plain(value: Any) -> Any:
    if isinstance(value, Fraction):
        return float(value)
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return value


FORMATS: Mapping[str, Callable[[Sequence[Step]], str]] = {
    "text": as_text,
    "markdown": as_markdown,
    "latex": as_latex,
    "json": as_json,
}
