"""A family file for a model type that no file covers, proposed from its config.json.

Every known family is tried on the config as if it were of that family. The nearest is the one that
finds most of the config's keys under its own names; what it does not read stays open, for a person
to decide. A config with its text dimensions in an object of their own gets a file for what is
around them and, where no file covers the type of that object, one for the text part.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..architecture import Architecture, Model, resolve
from ..config_fields import TOP, Config, inside, text_part
from ..errors import FitcheckError, InputProblem
from ..record import record
from ..rules import Rules
from ..sources.names import printable
from .skeletons import Skeleton

IGNORED = re.compile(  # keys that decide no shape
    r"_token_id$|^(architectures|auto_map|torch_dtype|dtype|transformers_version|model_type|use_cache"
    r"|initializer_range|.*dropout.*|rope_.*|.*_eps|.*_epsilon|hidden_act|hidden_activation"
    r"|max_position_embeddings|_name_or_path|pretraining_tp|bos_token|eos_token|id2label|label2id)$"
)


@record
class Match:
    """One known family on a config: fields and the keys that gave them, and keys left unread."""

    architecture: Architecture
    model: Model
    read: tuple[tuple[str, str], ...]
    unread: tuple[str, ...]

    plain: bool  # it comes out like the file for unknown types, or has the usual text part
    absent: int  # fields that the config says nothing of

    @property
    def total(self) -> int:
        """Every parameter."""
        return parameters(self.model)

    @property
    def score(self) -> tuple[int, bool, int, int]:
        """Fewer keys left unread come first, then a plain decoder, then fewer assumptions."""
        return (-len(self.unread), self.plain, -self.absent, len(self.read))


def parameters(model: Model) -> int:
    """Every parameter of a canonical model."""
    total = 0
    for group in model.lists["all_groups"]:
        layer = sum(p["count"] for p in group["parameters"])
        layer += sum(m["copies"] * m["d_out"] * (m["d_in"] + m["bias"]) for m in group["modules"])
        total += group["count"] * layer
    return total


def shape_keys(config: Mapping[str, Any]) -> list[str]:
    """The keys that may decide a shape: numbers, truths, lists and objects with a value."""
    return [
        key
        for key, value in config.items()
        if not IGNORED.search(key) and value is not None and not isinstance(value, (float, str))
    ]


def keys_read(architecture: Architecture, config: Config) -> Iterator[tuple[str, str]]:
    """(field, key) of everything that a family finds in a config, with the object it stands in."""
    for name, spec in architecture.data.get("fields", {}).items():
        for shown_at, found in config.objects(spec) if "from" in spec else ():
            for key in spec["from"]:
                if key != "model_type" and inside(found, key) is not None:
                    yield name, f"{shown_at}{key}"


def families(rules: Rules, nested: bool) -> Iterator[tuple[Architecture, str]]:
    """(family, its first model type) of those whose text dimensions are nested, or are not."""
    for architecture in rules.architectures:
        types = architecture.own.get("matches", {}).get("model_type", ())
        if "refuse" not in architecture.own and types and ("text" in architecture.data) == nested:
            yield architecture, types[0]


def matched(
    architecture: Architecture, model: Model, config: Config, keys: Sequence[str], plain: bool
) -> Match:
    """A family that could read a config, with those of its keys that stay open."""
    pairs = tuple(keys_read(architecture, config))
    read = {key for _, key in pairs}
    known = read | {key.split(".")[0] for key in read if config.top is config.text}
    fields = {name for name, s in architecture.data.get("fields", {}).items() if "from" in s}
    absent = len(fields - {field for field, _ in pairs})
    unread = tuple(key for key in keys if key not in known)
    return Match(architecture, model, pairs, unread, plain, absent)


def nearest(rules: Rules, name: str, config: Mapping[str, Any]) -> list[Match]:
    """The families that can read the config, best first; without those of nested text parts."""
    found = []
    usual = fallback(rules, name, config)
    for architecture, kind in families(rules, nested=False):
        alike = {**config, "model_type": kind}
        try:
            model = resolve([architecture], name, alike, "a proposal", None, stack=rules.stack)
        except FitcheckError:
            continue
        whole, plain = Config(config, config, ""), parameters(model) == usual
        found.append(matched(architecture, model, whole, shape_keys(config), plain))
    return sorted(found, key=lambda match: match.score, reverse=True)


def nearest_around(rules: Rules, name: str, config: Mapping[str, Any], place: str) -> list[Match]:
    """The families of nested text parts that can read what is around the object at `place`."""
    found = []
    objects = {key for key, value in config.items() if isinstance(value, Mapping)} - {place}
    keys = [key for key in shape_keys(config) if key not in (place, *objects)]
    keys += [f"{key}.{inner}" for key in sorted(objects) for inner in shape_keys(config[key])]
    for architecture, kind in families(rules, nested=True):
        spec = architecture.data["text"]
        if place not in spec["at"]:
            continue
        alike = {**config, "model_type": kind}
        try:
            model = resolve(rules.architectures, name, alike, "", None, stack=rules.stack)
        except FitcheckError:
            continue
        whole = Config(config, text_part(config, spec["at"], None), "")
        usual = spec.get("model_type") == config[place].get("model_type")
        found.append(matched(architecture, model, whole, keys, usual))
    return sorted(found, key=lambda match: match.score, reverse=True)


def text_place(rules: Rules, config: Mapping[str, Any]) -> str | None:
    """The object with the text dimensions, by the names that the known families have for it."""
    places = dict.fromkeys(p for a, _ in families(rules, True) for p in a.data["text"]["at"])
    return next((p for p in places if p != TOP and isinstance(config.get(p), Mapping)), None)


def fallback(rules: Rules, name: str, config: Mapping[str, Any]) -> int | None:
    """The parameters by the file for unknown types, where that can read the config."""
    try:
        return parameters(resolve(rules.architectures, name, config, "", None, stack=rules.stack))
    except FitcheckError:
        return None


def proposal(
    rules: Rules, name: str | None, config: Mapping[str, Any]
) -> tuple[list[Skeleton], list[Match]]:
    """
    The family files for a config, and the families that can read it, best first.

    There are two files where the text part is of a type that no file covers either; that of the
    text part stands last.

    Raises
    ------
    InputProblem
        The config has no model_type, a file covers it already, or no family can read it.
    """
    kind = config.get("model_type")
    if not isinstance(kind, str) or not kind:
        raise InputProblem("The config has no model_type, so no family file could name it.")
    known = covering(rules, kind)
    if known is not None:
        raise InputProblem(
            f"{known.source.path} covers model_type {printable(kind, 60)} already: "
            f"`fitcheck rules eject DIR {known.id}` copies it to be changed."
        )
    stem = name or re.sub(r"[^a-z0-9]+", "-", kind.lower()).strip("-")
    if not re.fullmatch(r"[a-z0-9][a-z0-9._-]{0,55}", stem):
        raise InputProblem(
            f"`{printable(stem, 60)}` cannot be an id: use lower-case letters and -."
        )
    place, shown = text_place(rules, config), printable(kind, 60)
    if place is None:
        matches = nearest(rules, shown, config) or none_reads(rules)
        return [skeleton(stem, kind, matches[0], config)], matches
    text: Mapping[str, Any] = config[place]
    own = text.get("model_type")
    parts: list[Skeleton] = []
    alike: Mapping[str, Any] = config
    if not isinstance(own, str) or covering(rules, own) is None:
        inner = nearest(rules, shown, text) or none_reads(rules)
        kinds = inner[0].architecture.own["matches"]["model_type"]
        alike = {**config, place: {**text, "model_type": kinds[0]}}
        if isinstance(own, str) and own:
            parts = [skeleton(f"{stem}-text", own, inner[0], text)]
    matches = nearest_around(rules, shown, alike, place) or none_reads(rules)
    best = matches[0]
    extra = [] if parts or alike is config else [text_line(best, alike[place]["model_type"])]
    return [skeleton(stem, kind, best, config, extra), *parts], matches


def covering(rules: Rules, kind: str) -> Architecture | None:
    """The file that covers a model type by its name."""
    return next((a for a in rules.architectures if a.names(kind)), None)


def none_reads(rules: Rules) -> list[Match]:
    """Raise `InputProblem`: there is nothing to extend."""
    extended = [str(a.own["extends"]) for a in rules.architectures if "extends" in a.own]
    common = max(extended, key=extended.count, default="ID")
    raise InputProblem(
        f"No known family finds its dimensions in this config. `fitcheck rules show {common}` "
        "has the fields that most files take over; write a file with the keys of this one."
    )


def text_line(best: Match, kind: str) -> str:
    """Where the text part is, for one that does not say its own model type."""
    places = ", ".join(best.architecture.data["text"]["at"])
    return f"text: {{at: [{places}], model_type: {_quoted(kind)}}}"


def skeleton(
    stem: str, kind: str, best: Match, config: Mapping[str, Any], extra: Sequence[str] = ()
) -> Skeleton:
    """The file that extends the best match."""
    text = family_file(stem, kind, best, config, extra)
    then = (
        f"It extends {best.architecture.id} and is a draft. Decide what the open keys mean, then "
        "give its status as stable."
    )
    return Skeleton(f"profiles/architectures/{stem}.yaml", text, then)


def family_file(
    stem: str, kind: str, best: Match, config: Mapping[str, Any], extra: Sequence[str] = ()
) -> str:
    """The text of the file: what matched, what is open, and nothing else."""
    lines = [
        f"id: {stem}",
        f'title: "{printable(kind, 60)}, read like {best.architecture.id}"',
        "status: draft                     # a draft lowers every verdict that rests on it",
        f"extends: {best.architecture.id}",
        f"matches: {{model_type: [{_quoted(kind)}]}}",
        f"# verified: [{_quoted(kind)}]   once its counts are known to be right",
        *extra,
        "",
        "# What matched:",
        *(f"#   {f} from {k}: {_value(config, k)}" for f, k in _first_of_each(best.read)),
    ]
    if best.unread:
        lines += [
            "# Open: keys that no field reads. A width or a switch among them changes the model.",
            *(f"#   {printable(key, 60)}: {_value(config, key)}" for key in best.unread),
        ]
    lines += [
        "evidence:",
        "  config:",
        "    kind: assumption",
        '    where: "a config.json"',
        f'    says: "its keys are those of {best.architecture.id}; its class was not read"',
    ]
    return "\n".join(lines) + "\n"


def _first_of_each(pairs: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    return list(dict(reversed(list(pairs))).items())[::-1]


def _quoted(text: str) -> str:
    return text if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", text) else f'"{printable(text, 60)}"'


def _value(config: Mapping[str, Any], key: str) -> str:
    shown = str(inside(config, key)).replace("\n", " ")
    return printable(shown, 60)
