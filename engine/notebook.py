"""The report as a small HTML table, for notebooks; no style sheet, readable on any ground."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING

from .explain import peak
from .template import mib

if TYPE_CHECKING:
    from .report import Report

BORDER = "1px solid rgba(128,128,128,.35)"
CELL = "padding:2px 12px 2px 0;text-align:left;vertical-align:middle"
NUMBER = "padding:2px 12px 2px 0;text-align:right;font-variant-numeric:tabular-nums"
BAR = "background:#5b8def;height:.7em;border-radius:2px"


def to_html(report: Report) -> str:
    """Components with bars, total, verdict and caveats; every text is escaped."""
    prepared, phase = report.prepared, peak(report)
    total = report.phases[phase]
    largest = max([1, *(c.bytes for c in report.components)])
    heads = (
        ("component", CELL),
        ("size", NUMBER),
        ("of total", NUMBER),
        ("", CELL),
        ("evidence", CELL),
    )
    rows = [
        f'<tr style="background:none;opacity:.7">{_cells(heads)}</tr>',
    ]
    rows += [
        _row(
            (c.title, CELL),
            (mib(c.bytes), NUMBER),
            (f"{c.bytes / total:.1%}" if _there(c.phases, phase) and total else "-", NUMBER),
            bar=c.bytes / largest,
            last=str(c.grade),
        )
        for c in report.components
    ]
    rows.append(
        f'<tr style="border-top:{BORDER};font-weight:bold">'
        f'<td style="{CELL}">total</td><td style="{NUMBER}">{escape(mib(total))}</td>'
        f'<td style="{NUMBER}">100.0%</td><td colspan="2" style="{CELL}">'
        f"{escape(f'peak: {phase}')}</td></tr>"
    )
    notes = "".join(
        f"<li>{escape(text)}</li>"
        for text in (
            *report.reasons,
            *report.unsettled,
            *([prepared.card.note] if prepared.card.note else ()),
            *report.remarks,
            *report.warnings,
        )
    )
    head = f"{prepared.model.name} on {prepared.card.title}"
    return (
        f'<div style="font-size:13px;color:inherit"><p style="margin:0 0 6px"><b>{escape(head)}</b>'
        f'<br><span style="opacity:.7">{escape(prepared.model.source)}</span></p>'
        f'<table style="border-collapse:collapse;color:inherit">{"".join(rows)}</table>'
        f'<p style="margin:6px 0 0"><b style="border:{BORDER};border-left:4px solid '
        f'{_colour(report.style)};padding:1px 8px">{escape(report.title)}</b></p>'
        f'<ul style="margin:4px 0 0">{notes}</ul></div>'
    )


def _there(phases: tuple[str, ...], phase: str) -> bool:
    return phase in phases or "always" in phases


def _cells(cells: Iterable[tuple[str, str]]) -> str:
    return "".join(f'<td style="{style}">{escape(text)}</td>' for text, style in cells)


def _row(*cells: tuple[str, str], bar: float, last: str) -> str:
    return (
        f'<tr style="background:none">{_cells(cells)}<td style="{CELL};min-width:160px">'
        f'<div style="{BAR};width:{bar:.1%}"></div></td>'
        f'<td style="{CELL};opacity:.7">{escape(last)}</td></tr>'
    )


def _colour(style: str) -> str:
    """The status file's style as a CSS colour, grey where it is more than one word."""
    return style if style.isalpha() else "gray"
