"""Write the generated pages, or with --check say which of them are out of date.

Those of docs/ are the pages of `fitcheck rules docs`; the accuracy table of README.md, which comes
from the evidence, is added here.
"""

from __future__ import annotations

import sys
from pathlib import Path

from fitcheck.engine.loading import load_rules
from fitcheck.engine.workshop.pages import pages
from fitcheck.engine.workshop.written import bring_up_to_date, differing, left_over
from fitcheck.measurement.accuracy import Line, table

ROOT = Path(__file__).resolve().parent.parent
DOCS, README = ROOT / "docs", ROOT / "README.md"
BEGIN, END = "<!-- accuracy:begin -->", "<!-- accuracy:end -->"


def accuracy_table() -> str:
    """Both tiers by set and group, worst under-prediction first, as Markdown."""
    lines = [
        "| rows | n | tensors: worst under | mean | worst over | process: worst under | mean | "
        "worst over |",
        "|:---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    lines += [row(line) for line in table() if line.set != "notebook" or line.group]
    return "\n".join(lines)


def row(line: Line) -> str:
    """One row of the table, in percent."""
    name = f"**{line.set}**" if line.group is None else line.group
    if line.set == "notebook":
        name = f"{line.group} (whole-MiB rows)"
    cells = [
        f"{value:+.1f} %" if signed else f"{value:.1f} %"
        for tier in (line.tensors, line.process)
        for value, signed in ((tier.under, True), (tier.mean, False), (tier.over, True))
    ]
    return f"| {name} | {line.tensors.rows} | {' | '.join(cells)} |"


def readme() -> tuple[str, str]:
    """README.md as it is, and with the accuracy table of today's rules and evidence."""
    text = README.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    return text, f"{before}{BEGIN}\n{accuracy_table()}\n{END}{rest.split(END)[1]}"


def check() -> list[str]:
    """What is out of date, as a path below the project and what is the matter."""
    made = pages(load_rules())
    found = [f"docs/{name} is out of date" for name in differing(made, str(DOCS))]
    found += [f"docs/{name} is left over" for name in left_over(made, str(DOCS))]
    old, new = readme()
    return found + (["README.md is out of date"] if old != new else [])


def write() -> list[str]:
    """Bring everything up to date; returns what was done."""
    written, removed = bring_up_to_date(pages(load_rules()), str(DOCS))
    done = [f"wrote docs/{name}" for name in written] + [f"removed docs/{n}" for n in removed]
    old, new = readme()
    if old != new:
        README.write_text(new, encoding="utf-8")
        done.append("wrote README.md")
    return done


def main(arguments: list[str]) -> int:
    """Write, or check and return 1 where a page differs."""
    checking = "--check" in arguments
    found = check() if checking else write()
    for line in found:
        print(f"{line}: run python docs/generate.py" if checking else line)
    return 1 if checking and found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
