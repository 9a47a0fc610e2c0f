"""A family file for a model type that no file covers, proposed from its config.json.

Every known family is tried on the config as if it were of that family. The nearest is the one that
finds most of the config's keys under its own names; what it does not read stays open, for a person
to decide.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..architecture import Architecture, Model, resolve
from ..config_fields import inside
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

    plain: bool  # it comes out like the file for unknown types
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


def keys_read(architecture: Architecture) -> Iterator[tuple[str, str]]:
    """(field, key) of everything that a family looks for in a config."""
    for name, spec in architecture.data.get("fields", {}).items():
        for key in spec.get("from", ()):
            if key != "model_type":
                yield name, key


def nearest(rules: Rules, name: str, config: Mapping[str, Any]) -> list[Match]:
    """The families that can read the config, best first; without those of nested text parts."""
    found = []
    usual = fallback(rules, name, config)
    for architecture in rules.architectures:
        types = architecture.own.get("matches", {}).get("model_type", ())
        if "refuse" in architecture.own or not types or "text" in architecture.data:
            continue
        alike = {**config, "model_type": types[0]}
        try:
            model = resolve([architecture], name, alike, "a proposal", None, stack=rules.stack)
        except FitcheckError:
            continue
        pairs = [(f, k) for f, k in keys_read(architecture) if inside(config, k) is not None]
        known = {key.split(".")[0] for _, key in pairs}
        unread = tuple(key for key in shape_keys(config) if key not in known)
        known_fields = {field for field, _ in pairs}
        absent = len({field for field, _ in keys_read(architecture)} - known_fields)
        plain = parameters(model) == usual
        found.append(Match(architecture, model, tuple(pairs), unread, plain, absent))
    return sorted(found, key=lambda match: match.score, reverse=True)


def fallback(rules: Rules, name: str, config: Mapping[str, Any]) -> int | None:
    """The parameters by the file for unknown types, where that can read the config."""
    try:
        return parameters(resolve(rules.architectures, name, config, "", None, stack=rules.stack))
    except FitcheckError:
        return None


def proposal(
    rules: Rules, name: str | None, config: Mapping[str, Any]
) -> tuple[Skeleton, list[Match]]:
    """
    The family file for a config, and the families that can read it, that which it extends first.

    Raises
    ------
    InputProblem
        The config has no model_type, a file covers it already, or no family can read it.
    """
    kind = config.get("model_type")
    if not isinstance(kind, str) or not kind:
        raise InputProblem("The config has no model_type, so no family file could name it.")
    known = next((a for a in rules.architectures if a.names(kind)), None)
    if known is not None:
        raise InputProblem(
            f"{known.source.path} covers model_type {printable(kind, 60)} already: "
            f"`fitcheck rules eject DIR {known.id}` copies it to be changed."
        )
    stem = name or re.sub(r"[^a-z0-9]+", "-", kind.lower()).strip("-")
    if not re.fullmatch(r"[a-z0-9][a-z0-9._-]{0,60}", stem):
        raise InputProblem(
            f"`{printable(stem, 60)}` cannot be an id: use lower-case letters and -."
        )
    matches = nearest(rules, printable(kind, 60), config)
    if not matches:
        extended = [str(a.own["extends"]) for a in rules.architectures if "extends" in a.own]
        common = max(extended, key=extended.count, default="ID")
        raise InputProblem(
            f"No known family finds its dimensions in this config. `fitcheck rules show {common}` "
            "has the fields that most files take over; write a file with the keys of this one."
        )
    best = matches[0]
    text = family_file(stem, kind, best, config)
    then = (
        f"It extends {best.architecture.id} and is a draft. Decide what the open keys mean, then "
        "give its status as stable."
    )
    return Skeleton(f"profiles/architectures/{stem}.yaml", text, then), matches


def family_file(stem: str, kind: str, best: Match, config: Mapping[str, Any]) -> str:
    """The text of the file: what matched, what is open, and nothing else."""
    lines = [
        f"id: {stem}",
        f'title: "{printable(kind, 60)}, read like {best.architecture.id}"',
        "status: draft                     # a draft lowers every verdict that rests on it",
        f"extends: {best.architecture.id}",
        f"matches: {{model_type: [{_quoted(kind)}]}}",
        f"# verified: [{_quoted(kind)}]   once its counts are known to be right",
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
