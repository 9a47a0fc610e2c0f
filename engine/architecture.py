"""From config.json to the canonical model: fields with their origin, and a list of layer groups.

Which keys are read, what stands in for an absent one, which shapes are refused and why, is data
(`profiles/architectures/`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from .errors import InputProblem, Refusal, RuleFileError
from .evaluation import NO_LOOP, EvaluationError, Thunk
from .flags import fill
from .record import record
from .sources.names import printable
from .template import show

if TYPE_CHECKING:
    from .yaml_problems import Path
    from .yaml_source import Source


@record(identity=True)
class Model:
    """
    A canonical model.

    `fields` are scalars (hidden_size, ...), `lists` holds `layer_groups`: equal layers with a
    count, their dims and their linear modules. `origin` says which config key or rule each field
    came from.
    """

    name: str
    model_type: str | None
    fields: Mapping[str, Any]
    lists: Mapping[str, Sequence[Mapping[str, Any]]]
    origin: Mapping[str, str]
    source: str
    counted_parameters: int | None
    architecture: str
    verified: bool
    layer_origin: Mapping[str, tuple[str, Path]]  # list field to expression and its place
    warnings: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


@record(identity=True)
class Architecture:
    """One file of `profiles/architectures/`."""

    id: str
    status: str
    data: Mapping[str, Any]
    source: Source
    overlay: bool
    functions: dict[Any, Thunk]  # expressions of the file by their text, made when needed

    def claims(self, config: Mapping[str, Any]) -> int | None:
        """How many conditions of `matches` the config meets, None if one fails."""
        present = {k for k, v in config.items() if v is not None}
        tests: Mapping[str, Callable[[Any], bool]] = {
            "model_type": lambda wanted: config.get("model_type") in wanted,
            "any_key": lambda wanted: bool(present.intersection(wanted)),
            "all_keys": lambda wanted: present.issuperset(wanted),
            "no_key": lambda wanted: present.isdisjoint(wanted),
            "equals": lambda wanted: all(config.get(k) == v for k, v in wanted.items()),
        }
        conditions = self.data.get("matches", {})
        if all(tests[key](wanted) for key, wanted in conditions.items()):
            return len(conditions)
        return None

    def refusal(self, name: str, config: Mapping[str, Any]) -> str | None:
        """The sentence with which this file refuses the config, if it does."""
        refuse = self.data.get("refuse")
        if refuse is None or self.claims(config) is None:
            return None
        conditions = self.data.get("matches", {})
        present = [
            k
            for k in (*conditions.get("any_key", ()), *conditions.get("equals", ()))
            if config.get(k) is not None
        ]
        return fill(
            refuse["says"],
            {
                "name": name,
                "key": present[0] if present else "",
                "model_type": printable(str(config.get("model_type")), 60),
            },
        )


def refuse_unsupported(
    architectures: Sequence[Architecture], name: str, config: Mapping[str, Any]
) -> None:
    """Raise `Refusal` where a file says that this config is not modelled."""
    for architecture in architectures:
        says = architecture.refusal(name, config)
        if says is not None:
            raise Refusal(says)


def resolve(
    architectures: Sequence[Architecture],
    name: str,
    config: Mapping[str, Any],
    source: str,
    counted: int | None,
    place: str = "config.json",
) -> Model:
    """
    The canonical model of a config; `place` is what origins call it.

    Raises
    ------
    Refusal
        The config has a shape that no file covers.
    InputProblem
        A field is missing, of the wrong type, or out of range; the message names it.
    """
    refuse_unsupported(architectures, name, config)
    fitting = [
        (met, a)
        for a in architectures
        if "refuse" not in a.data and (met := a.claims(config)) is not None
    ]
    if not fitting:
        raise Refusal(
            f"{name} (model_type {config.get('model_type')}): no architecture file covers it."
        )
    architecture = max(fitting, key=lambda pair: pair[0])[1]
    return _Resolver(architecture, name, config, place).model(source, counted)


class _Resolver:
    """Evaluates one architecture file for one config; it is its own `run` for the compiler."""

    def __init__(
        self, architecture: Architecture, name: str, config: Mapping[str, Any], place: str
    ) -> None:
        self.architecture, self.name, self.config, self.place = architecture, name, config, place
        kind = config.get("model_type")
        if kind is not None and not isinstance(kind, str):
            raise InputProblem(
                f"config.json field 'model_type' has to be a word, not {shown(kind)}."
            )
        self.values: dict[str, Any] = {"model_type": printable(kind or "", 60)}
        self.values.update(
            {n: c["value"] for n, c in architecture.data.get("constants", {}).items()}
        )
        self.origin: dict[str, str] = {}
        self.layer_origin: dict[str, tuple[str, Path]] = {}
        self.warnings: list[str] = []

    def flag(self, name: str) -> Any:
        return self.values[name]

    def evaluate(self, text: Any, path: Path) -> Any:
        """An expression over the fields resolved so far."""
        source = self.architecture.source
        try:
            function = self.architecture.functions.get(text)
            if function is None:
                function = self.compile(text, path)
            return function(self, NO_LOOP)
        except (EvaluationError, TypeError) as error:
            raise InputProblem(
                f"{self.name}: {error}, while reading config.json with {source.mark(path)}."
            ) from None

    def compile(self, text: Any, path: Path) -> Thunk:
        """An expression of the file as a function; raises `RuleFileError` with its place."""
        from . import expression as ex
        from .algebra import EXACT, compile_tree
        from .field_scope import FieldScope
        from .scope import NameProblem

        source = self.architecture.source
        try:
            tree = ex.parse(str(text) if isinstance(text, int) else text)
            scope = FieldScope({}, {}, {}, self.values, {})
            function = compile_tree(tree, EXACT, scope.inside(tree))
        except (ex.ExpressionError, NameProblem) as error:
            offset = error.offset if isinstance(error, ex.ExpressionError) else error.at
            mark = source.inside(path, offset)
            raise RuleFileError(
                [source.problem(error.code, error.name, mark, error.message)]
            ) from None
        self.architecture.functions[text] = function
        return function

    def model(self, source: str, counted: int | None) -> Model:
        data = self.architecture.data
        for name, spec in data["fields"].items():
            self.values[name] = self.field(name, spec)
        for index, check in enumerate(data.get("checks", ())):
            if self.evaluate(check["when"], ("checks", index, "when")):
                raise InputProblem(fill(check["says"], self.values))
        kind = self.values["model_type"]
        verified = kind in data.get("verified", ())
        if not verified:
            self.warnings.append(fill(data["unverified"]["says"], {"model_type": kind or "(none)"}))
        groups = [g for i, s in enumerate(data["layer_groups"]) for g in self.groups(i, s)]
        fields = {n: self.values[n] for n in data["fields"]}
        return Model(
            self.name,
            kind or None,
            fields,
            {"layer_groups": groups},
            self.origin,
            source,
            counted,
            self.architecture.id,
            verified,
            self.layer_origin,
            tuple(self.warnings),
            tuple(self.remarks(data.get("remarks", ()))),
        )

    def remarks(self, entries: Sequence[Mapping[str, Any]]) -> Iterator[str]:
        """What should be said about keys that this file does not price."""
        for remark in entries:
            present = [k for k in remark["any_key"] if self.config.get(k) is not None]
            if present:
                yield fill(remark["says"], {**self.values, "key": present[0]})

    def field(self, name: str, spec: Mapping[str, Any]) -> Any:
        for key in spec["from"]:
            if self.config.get(key) is not None:
                value = self.check(key, spec, self.config[key])
                self.origin[name] = f"{self.place}, {key}"
                return value
        key = spec["from"][0]
        null = next((k for k in spec["from"] if k in self.config), None)
        if null is not None and "when_null" in spec:
            self.origin[name] = f"{self.place}, {null} is null"
            return self.evaluate(spec["when_null"], ("fields", name, "when_null"))
        if "otherwise" not in spec:
            others = [k for k, v in self.config.items() if v is not None]
            import difflib

            near = difflib.get_close_matches(key, others, 1, 0.8)
            hint = f" There is '{near[0]}': is it meant?" if near else ""
            raise InputProblem(
                f"config.json has no '{key}' ({spec['meaning']}), so {self.name} cannot be "
                f"estimated.{hint}"
            )
        value = self.evaluate(spec["otherwise"], ("fields", name, "otherwise"))
        if spec["type"] == "integer" and isinstance(value, Fraction):
            raise InputProblem(
                f"config.json has no '{key}', and {spec['otherwise']} = {float(value):g} is "
                f"not whole. Add '{key}' ({spec['meaning']})."
            )
        self.origin[name] = f"{spec['otherwise']} ({self.place} has no {key})"
        if "warn" in spec:
            self.warnings.append(fill(spec["warn"], {**self.values, name: f"{value:,}"}))
        return value

    def check(self, key: str, spec: Mapping[str, Any], value: Any) -> Any:
        """The value of a config key, of the right type and in range, or `InputProblem`."""
        place = f"config.json field '{key}'"
        if spec["type"] in ("text", "list"):
            return self.check_entries(place, spec, value)
        if spec["type"] == "boolean":
            if not isinstance(value, bool):
                raise InputProblem(
                    f"{place} is {shown(value)}; it has to be true or false, without quotes."
                )
            return value
        if isinstance(value, float) and math.isfinite(value) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            raise InputProblem(f"{place} is {shown(value)}; it has to be a whole number.")
        if value < spec["min"]:
            raise InputProblem(f"{place} is {shown(value)}; it has to be at least {spec['min']}.")
        if value > spec["max"]:
            raise InputProblem(
                f"{place} is {shown(value)}, past every real model; the largest value "
                f"accepted is {spec['max']:,}."
            )
        return value

    def check_entries(self, place: str, spec: Mapping[str, Any], value: Any) -> Any:
        """A text or list field; the entries of a list have one type, `items`."""
        if spec["type"] == "text":
            if not isinstance(value, str):
                raise InputProblem(f"{place} is {shown(value)}; it has to be text.")
            return value
        wanted: type = {"integer": int, "text": str, "boolean": bool}[spec["items"]]
        if not isinstance(value, list) or not all(type(v) is wanted for v in value):
            raise InputProblem(
                f"{place} is {shown(value)}; it has to be a list of {spec['items']}."
            )
        return tuple(value)

    def groups(self, index: int, spec: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """The layer groups of one entry: one with a count, or the distinct layers of `each`."""
        path: Path = ("layer_groups", index)
        count = self.evaluate(spec["count"], (*path, "count"))
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:
            raise InputProblem(
                f"{self.name}: `{spec['count']}` = {show(count)} is no number of layers "
                f"({self.architecture.source.mark((*path, 'count'))})."
            )
        each = spec.get("each")
        if each is None:
            return [{**self.layer(spec, path), "count": count}]
        found: list[dict[str, Any]] = []
        for position in range(count):
            self.values[each] = position
            layer = self.layer(spec, path)
            same = next((g for g in found if {**g, "count": 0} == {**layer, "count": 0}), None)
            if same is None:
                found.append({**layer, "count": 1})
            else:
                same["count"] += 1
        del self.values[each]
        return list(found)

    def layer(self, spec: Mapping[str, Any], path: Path) -> dict[str, Any]:
        """One layer: its fields in order, each of which the next may read, and its modules."""
        outer = dict(self.values)
        layer: dict[str, Any] = {}
        for name, text in spec["fields"].items():
            where: Path = (*path, "fields", name)
            layer[name] = self.values[name] = self.evaluate(text, where)
            self.layer_origin[f"layer_groups[].{name}"] = (str(text), where)
        self.layer_origin["layer_groups[].count"] = (str(spec["count"]), (*path, "count"))
        for name in ("name", "d_in", "d_out"):
            where = (*path, "modules")
            self.layer_origin[f"layer_groups[].modules[].{name}"] = ("each module", where)
        layer["modules"] = [
            self.module(m, (*path, "modules", i))
            for i, m in enumerate(spec["modules"])
            if "when" not in m or self.evaluate(m["when"], (*path, "modules", i, "when"))
        ]
        self.values = outer
        return layer

    def module(self, spec: Mapping[str, Any], path: Path) -> dict[str, Any]:
        """One linear module: its name, its widths and any further fields."""
        fields = {"d_in": spec["d_in"], "d_out": spec["d_out"], **spec.get("fields", {})}
        return {
            "name": spec["name"],
            **{n: self.evaluate(t, (*path, n)) for n, t in fields.items()},
        }


def shown(value: Any) -> str:
    """A config value as quoted in a message: printable and cut to a readable length."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and abs(value) > 10**20:
        return "a number of more than 20 digits"
    text = f'"{value}"' if isinstance(value, str) else repr(value)
    return printable(text if len(text) <= 60 else f"{text[:57]}...")
