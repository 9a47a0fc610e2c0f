"""The generated pages as a whole: where the page of each rule file lies, and its file."""

from __future__ import annotations

import os

from ..errors import Mark
from ..formula import Evidence
from ..grades import KINDS
from ..loading import placed
from ..rules import Rules
from .everything import Everything
from .markdown import code, link, origin, plain, sentence, table

DIRECTIONS = {
    "under": "the estimate is too low",
    "over": "the estimate is too high",
    "unknown": "off in a direction nobody knows",
}


class Book:
    """Places are paths below docs/, as GitHub and every editor shows Markdown."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules

    def quantity(self, name: str) -> str:
        """The page of a component or another quantity."""
        folder = "components" if self.rules.formulas[name].live else "quantities"
        return f"{folder}/{name}.md"

    def folder(self, kind: str) -> str:
        """Where the pages of profiles of a kind, or of statuses, lie."""
        return placed(f"profiles/{kind}", self.rules.mode.id if self.rules.mode else None)

    def command(self, name: str) -> str:
        """The command that shows a quantity with somebody's numbers."""
        home = self.rules.home(name) if isinstance(self.rules, Everything) else self.rules
        return f"fitcheck {f'{home.mode.command} ' if home.mode else ''}MODEL ... --derive {name}"

    def graph(self, name: str) -> str:
        """The drawing that has a quantity in it."""
        home = self.rules.home(name) if isinstance(self.rules, Everything) else self.rules
        return graph_of(home)

    def named(self, here: str, name: str) -> str:
        """A quantity as a link where it has a page, else as code."""
        known = name in self.rules.formulas
        return link(here, self.quantity(name), code(name)) if known else code(name)

    def file(self, here: str, mark: Mark, overlay: bool, line: int = 0) -> str:
        """A link to a rule file; a changed file lies somewhere else and is only named."""
        if overlay or os.path.isabs(mark.path):
            return code(mark.path)
        part = f"#L{line}" if line else ""
        return link(here, f"../{mark.path}{part}", f"{mark.path}{f':{line}' if line else ''}")


def graph_of(rules: Rules) -> str:
    """The page of the dependency graph of training or of a mode."""
    return f"graph-{rules.mode.id}.svg" if rules.mode else "graph.svg"


def graded(evidence: Evidence) -> str:
    """`measured (69 rows, T4)`: the grade that evidence of this kind gives at best."""
    grade = KINDS[evidence.kind]
    if not evidence.rows:
        return grade
    rows = f"{evidence.rows} row{'s' if evidence.rows != 1 else ''}"
    return f"{grade} ({', '.join([rows, *(c.upper() for c in evidence.cards)])})"


def evidence_table(here: str, proofs: list[Evidence]) -> list[str]:
    """What a file rests on; a measurement used outside its conditions counts as derived."""
    rows = [
        (
            plain(e.id),
            graded(e),
            code(e.within_text),
            sentence(e.says),
            origin(here, e.where),
        )
        for e in proofs
    ]
    if not any(row[2] for row in rows):
        heads = ("name", "grade", "what it says", "where")
        return table(heads, [(*row[:2], *row[3:]) for row in rows])
    return table(("name", "grade", "made under", "what it says", "where"), rows)
