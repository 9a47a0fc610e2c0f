"""From a parsed rule file to a `Formula`, with every problem of reading it noted on the way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from . import expression as ex
from .errors import Problem, RuleFileError
from .formula import (
    HIGH,
    LOW,
    Case,
    Constant,
    Evidence,
    Exact,
    Example,
    Formula,
    Limit,
    Search,
    Symbol,
    Table,
    Unparsed,
    spelled,
)
from .units import ONE, Unit, UnitError, Units

if TYPE_CHECKING:
    from .yaml_problems import Path
    from .yaml_source import Source

T = TypeVar("T")

LOGICAL_UNITS = ("truth", "text")  # results that are no amounts
_KINDS: Mapping[type, str] = {
    dict: "a mapping (`key: value` lines)",
    list: "a list",
    int: "a whole number",
    bool: "true or false",
}


class FormulaReader:
    """Turns one parsed file into a `Formula`."""

    def __init__(
        self, source: Source, units: Units, overlay: bool = False, lazy: bool = False
    ) -> None:
        self.source, self.units, self.overlay, self.lazy = source, units, overlay, lazy
        self.data: dict[str, Any] = source.data
        self.problems: list[Problem] = []

    def note(self, code: str, name: str, path: Path, message: str, offset: int = 0) -> None:
        """Remember a problem and go on, so that one run finds them all."""
        mark = self.source.inside(path, offset)
        self.problems.append(self.source.problem(code, name, mark, message))

    def fail(self, code: str, name: str, path: Path, message: str, offset: int = 0) -> NoReturn:
        """Give up on this file with everything found so far."""
        self.note(code, name, path, message, offset)
        raise RuleFileError(self.problems)

    def finish(self) -> None:
        """Raise what was noted."""
        if self.problems:
            raise RuleFileError(self.problems)

    def tree(self, path: Path, value: Any) -> Any:
        """The tree of an expression, or one that is parsed when it is first asked for."""
        if isinstance(value, (int, bool)):
            value = str(value).lower()
        if self.lazy and isinstance(value, str):
            return Unparsed(self.source, path, value)
        try:
            return ex.parse(value)
        except ex.ExpressionError as error:
            self.note(error.code, error.name, path, error.message, error.offset)
            return ex.Truth(0, True)

    def unit(self, path: Path, value: Any) -> Unit:
        if value in LOGICAL_UNITS:
            return Unit(((f"({value})", 1),), str(value))
        try:
            return self.units.parse(value)
        except UnitError as error:
            self.note("F205", "unknown-unit", path, f"{error}.")
            return ONE

    def amount(self, path: Path, value: Any) -> tuple[Exact, Unit]:
        """A plain number, or a size such as `500 MiB`."""
        if isinstance(value, bool) or not isinstance(value, (int, Fraction, str)):
            self.note("F203", "not-a-number", path, f"`{value}` is not a number.")
            return 0, ONE
        if isinstance(value, str):
            try:
                return self.units.quantity(value)
            except UnitError as error:
                self.note("F703", "ambiguous-size", path, f"{error}.")
                return 0, ONE
        return value, ONE

    def read(self) -> Formula:
        """The whole file; raises `RuleFileError` with everything that cannot be read."""
        formula = self.attempt()
        self.finish()
        return formula

    def attempt(self) -> Formula:
        """The file with stand-ins for what cannot be read; `problems` says what that was."""
        data = self.data
        search, band = self.part("search", dict), self.part("band", dict)
        return Formula(
            id=str(data["id"]),
            title=str(data["title"]),
            status=str(data.get("status", "draft")),
            unit=self.unit(("unit",), data.get("unit", "truth")),
            per=data.get("per"),
            live=self.words("live"),
            order=self.part("order", int) or 0,
            part=str(data.get("part", "")),
            rounded=data.get("round") == "nearest",
            json=self.texts("json"),
            counts=str(data.get("counts", "")),
            excludes=self.texts("excludes"),
            flags=self.words("flags"),
            reads=self.words("reads"),
            oneof=tuple(self.part("oneof", list) or ()),
            symbols=self.each("symbols", self.symbol),
            constants=self.each("constants", lambda n, c: self.constant(("constants", n), n, c)),
            tables=self.each("tables", self.table),
            cases=self.all("cases", self.case),
            limits=self.all("limits", self.limit),
            claims=self.part("claims", dict) or {},
            evidence=self.each("evidence", self.proof),
            examples=self.all("examples", self.example),
            search=Search(
                search["largest"],
                self.tree(("search", "while"), search["while"]),
                spelled(search["while"]),
            )
            if search
            else None,
            band=(band["of"], LOW if band["end"] == "low" else HIGH) if band else None,
            source=self.source,
            overlay=self.overlay,
            quiet=self.part("quiet", bool) or False,
        )

    def part(self, key: str, kind: type) -> Any:
        """A top-level value of one kind; None, with a note, where it is of another."""
        value = self.data.get(key)
        if value is not None and not isinstance(value, kind):
            self.note("F108", "bad-value", (key,), f"`{key}` has to be {_KINDS[kind]}.")
            return None
        return value

    def words(self, key: str) -> tuple[str, ...]:
        """A top-level list of names."""
        found = self.part(key, list) or []
        if not all(isinstance(v, str) for v in found):
            self.note("F108", "bad-value", (key,), f"`{key}` has to be a list of names.")
            return ()
        return tuple(found)

    def texts(self, key: str) -> dict[str, str]:
        """A top-level mapping from names to text."""
        return {n: str(v) for n, v in (self.part(key, dict) or {}).items()}

    def each(self, key: str, read: Callable[[str, Any], T]) -> dict[str, T]:
        """The entries of a top-level mapping, without those of another shape."""
        found = {}
        for name, value in (self.part(key, dict) or {}).items():
            entry = self.shaped((key, name), partial(read, name, value))
            if entry is not None:
                found[name] = entry
        return found

    def all(self, key: str, read: Callable[[int, Any], T]) -> tuple[T, ...]:
        """The entries of a top-level list, without those of another shape."""
        found = []
        for index, value in enumerate(self.part(key, list) or ()):
            entry = self.shaped((key, index), partial(read, index, value))
            if entry is not None:
                found.append(entry)
        return tuple(found)

    def shaped(self, path: Path, read: Callable[[], T]) -> T | None:
        """What `read` gives; None, with a note, where the entry lacks a key or has a wrong type."""
        try:
            return read()
        except KeyError as error:
            message = f"`{error.args[0]}` is missing here."
            self.note("F107", "missing-key", path, message)
        except (TypeError, ValueError, AttributeError, IndexError):
            self.note("F108", "bad-value", path, "This entry does not have the expected shape.")
        return None

    def example(self, index: int, data: dict[str, Any]) -> Example:
        return Example(str(data["name"]), dict(data["given"]), data["expect"], ("examples", index))

    def symbol(self, name: str, data: dict[str, Any]) -> Symbol:
        path: Path = ("symbols", name)
        unit = self.unit((*path, "unit"), data["unit"]) if "unit" in data else None
        return Symbol(
            name,
            str(data["from"]),
            unit,
            tuple(data.get("oneof", ())),
            data.get("min"),
            bool(data.get("integer", False)),
            str(data["meaning"]),
            self.source.key_mark(path),
        )

    def constant(self, path: Path, name: str, data: Any) -> Constant:
        """A constant of a formula or of a profile."""
        if not isinstance(data, dict) or "value" not in data:
            self.fail("F101", "missing-value", path, f"`{name}` needs a `value`.")
        value, unit = self.amount((*path, "value"), data["value"])
        low = self.amount((*path, "low"), data["low"])[0] if "low" in data else value
        high = self.amount((*path, "high"), data["high"])[0] if "high" in data else value
        if not low <= value <= high:
            self.note(
                "F704", "bad-band", path, f"The band of `{name}` has to be low <= value <= high."
            )
        if "unit" in data:
            unit = self.unit((*path, "unit"), data["unit"])
        return Constant(
            name,
            (low, value, high),
            unit,
            str(data.get("meaning", "")),
            tuple(data.get("evidence", ())),
            self.source.key_mark(path),
        )

    def table(self, name: str, data: dict[str, Any]) -> Table:
        path: Path = ("tables", name)
        axes = tuple(data["axes"])
        cells: dict[tuple[Any, ...], Exact] = {}

        def fill(level: int, part: Any, key: tuple[Any, ...], where: Path) -> None:
            if level == len(axes):
                cells[key] = self.amount(where, part)[0]
                return
            if not isinstance(part, dict):
                self.fail(
                    "F304",
                    "bad-table",
                    where,
                    f"`{name}` needs one more level here: a cell for every {axes[level]}.",
                )
            for word, below in part.items():
                value = {"true": True, "false": False}.get(word, word)
                fill(level + 1, below, (*key, value), (*where, word))

        fill(0, data["cells"], (), (*path, "cells"))
        return Table(
            name,
            axes,
            self.unit((*path, "unit"), data["unit"]),
            str(data["meaning"]),
            cells,
            tuple(data.get("evidence", ())),
            self.source.key_mark(path),
        )

    def case(self, index: int, data: dict[str, Any]) -> Case:
        path: Path = ("cases", index)
        when = data.get("when")
        return Case(
            str(data["id"]),
            None if when is None else self.tree((*path, "when"), when),
            self.tree((*path, "expr"), data["expr"]),
            "" if when is None else spelled(when),
            spelled(data["expr"]),
            str(data.get("says", "")),
            tuple(data.get("evidence", ())),
            path,
            self.source.key_mark((*path, "expr")),
        )

    def limit(self, index: int, data: dict[str, Any]) -> Limit:
        path: Path = ("limits", index)
        when = data.get("when")
        return Limit(
            str(data["id"]),
            str(data["level"]),
            str(data["direction"]),
            bool(data.get("caps", False)),
            None if when is None else self.tree((*path, "when"), when),
            "" if when is None else spelled(when),
            " ".join(str(data["says"]).split()),
            path,
            self.source.mark(path),
        )

    def proof(self, name: str, data: dict[str, Any]) -> Evidence:
        path: Path = ("evidence", name)
        within = data.get("within")
        return Evidence(
            name,
            str(data["kind"]),
            str(data["where"]),
            str(data["says"]),
            data.get("rows"),
            tuple(data.get("cards", ())),
            None if within is None else self.tree((*path, "within"), within),
            "" if within is None else spelled(within),
        )
