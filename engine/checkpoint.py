"""What is known of the weights as they are stored, by the checkpoint file of a mode.

`formulas/MODE/checkpoint.yaml` has fields and checks as an architecture file has them, and under
`absent` the facts that formulas may read, with their values where config.json says nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from .config_fields import Config, inside
from .errors import ExtraMissing
from .sources.names import RawModel

if TYPE_CHECKING:
    from .resolver import Resolver
    from .yaml_source import Source


def facts_of(checkpoint: Source | None) -> Collection[str]:
    """The facts that formulas may read as fields of the model."""
    return () if checkpoint is None else tuple(checkpoint.data["absent"])


def stored_facts(
    checkpoint: Source, raw: RawModel, stack: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, str], tuple[str, ...]]:
    """
    The facts of a model's stored weights, where each comes from, and what to remark on them.

    Raises `InputProblem` where a field is of the wrong type, or a check of the file refuses what
    config.json says.
    """
    data = checkpoint.data
    facts = {n: tuple(v) if isinstance(v, list) else v for n, v in data["absent"].items()}
    origins: dict[str, str] = {}
    if always := data.get("always"):
        reader = _reader(checkpoint, raw, stack, {"fields": always})
        reader.read_fields()
        for name in facts.keys() & always.keys():
            facts[name], origins[name] = reader.values[name], reader.origin[name]
    if any(inside(raw.config, key) is not None for key in data.get("present", ())):
        reader = _reader(checkpoint, raw, stack, data)
        reader.read_fields()
        for name in (facts.keys() & reader.values.keys()) - (always or {}).keys():
            facts[name] = reader.values[name]
            origins[name] = f"the quantization of {raw.place}, {reader.origin[name]}"
        for name, value in facts.items():
            if isinstance(value, str) and f"{name}_from" in reader.values:
                origins[name] = str(reader.values[f"{name}_from"])
    remarks: tuple[str, ...] = ()
    try:
        wanted = raw.tensors if data.get("tensors") else None
        sizes = wanted() if wanted is not None else {}
    except ExtraMissing as missing:  # config.json alone still prices them
        sizes, remarks = {}, (str(missing),)
    for name, words in data.get("tensors", {}).items() if sizes else ():
        facts[name] = sum(n for tensor, n in sizes.items() if not words or _ends(tensor, words))
        origins[name] = f"the headers of the tensors ({raw.source})"
    return facts, origins, remarks


def _ends(tensor: str, words: Collection[str]) -> bool:
    """Whether the name of a tensor is one of the words, or ends with one after a dot."""
    return any(tensor == word or tensor.endswith(f".{word}") for word in words)


def _reader(
    checkpoint: Source, raw: RawModel, stack: Mapping[str, Any], data: Mapping[str, Any]
) -> Resolver:
    from .architecture import Architecture
    from .resolver import Resolver

    file = Architecture("checkpoint", "stable", {}, checkpoint, False, lambda: data, lambda: {})
    return Resolver(file, raw.name, Config(raw.config, raw.config, raw.place), stack)
