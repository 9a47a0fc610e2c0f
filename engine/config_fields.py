"""Values of a config.json: found under their keys, and checked for type and range."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from .errors import InputProblem
from .sources.names import printable

TOP, TEXT = ".", "text"  # where a field may be looked for: the file itself, its text part
ITEMS: Mapping[str, tuple[type, ...]] = {
    "integer": (int,),
    "number": (int, float),
    "text": (str,),
    "boolean": (bool,),
}


class Config:
    """A config.json with the object that holds the text dimensions, where that is nested."""

    def __init__(
        self,
        top: Mapping[str, Any],
        text: Mapping[str, Any],
        place: str,
        answered: Collection[str] = (),
    ) -> None:
        self.top, self.text, self.place = top, text, place
        self.answered = answered  # keys of which a mode says more than a remark could

    def objects(self, spec: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """(how it is called, object) of every place where a field may stand."""
        for where in spec.get("at", (TEXT,)):
            found: Any = self.top if where == TOP else self.text if where == TEXT else None
            if found is None:
                found = inside(self.top, where)
            if isinstance(found, Mapping):
                yield ("" if where in (TOP, TEXT) else f"{where}."), found

    def find(self, spec: Mapping[str, Any]) -> tuple[str, Any] | None:
        """(key as shown, value) of the first key with a value; None where there is none."""
        for shown_at, found in self.objects(spec):
            for key in spec["from"]:
                value = inside(found, key)
                if value is not None:
                    return f"{shown_at}{key}", value
        return None

    def absent(self, spec: Mapping[str, Any]) -> str:
        """How a key that the config does not have would be called: the first that is read."""
        where = spec.get("at", (TEXT,))[0]
        return f"{'' if where in (TOP, TEXT) else f'{where}.'}{spec['from'][0]}"

    def switched_off(self, spec: Mapping[str, Any]) -> bool:
        """Whether each object that it may stand in is null, such as a tower that is not there."""
        places = spec.get("at", (TEXT,))
        return all(p in self.top and self.top[p] is None for p in places)

    def null(self, spec: Mapping[str, Any]) -> str | None:
        """The first of its keys that the config sets to null."""
        for shown_at, found in self.objects(spec):
            for key in spec["from"]:
                outer, _, last = key.rpartition(".")
                holder = inside(found, outer) if outer else found
                if isinstance(holder, Mapping) and last in holder and holder[last] is None:
                    return f"{shown_at}{key}"
        return None

    def near(self, spec: Mapping[str, Any]) -> str:
        """A hint where a key is nearly one of those wanted."""
        import difflib

        others = [k for _, found in self.objects(spec) for k, v in found.items() if v is not None]
        near = difflib.get_close_matches(spec["from"][0], others, 1, 0.8)
        return f" There is '{near[0]}': is it meant?" if near else ""


def inside(config: Mapping[str, Any], path: str) -> Any:
    """The value at a dotted path; None where there is none."""
    found: Any = config
    for part in path.split("."):
        if not isinstance(found, Mapping):
            return None
        found = found.get(part)
    return found


def checked(key: str, spec: Mapping[str, Any], value: Any) -> Any:
    """The value of a config key, of the right type and in range, or `InputProblem`."""
    place, kind = f"config.json field '{key}'", spec["type"]
    if isinstance(value, list) and spec.get("of_list") == "first" and value:
        value = value[0]
    if kind == "text":
        if not isinstance(value, str):
            raise InputProblem(f"{place} is {shown(value)}; it has to be text.")
        return value
    if kind == "list":
        return entries(place, spec, value)
    if kind == "boolean":
        if not isinstance(value, bool):
            raise InputProblem(
                f"{place} is {shown(value)}; it has to be true or false, without quotes."
            )
        return value
    return amount(place, spec, value)


def amount(place: str, spec: Mapping[str, Any], value: Any) -> int | Fraction:
    """A number in the range that its field allows; whole unless the type is `number`."""
    if isinstance(value, float) and math.isfinite(value):
        if value.is_integer():
            value = int(value)
        elif spec["type"] == "number":
            value = Fraction(repr(value))
    if isinstance(value, bool) or not isinstance(value, (int, Fraction)):
        wanted = "a number" if spec["type"] == "number" else "a whole number"
        raise InputProblem(f"{place} is {shown(value)}; it has to be {wanted}.")
    if value < spec["min"]:
        raise InputProblem(f"{place} is {shown(value)}; it has to be at least {spec['min']}.")
    if value > spec["max"]:
        raise InputProblem(
            f"{place} is {shown(value)}, past every real model; the largest value "
            f"accepted is {spec['max']:,}."
        )
    return value


def entries(place: str, spec: Mapping[str, Any], value: Any) -> tuple[Any, ...]:
    """The entries of a list, all of one type; a single one where the field allows that."""
    wanted = ITEMS[spec["items"]]
    if spec.get("single") and type(value) in wanted:
        value = [value]
    if not isinstance(value, list) or not all(type(v) in wanted for v in value):
        raise InputProblem(f"{place} is {shown(value)}; it has to be a list of {spec['items']}.")
    if len(value) > spec.get("most", 65_536):
        raise InputProblem(f"{place} has {len(value):,} entries, more than any real model.")
    if not all(math.isfinite(v) for v in value if isinstance(v, float)):
        raise InputProblem(f"{place} is {shown(value)}; it has to hold numbers.")
    return tuple(Fraction(repr(v)) if isinstance(v, float) else v for v in value)


def shown(value: Any) -> str:
    """A config value as quoted in a message: printable and cut to a readable length."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Fraction):
        return f"{float(value):g}"
    if isinstance(value, int) and abs(value) > 10**20:
        return "a number of more than 20 digits"
    text = f'"{value}"' if isinstance(value, str) else repr(value)
    return printable(text if len(text) <= 60 else f"{text[:57]}...")


def text_part(
    config: Mapping[str, Any], places: Sequence[str], model_type: str | None
) -> Mapping[str, Any]:
    """The object with the text dimensions: the first that is there, else the file itself."""
    for where in places:
        found = config if where == TOP else inside(config, where)
        if isinstance(found, Mapping):
            if model_type is not None and not isinstance(found.get("model_type"), str):
                found = {**found, "model_type": model_type}
            return found
    return config if model_type is None else {**config, "model_type": model_type}
