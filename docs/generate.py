"""Write the generated pages, or with --check say which of them are out of date.

docs/glossary.md comes from the rule files, the accuracy table of README.md from the evidence.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from fitcheck.engine.glossary import glossary
from fitcheck.engine.loading import load_rules
from fitcheck.measurement.accuracy import Line, table

ROOT = Path(__file__).resolve().parent.parent
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


def pages() -> Mapping[Path, str]:
    """Every generated file with the text it should have."""
    readme = ROOT / "README.md"
    text = readme.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    return {
        ROOT / "docs" / "glossary.md": glossary(load_rules()),
        readme: f"{before}{BEGIN}\n{accuracy_table()}\n{END}{after}",
    }


def main(arguments: list[str]) -> int:
    """Write, or check and return 1 where a page differs."""
    stale = [
        path
        for path, text in pages().items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    for path in stale:
        if "--check" in arguments:
            print(f"{path.relative_to(ROOT)} is out of date: run python docs/generate.py")
        else:
            path.write_text(pages()[path], encoding="utf-8")
            print(f"wrote {path.relative_to(ROOT)}")
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
