"""The pages of the lint codes, from `codes.yaml`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache

from ..errors import InputProblem
from ..record import record
from ..scope import suggest
from ..yaml_source import read

_FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "codes.yaml")


@record
class Page:
    """One lint code: what it checks, a wrong and a right example, how to mend; `names` by name."""

    code: str
    title: str
    names: Mapping[str, str]
    checks: str
    wrong: str
    right: str
    mend: str


@lru_cache(maxsize=1)
def pages() -> Mapping[str, Page]:
    """Every page by its code, in ascending order."""
    data = read(_FILE, "engine/workshop/codes.yaml").data["codes"]
    return {
        code: Page(
            code,
            str(entry["title"]),
            {str(n): str(says) for n, says in entry["names"].items()},
            str(entry["checks"]),
            str(entry["wrong"]).rstrip(),
            str(entry["right"]).rstrip(),
            str(entry["mend"]),
        )
        for code, entry in sorted(data.items())
    }


def page(text: str) -> Page:
    """The page of a code (`F204`, `f204`) or of a name (`unit-mismatch`); raises `InputProblem`."""
    known = pages()
    wanted = text.strip().casefold()
    for found in known.values():
        if wanted in (found.code.casefold(), *found.names):
            return found
    names = {name for found in known.values() for name in found.names}
    near = suggest(wanted.upper(), known) or suggest(wanted, names)
    raise InputProblem(
        f"There is no lint code `{text}`.{near} `fitcheck rules explain` lists them."
    )
