"""One formula file as frozen data: symbols, constants, tables, cases, limits, evidence."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from .errors import Mark, RuleFileError
from .record import record

if TYPE_CHECKING:
    from . import expression as ex
    from .units import Unit
    from .yaml_problems import Path
    from .yaml_source import Source

Exact = int | Fraction
LOW, VALUE, HIGH = 0, 1, 2
WILDCARD = "any"


@record
class Evidence:
    """Why a number may be believed; `kind` decides its grade (`grades.py`)."""

    id: str
    kind: str
    where: str
    says: str
    rows: int | None
    cards: tuple[str, ...]
    within: ex.Node | None
    within_text: str


@record
class Symbol:
    """A name in a formula and where its value comes from."""

    name: str
    source: str
    unit: Unit | None
    oneof: tuple[Any, ...]
    low: Exact | None
    integer: bool
    meaning: str
    mark: Mark

    @property
    def list_path(self) -> str | None:
        """`layer_groups.modules` for `layer_groups[].modules[].d_in`, None for a plain source."""
        return self.source.rpartition(".")[0].replace("[]", "") if "[]" in self.source else None

    @property
    def field(self) -> str:
        return self.source.rpartition(".")[2]


@record
class Constant:
    """A named number; `band` is (low, value, high), all equal where no band is known."""

    name: str
    band: tuple[Exact, Exact, Exact]
    unit: Unit
    meaning: str
    evidence: tuple[str, ...]
    mark: Mark

    @property
    def value(self) -> Exact:
        return self.band[VALUE]


@record
class Table:
    """Cells by the values of flags; the key `any` in a cell stands for every other value."""

    name: str
    axes: tuple[str, ...]
    unit: Unit
    meaning: str
    cells: Mapping[tuple[Any, ...], Exact]
    evidence: tuple[str, ...]
    mark: Mark

    def cell(self, key: tuple[Any, ...]) -> Exact | None:
        """The cell for these axis values, None where there is none."""
        found = self.cells.get(key)
        if found is None:
            for stored, value in self.cells.items():
                if all(s in (WILDCARD, k) for s, k in zip(stored, key, strict=True)):
                    return value
        return found


@record
class Case:
    """One branch of a formula: when it holds, what it says, why."""

    id: str
    when: ex.Node | None
    expr: ex.Node
    when_text: str
    text: str
    says: str
    evidence: tuple[str, ...]
    path: Path
    mark: Mark


@record
class Limit:
    """
    Where a formula ends: refuse, warn, tell or note, with the direction of the error; `caps` says
    that no run for which it holds is called safe.
    """

    id: str
    level: str
    direction: str
    caps: bool
    when: ex.Node | None
    when_text: str
    says: str
    path: Path
    mark: Mark


def spelled(value: Any) -> str:
    """The text of an expression as a file has it; `true` and numbers need no quotes there."""
    return str(value).lower() if isinstance(value, bool) else str(value)


class Unparsed:
    """An expression that has not been needed yet."""

    def __init__(self, source: Source, path: Path, text: str) -> None:
        self.source, self.path, self.text = source, path, text

    def parse(self) -> ex.Node:
        """The tree; raises `RuleFileError` with the place."""
        from . import expression as ex

        try:
            return ex.parse(self.text)
        except ex.ExpressionError as error:
            mark = self.source.inside(self.path, error.offset)
            problem = self.source.problem(error.code, error.name, mark, error.message)
            raise RuleFileError([problem]) from None


class Parsed:
    """A field whose tree is parsed when it is first read."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self
        value = instance.__dict__[self.name]
        if type(value) is Unparsed:
            value = instance.__dict__[self.name] = value.parse()
        return value

    def __set__(self, instance: Any, value: Any) -> None:
        raise AttributeError(f"`{self.name}` cannot be changed")


@record
class Example:
    """A worked example: values for the local names, and the exact result."""

    name: str
    given: Mapping[str, Any]
    expect: Any
    path: Path


@record
class Search:
    """The largest value of a flag for which a condition still holds."""

    flag: str
    condition: ex.Node
    text: str


for _owner, _names in (
    (Evidence, ("within",)),
    (Case, ("when", "expr")),
    (Limit, ("when",)),
    (Search, ("condition",)),
):
    for _name in _names:
        setattr(_owner, _name, Parsed(_name))


@record(identity=True)
class Formula:
    """A quantity or memory component, as its file states it."""

    id: str
    title: str
    status: str
    unit: Unit
    per: str | None
    live: tuple[str, ...]
    order: int
    part: str
    rounded: bool
    json: Mapping[str, str]
    counts: str
    excludes: Mapping[str, str]
    flags: tuple[str, ...]
    reads: tuple[str, ...]
    oneof: tuple[Any, ...]
    symbols: Mapping[str, Symbol]
    constants: Mapping[str, Constant]
    tables: Mapping[str, Table]
    cases: tuple[Case, ...]
    limits: tuple[Limit, ...]
    claims: Mapping[str, Any]
    evidence: Mapping[str, Evidence]
    examples: tuple[Example, ...]
    search: Search | None
    band: tuple[str, int] | None
    source: Source
    overlay: bool = False
    quiet: bool = False  # a component whose line is left out where it is zero

    def declared(self) -> set[str]:
        """Every name an expression of this file may use."""
        return {*self.symbols, *self.constants, *self.tables, *self.flags, *self.reads}
