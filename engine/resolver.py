"""From a config.json to the canonical model, by one architecture file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from .architecture import Architecture, Model
from .config_fields import Config, checked, shown
from .errors import InputProblem, RuleFileError
from .evaluation import NO_LOOP, EvaluationError, Thunk
from .flags import fill
from .selecting import LAYER
from .sources.names import printable
from .template import show, split

if TYPE_CHECKING:
    from .yaml_problems import Path

Values = dict[str, Any]
MAX_LAYERS = 65_536
MAX_KINDS = 1_024  # layers that differ
# The parts of a layer, with their expressions and what stands for one that is not given.
NUMBERS: Mapping[str, Mapping[str, Any]] = {
    "modules": {
        "d_in": None,
        "d_out": None,
        "bias": False,
        "copies": 1,
        "instances": "=copies",
        "shards": 0,
    },
    "parameters": {"count": None},
    "caches": {
        "per_token": 0,
        "keys": "=per_token",
        "heads": 0,
        "latent": "=per_token",
        "expanded": "=per_token",
        "window": 0,
        "fixed": 0,
        "fixed_fp32": 0,
    },
}
WORDS: Mapping[str, Mapping[str, str]] = {
    "modules": {"kind": "linear", "role": ""},
    "parameters": {"part": "other"},
    "caches": {"role": ""},
}


class Resolver:
    """Evaluates one architecture file for one config; it is its own `run` for the compiler."""

    def __init__(
        self,
        architecture: Architecture,
        name: str,
        config: Config,
        stack: Mapping[str, Any],
        reader: Resolver | None = None,
    ) -> None:
        self.architecture, self.name, self.config = architecture, name, config
        self.reader = reader  # has read the text part by another file
        self.replaced: Mapping[str, Any] = {}  # fields that the outer file decides
        source = config.top if reader else config.text
        self.paths: Mapping[str, str] = architecture.data.get("paths", {})
        self.model_type = printable(str(source.get("model_type") or ""), 60)
        self.values: Values = {**stack, "model_type": self.model_type}
        self.origin: dict[str, str] = {}
        self.keys: dict[str, str] = {}  # fields to the keys of the config that they are read from
        self.layer_origin: dict[str, tuple[str, str, Path]] = {}
        self.stood_in: dict[str, int] = {}  # fields for which the class has a number of its own
        self.warnings: list[str] = []
        self.place = ""  # the path of the layer that is looked at, a # for its number
        self.built = self.kinds = 0  # layers evaluated one by one, and those that differ
        if reader is not None:
            reader.replaced = architecture.data["text"].get("fields", {})
            reader.read_fields()
            self.values = {**reader.values, **self.values, "text_type": reader.model_type}
            self.origin.update(reader.origin)
            self.keys.update(reader.keys)
            self.stood_in.update(reader.stood_in)
        self.values.update(
            {n: c["value"] for n, c in architecture.data.get("constants", {}).items()}
        )

    def flag(self, name: str) -> Any:
        return self.values[name]

    # expressions

    def evaluate(self, text: Any, path: Path) -> Any:
        """An expression over the fields resolved so far."""
        if not isinstance(text, str):
            return text
        if text in self.values:  # mostly it is just a name
            return self.values[text]
        try:
            function = self.architecture.functions.get(text)
            if function is None:
                function = self.compile(text, path)
            return function(self, NO_LOOP)
        except (EvaluationError, TypeError) as error:
            source, place = self.architecture.home(path)
            raise InputProblem(
                f"{self.name}: {error}, while reading config.json with {source.mark(place)}."
            ) from None

    def compile(self, text: str, path: Path) -> Thunk:
        """An expression of the file as a function; raises `RuleFileError` with its place."""
        from . import expression as ex
        from .algebra import EXACT, compile_tree
        from .field_scope import FieldScope
        from .scope import NameProblem

        try:
            tree = ex.parse(text)
            scope = FieldScope({}, {}, {}, self.values, {})
            function = compile_tree(tree, EXACT, scope.inside(tree))
        except (ex.ExpressionError, NameProblem) as error:
            source, place = self.architecture.home(path)
            offset = error.offset if isinstance(error, ex.ExpressionError) else error.at
            mark = source.inside(place, offset)
            raise RuleFileError(
                [source.problem(error.code, error.name, mark, error.message)]
            ) from None
        self.architecture.functions[text] = function
        return function

    # fields

    def read_fields(self) -> None:
        """Every field and check of the file."""
        data = self.architecture.data
        for name, spec in {**data.get("fields", {}), **self.replaced}.items():
            self.values[name] = self.field(name, spec)
        for index, check in enumerate(data.get("checks", ())):
            if self.evaluate(check["when"], ("checks", index, "when")):
                raise InputProblem(self.said(check["says"], ("checks", index, "says")))

    def said(self, text: str, path: Path) -> str:
        """A sentence whose holes are expressions, or `field | key`: where config.json has it."""
        parts = []
        for part in split(text):
            if isinstance(part, str):
                parts.append(part)
            elif part[1] == "key":
                parts.append(self.keys.get(part[0], part[0]))
            else:
                value = self.evaluate(part[0], path)
                several = isinstance(value, (tuple, list))
                parts.append(", ".join(dict.fromkeys(map(str, value))) if several else str(value))
        return " ".join("".join(parts).split())

    def field(self, name: str, spec: Mapping[str, Any]) -> Any:
        if "value" in spec:  # computed from the others
            value = self.evaluate(spec["value"], ("fields", name, "value"))
            self.origin[name] = str(spec["value"])
            return value
        place = self.config.place
        found = self.config.find(spec)
        self.keys[name] = found[0] if found else self.config.absent(spec)
        if spec["type"] == "presence":
            self.origin[name] = f"{place}, whether it has {' or '.join(spec['from'])}"
            return found is not None
        if found is not None:
            if isinstance(found[1], str) and found[1] in spec.get("words", {}):
                self.origin[name] = f"{place}, {found[0]} is {found[1]}"
                where = ("fields", name, "words", found[1])
                return self.evaluate(spec["words"][found[1]], where)
            value = checked(found[0], spec, found[1])
            self.origin[name] = f"{place}, {found[0]}"
            return value
        null = self.config.null(spec)
        if null is not None and "when_null" in spec:
            self.origin[name] = f"{place}, {null} is null"
            value = self.evaluate(spec["when_null"], ("fields", name, "when_null"))
            return self.whole(spec, f"sets '{null}' to null", spec["when_null"], value)
        key = spec["from"][0]
        if "otherwise" not in spec:
            raise InputProblem(
                f"config.json has no '{key}' ({spec['meaning']}), so {self.name} cannot be "
                f"estimated.{self.config.near(spec)}"
            )
        value = self.evaluate(spec["otherwise"], ("fields", name, "otherwise"))
        self.whole(spec, f"has no '{key}'", spec["otherwise"], value)
        self.origin[name] = f"{spec['otherwise']} ({place} has no {key})"
        constant = spec["type"] == "integer" and isinstance(spec["otherwise"], int) and value > 0
        if constant and not self.config.switched_off(spec):
            self.stood_in[name] = value
        if "warn" in spec:
            self.warnings.append(fill(spec["warn"], {**self.values, name: f"{value:,}"}))
        return value

    def whole(self, spec: Mapping[str, Any], why: str, text: Any, value: Any) -> Any:
        """What stands in for an absent value, or `InputProblem` where it is no count."""
        if spec["type"] == "integer" and isinstance(value, Fraction):
            raise InputProblem(
                f"config.json {why}, and {text} = {float(value):g} is not whole. "
                f"Add '{spec['from'][0]}' ({spec['meaning']})."
            )
        return value

    # the model

    def model(self, source: str, counted: int | None) -> Model:
        """The canonical model."""
        data, reader = self.architecture.data, self.reader
        self.read_fields()
        if reader is not None:  # its layers stand inside this model
            own = {kind: fill(path, self.values) for kind, path in self.paths.items()}
            reader.paths = {**reader.paths, **own}
        kind = self.model_type
        inner = reader or self
        for part in (self, reader):
            if part is None or part.is_verified() or "unverified" not in part.architecture.data:
                continue
            says = part.architecture.data["unverified"]["says"]
            self.warnings.append(fill(says, {"model_type": part.model_type or "(none)"}))
        lists = {
            "layer_groups": inner.list_of("layer_groups"),
            "outer_groups": inner.list_of("outer") + (self.list_of("outer") if reader else []),
            "tower_groups": self.list_of("towers"),
        }
        lists["text_groups"] = [*lists["layer_groups"], *lists["outer_groups"]]
        lists["all_groups"] = [*lists["text_groups"], *lists["tower_groups"]]
        fields = {n: inner.values[n] for n in inner.architecture.data["fields"]}
        if reader is not None:
            fields |= {n: self.values[n] for n in data.get("fields", {})}
        return Model(
            self.name,
            kind or None,
            fields,
            lists,
            self.origin,
            source,
            counted,
            self.architecture.id,
            self.is_verified() and inner.is_verified(),
            {**inner.layer_origin, **self.layer_origin},
            (*(inner.warnings if reader else ()), *self.warnings),
            tuple(dict.fromkeys([*self.remarks(), *inner.remarks(), *self.defaults(inner)])),
            tuple(self.absent()) or tuple(inner.absent()),
            tuple(
                each.architecture.source.path
                for each in ((inner, self) if reader else (self,))
                if each.architecture.data["status"] != "stable"
            ),
        )

    def is_verified(self) -> bool:
        return self.model_type in self.architecture.data.get("verified", ())

    def absent(self) -> Iterator[str]:
        """The libraries that have no class of this type in the version of this run."""
        libraries = self.architecture.data.get("absent", {}).get(self.model_type, {})
        for library, bounds in libraries.items():
            if self.values[library].within(bounds):
                version = f"{library} {self.values[library]}"
                yield f"{version} has no class of model_type {self.model_type}"

    def remarks(self) -> Iterator[str]:
        """What should be said about keys that this file does not price."""
        for remark in self.architecture.data.get("remarks", ()):
            objects = (self.config.top, self.config.text)
            keys = [k for k in remark["any_key"] if k not in self.config.answered]
            present = [k for k in keys if any(o.get(k) is not None for o in objects)]
            if present:
                yield fill(remark["says"], {**self.values, "key": present[0]})

    def defaults(self, inner: Resolver) -> Iterator[str]:
        """The sizes that the config does not say, with what the class takes for them."""
        said = inner.architecture.data.get("defaults")
        names = [name for name in said["of"] if name in self.stood_in] if said else []
        taken = {self.keys[name]: f"{self.stood_in[name]:,}" for name in names}
        if said and taken:
            yield fill(said["says"], {"values": ", ".join(f"{k} {v}" for k, v in taken.items())})

    # groups of layers

    def list_of(self, kind: str) -> list[Mapping[str, Any]]:
        """The groups that one section of the file describes."""
        found: list[Mapping[str, Any]] = []
        for index, spec in enumerate(self.architecture.data.get(kind, ())):
            path: Path = (kind, index)
            if "when" in spec and not self.evaluate(spec["when"], (*path, "when")):
                continue
            found += self.groups(kind, spec, path)
        return found

    def groups(self, kind: str, spec: Mapping[str, Any], path: Path) -> list[Mapping[str, Any]]:
        """The groups of one entry: one with a count, or the distinct layers of `each`."""
        count = self.evaluate(spec.get("count", 1), (*path, "count"))
        if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= MAX_LAYERS:
            source, place = self.architecture.home((*path, "count"))
            raise InputProblem(
                f"{self.name}: `{spec['count']}` = {show(count)} is no number of layers "
                f"({source.mark(place)})."
            )
        self.note(kind, "count", spec.get("count", 1), (*path, "count"))
        self.built += count if "each" in spec else 1
        if self.built > MAX_LAYERS:
            raise self.too_many(path, f"more than {MAX_LAYERS:,} layers one by one")
        outer = self.values
        stack = fill(spec.get("path", self.paths.get(kind, "")), outer)
        self.place = f"{stack}.{LAYER}" if "count" in spec else stack
        found: dict[Any, tuple[Values, list[int]]] = {}
        for position in range(count if "each" in spec else min(count, 1)):
            self.values = dict(outer)
            if "each" in spec:
                self.values[spec["each"]] = position
            fields = self.group_fields(kind, spec, path)
            found.setdefault(tuple(fields.items()), (fields, []))[1].append(position)
            if self.kinds + len(found) > MAX_KINDS:
                raise self.too_many(path, f"more than {MAX_KINDS:,} kinds of layers")
        self.kinds += len(found)
        groups: list[Mapping[str, Any]] = []
        for fields, places in found.values():
            self.values = {**outer, **fields}
            layer = self.layer(kind, spec, path, fields)
            places = places if "each" in spec else list(range(count))
            title = titled(kind, spec, fields, len(places))
            named = {"count": len(places), "title": title, "tower": spec.get("tower", "")}
            spans = [{"first": first, "last": last} for first, last in runs(places)]
            groups.append({**layer, **named, "places": ranges(spans), "spans": spans})
        self.values = outer
        return groups

    def too_many(self, path: Path, what: str) -> InputProblem:
        """What is said of a file that describes more layers than anybody builds."""
        source, place = self.architecture.home(path)
        return InputProblem(f"{self.name}: {source.mark(place)} gives {what}.")

    def group_fields(self, kind: str, spec: Mapping[str, Any], path: Path) -> Values:
        """The fields of a group in order, each of which the next may read."""
        fields: Values = {}
        for name, text in spec.get("fields", {}).items():
            where: Path = (*path, "fields", name)
            fields[name] = self.values[name] = self.evaluate(text, where)
            self.note(kind, name, text, where)
        return fields

    def layer(self, kind: str, spec: Mapping[str, Any], path: Path, fields: Values) -> Values:
        """One layer: its fields, modules, other parameters, caches, and what its blocks add up."""
        layer: Values = dict.fromkeys(self.architecture.data["sums"], 0)
        layer.update(fields)
        outer = self.values
        for index, entry in enumerate(spec["adds"]):
            if not self.enter(outer, entry, path):
                continue
            for name, text in entry["fields"].items():
                where: Path = (*path, "adds", index, name)
                layer[name] = layer.get(name, 0) + self.evaluate(text, where)
                self.note(kind, name, text, where)
        for part, numbers in NUMBERS.items():
            items = []
            for index, entry in enumerate(spec[part]):
                where = (*path, part, index)
                if self.enter(outer, entry, path) and self.evaluate(
                    entry.get("when", True), (*where, "when")
                ):
                    items.append(self.part(part, numbers, entry, where))
            layer[part] = items
            for name in (*numbers, *WORDS[part], "name", *(["whole"] if part == "modules" else [])):
                self.note(kind, f"{part}[].{name}", "each of them", (*path, part))
        self.values = outer
        return layer

    def enter(self, outer: Values, entry: Mapping[str, Any], path: Path) -> bool:
        """Whether the block of a part is used; its arguments are known after this."""
        self.values = outer
        given = entry.get("given")
        if given is None:
            return True
        place: Path = (*path, "given", given["position"])
        if not self.evaluate(given["when"], (*place, "when")):
            return False
        self.values = dict(outer)
        for name, text in given["set"].items():
            where: Path = (*place, "set", name)
            self.values[name] = self.evaluate(text, where)
        for name, text in given["defaults"].items():
            if name not in self.values:
                self.values[name] = self.evaluate(text, (*place, "defaults", name))
        return True

    def part(
        self, part: str, numbers: Mapping[str, Any], entry: Mapping[str, Any], path: Path
    ) -> Values:
        """One module, parameter or cache with its numbers."""
        full = fill(str(entry["name"]), self.values)
        words = {word: entry.get(word, default) for word, default in WORDS[part].items()}
        made: Values = {
            "name": full.rpartition(".")[2],
            "path": full,
            **{word: fill(text, self.values) for word, text in words.items()},
        }
        for name, default in numbers.items():
            text = made[default[1:]] if str(default).startswith("=") else default
            value = self.evaluate(entry.get(name, text), (*path, name))
            value = int(value) if isinstance(value, bool) else value
            if not isinstance(value, int) or value < 0:
                source, place = self.architecture.home((*path, name))
                raise InputProblem(
                    f"{self.name}: {name} of {entry['name']} comes out as {show(value)}, which is "
                    f"no count ({source.mark(place)})."
                )
            made[name] = value
        if part == "modules":
            made["whole"] = f"{self.place}.{full}" if self.place else full
        if part == "caches":
            made["windowed"] = "window" in entry and made["window"] > 0
        return made

    def note(self, kind: str, name: str, text: Any, path: Path) -> None:
        """Remember where a list field comes from, for derivations."""
        kind = {"outer": "outer_groups", "towers": "tower_groups"}.get(kind, kind)
        wider = ("all_groups",) if kind == "tower_groups" else ("text_groups", "all_groups")
        for place in (kind, *wider):
            self.layer_origin.setdefault(
                f"{place}[].{name}", (str(text), self.architecture.id, path)
            )


def titled(kind: str, spec: Mapping[str, Any], fields: Values, count: int) -> str:
    """What a group is called: by its title, or by the words among its fields."""
    words = [spec["title"]] if "title" in spec else [v for v in fields.values() if type(v) is str]
    if kind == "outer" and not words:
        return "outside the layers"
    name = " ".join(words or [spec.get("tower", "")]).strip()
    plural = "" if count == 1 else "s"
    return f"{count:,} {name} layer{plural}".replace("  ", " ") if "count" in spec else name


def runs(places: Sequence[int]) -> list[list[int]]:
    """The first and the last of every run of positions without a gap, in order."""
    found: list[list[int]] = []
    for place in places:
        if found and place == found[-1][1] + 1:
            found[-1][1] = place
        else:
            found.append([place, place])
    return found


def ranges(spans: Sequence[Mapping[str, int]]) -> str:
    """`0-4 6 8-9`: the positions of layers, in order."""
    ends = ((span["first"], span["last"]) for span in spans)
    return " ".join(f"{a}-{b}" if a != b else str(a) for a, b in ends)


def check_type(config: Mapping[str, Any]) -> None:
    """Refuse a model_type that is no word."""
    kind = config.get("model_type")
    if kind is not None and not isinstance(kind, str):
        raise InputProblem(f"config.json field 'model_type' has to be a word, not {shown(kind)}.")
