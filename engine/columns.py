"""Facts of many configurations: flags, records and lists whose values are arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from .arrays import NAN, PRESENT, Coded, array_like, packed
from .errors import InputProblem
from .flags import FlagSet, Settings
from .run import Facts
from .scope import suggest


def column(values: Any) -> Any:
    """An array or list of values as float64, bool or `Coded`; None is undefined."""
    import numpy as np

    if isinstance(values, Coded):
        return values
    array = values if hasattr(values, "dtype") else objects(values)
    if array.dtype.kind in "iuf":
        return array.astype(float)
    if array.dtype.kind == "b":
        return array
    cells = array.ravel().tolist()
    numbers = {value: i for i, value in enumerate(dict.fromkeys(cells))}
    codes = np.array([numbers[c] for c in cells], np.intp).reshape(array.shape)
    return packed(tuple(numbers), codes)


def objects(values: Sequence[Any]) -> Any:
    """An array that holds the values as they are."""
    import numpy as np

    array = np.empty(len(values), object)
    for index, value in enumerate(values):
        array[index] = tuple(value) if isinstance(value, list) else value
    return array


def checked(flags: FlagSet, name: str, value: Any) -> Any:
    """
    A flag's value, or the column of its values.

    A list or array is one value for each configuration; of a flag that takes a list of words, only
    an array is. Raises `InputProblem` for the first value that the flag cannot have.
    """
    import numpy as np

    if name not in flags.flags:
        raise InputProblem(f"There is no flag `{name}`.{suggest(name, flags.flags)}")
    flag = flags.flags[name]
    many = array_like(value) or (isinstance(value, (list, tuple)) and flag.kind != "words")
    if not many:
        return flags.check(flag, value)
    cells = column(value)
    if isinstance(cells, Coded):
        return packed([flags.check(flag, v) for v in cells.values], cells.codes)
    if flag.kind == "integer" and cells.dtype == float:
        fits = (cells >= flag.low) & (cells <= flag.high) & (cells == np.floor(cells))
        for wrong in cells[~fits][:1].tolist():
            flags.check(flag, int(wrong) if wrong == wrong // 1 else wrong)
        return cells
    for first in cells.ravel()[:1].tolist():
        flags.check(flag, first)
    return cells


def stack(runs: Sequence[Facts]) -> Facts:
    """The facts of several runs, one configuration each; a shorter list is filled up."""
    settings = [run.settings for run in runs]
    return Facts(
        Settings(stacked([s.values for s in settings]), settings[0].origin),
        stacked([run.records for run in runs]),
        stacked([run.lists for run in runs]),
    )


def stacked(values: Sequence[Any]) -> Any:
    """Values, mappings or lists of mappings of several configurations as one of columns."""
    known = [v for v in values if v is not None]
    if len(known) == len(values) and all(
        type(v) is type(values[0]) and v == values[0] for v in values
    ):
        return values[0]
    if known and isinstance(known[0], Mapping):
        names = dict.fromkeys(name for v in known for name in v)
        item = {n: stacked([None if v is None else v.get(n) for v in values]) for n in names}
        if len(known) < len(values):
            item[PRESENT] = column([v is not None for v in values])
        return item
    if known and all(isinstance(v, (list, tuple)) and not v for v in known):
        return known[0]
    if known and isinstance(known[0], (list, tuple)) and any(map(_is_items, known)):
        length = max(map(len, known))
        return [
            stacked([v[i] if v and i < len(v) else None for v in values]) for i in range(length)
        ]
    return column(values)


def _is_items(value: Any) -> bool:
    return bool(value) and isinstance(value[0], Mapping)


def working(facts: Facts) -> Facts:
    """Facts as the operators take them: every number a float, None undefined."""
    settings = Settings(floats(facts.settings.values), facts.settings.origin)
    return Facts(settings, floats(facts.records), floats(facts.lists))


def floats(value: Any) -> Any:
    """A value, or every value inside, as the operators take it."""
    if isinstance(value, Mapping):
        item = {name: floats(v) for name, v in value.items()}
        if (there := present(value)) is not True:
            item[PRESENT] = there
        return item
    if isinstance(value, (list, tuple)):
        return [floats(v) for v in value] if _is_items(value) else tuple(value)
    if value is None:
        return NAN
    if array_like(value):
        return column(value)
    number = isinstance(value, (int, Fraction)) and not isinstance(value, bool)
    return float(value) if number else value


def present(item: Mapping[str, Any]) -> Any:
    """Where a list item exists: not where its count, an array, is 0."""
    count = item.get("count")
    return item.get(PRESENT, column(count) != 0 if array_like(count) else True)


def shapes(value: Any) -> Iterator[tuple[int, ...]]:
    """The shapes of all arrays inside."""
    if isinstance(value, Mapping):
        value = tuple(value.values())
    if isinstance(value, (list, tuple)):
        for part in value:
            yield from shapes(part)
    elif array_like(value):
        yield value.codes.shape if isinstance(value, Coded) else value.shape


def at(value: Any, index: int, shape: tuple[int, ...]) -> Any:
    """One configuration, exactly: whole numbers as int, items that it lacks left out."""
    import numpy as np

    if isinstance(value, Mapping):
        return {n: at(v, index, shape) for n, v in value.items() if n != PRESENT}
    if isinstance(value, (list, tuple)):
        if not _is_items(value):
            return value
        return [at(v, index, shape) for v in value if at(present(v), index, shape)]
    if isinstance(value, Coded):
        return value.values[np.broadcast_to(value.codes, shape).flat[index]]
    if not array_like(value):
        return value
    cell = np.broadcast_to(value, shape).flat[index].item()
    if not isinstance(cell, float):
        return cell
    if cell != cell:
        return None
    return int(cell) if cell.is_integer() else Fraction(cell)


def key_codes(fact: Any, wanted: Sequence[Any]) -> tuple[Any, int]:
    """A fact by number, with how many there are, so far as profiles can tell its values apart."""
    if not array_like(fact):
        return 0, 1
    if isinstance(fact, Coded):
        return fact.codes, len(fact.values)
    if fact.dtype == bool:
        return fact.astype(int), 2
    flat = [w for part in wanted for w in (part if isinstance(part, (list, tuple)) else [part])]
    numbers = sorted({w for w in flat if isinstance(w, (int, Fraction))})
    return sum((i + 1) * (fact == float(n)) for i, n in enumerate(numbers)), len(numbers) + 1
