"""A GGUF file: the config that its metadata mean and the bytes of its tensors, by its header alone.

The library of llama.cpp reads it. Which metadata key is which key of a config.json is data, one
file of `profiles/gguf/` for each `general.architecture`.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import ExtraMissing, FitcheckError, InputProblem
from ..paths import data_folder
from ..record import record
from .names import RawModel, printable, quoted

SUFFIX = ".gguf"
_FOLDER = "profiles/gguf"
_SHARD = r"(.*-)00001(-of-(\d{5})\.gguf)"
_MOST_SHARDS = 1_000


@record
class Header:
    """Metadata by key, and of every tensor its shape (fastest dimension first) and its bytes."""

    metadata: Mapping[str, Any]
    shapes: Mapping[str, Sequence[int]]
    sizes: Mapping[str, int]


def load_gguf(path: str) -> RawModel:
    """
    The model in a GGUF file.

    Raises `InputProblem` where it cannot be read, a part of it is missing, the extra `gguf` is not
    installed, or no file maps its architecture.
    """
    header = read_header(path)
    for other in _other_parts(path, header.metadata.get("split.count")):
        part = read_header(other)
        header = Header(
            header.metadata, {**header.shapes, **part.shapes}, {**header.sizes, **part.sizes}
        )
    sizes = dict(header.sizes)
    return RawModel(
        name=printable(os.path.basename(path)[: -len(SUFFIX)]),
        config=config_of(path, header),
        reported_params=sum(map(math.prod, header.shapes.values())),
        source=f"GGUF file at {printable(path)}",
        source_kind="local",
        place=f"the header of {printable(os.path.basename(path))}",
        tensors=lambda: sizes,
    )


def read_header(path: str) -> Header:
    """The header of one file; raises `InputProblem`."""
    if not os.path.isfile(path):
        raise InputProblem(f"There is no file {quoted(path)}.")
    try:
        from .gguf_header import HeaderOnly
    except ImportError as error:
        raise ExtraMissing(
            f"Reading {quoted(path)} needs the gguf library ({error}): "
            "pip install 'fitcheck-llm[gguf]'."
        ) from error
    wrong = (ValueError, LookupError, TypeError, ArithmeticError, RecursionError, MemoryError)
    try:
        return Header(*HeaderOnly(path).contents())
    except OSError as error:
        raise InputProblem(f"Could not read {quoted(path)}: {error.strerror or error}.") from None
    except wrong as error:
        said = printable(str(error) or type(error).__name__, 200).rstrip(".")
        raise InputProblem(f"Could not read {quoted(path)} as a GGUF file: {said}.") from None


def _other_parts(path: str, count: Any) -> list[str]:
    """The further files of a model that is split; raises `InputProblem` where one is missing."""
    if not isinstance(count, int) or count < 2:
        return []
    found = re.fullmatch(_SHARD, os.path.basename(path))
    if found is None or int(found.group(3)) != count or count > _MOST_SHARDS:
        raise InputProblem(
            f"{quoted(path)} is one of {count} parts of a model; give the first of them, whose "
            "name ends in -00001-of-..., with the others beside it."
        )
    folder = os.path.dirname(path)
    names = [f"{found.group(1)}{n:05}{found.group(2)}" for n in range(2, count + 1)]
    missing = [name for name in names if not os.path.isfile(os.path.join(folder, name))]
    if missing:
        raise InputProblem(
            f"{quoted(path)} is the first of {count} parts, and {quoted(missing[0])} is not beside "
            "it, so the bytes of the model are not known."
        )
    return [os.path.join(folder, name) for name in names]


def config_of(path: str, header: Header) -> dict[str, object]:
    """The config.json that metadata mean; raises `InputProblem` for an unknown architecture."""
    name = header.metadata.get("general.architecture")
    if not isinstance(name, str):
        raise InputProblem(
            f"{quoted(path)} has no general.architecture, so it says no model: an adapter, a "
            "projector or a vocabulary alone."
        )
    file = os.path.join(data_folder(_FOLDER), f"{name}.yaml")
    if not re.fullmatch(r"[a-z0-9_.-]{1,40}", name) or not os.path.isfile(file):
        known = ", ".join(
            sorted(n[:-5] for n in os.listdir(data_folder(_FOLDER)) if n[-5:] == ".yaml")
        )
        raise InputProblem(
            f"{quoted(path)} is of the architecture {quoted(name)}, which fitcheck does not map to "
            f"a config.json; known are {known}. Give the config.json of the model, with --quant."
        )
    from ..yaml_source import read

    data = read(file, f"{_FOLDER}/{name}.yaml").data
    for variant in data["variants"]:
        wanted = variant.get("equals", {})
        if all(header.metadata.get(key) == value for key, value in wanted.items()):
            keys = {**data.get("config", {}), **variant.get("config", {})}
            config: dict[str, object] = {"model_type": variant["model_type"]}
            for key, spec in keys.items():
                value = _value(path, header, spec)
                if value is not None or "otherwise" in spec:
                    config[key] = spec.get("otherwise") if value is None else value
            return config
    raise FitcheckError(f"{_FOLDER}/{name}.yaml: no variant fits, so the last needs no `equals`.")


def _value(path: str, header: Header, spec: Mapping[str, Any]) -> object:
    """One value of the config; None where the header does not say it."""
    if "is" in spec:
        constant: object = spec["is"]
        return constant
    if "has" in spec or "lacks" in spec:
        return (spec.get("has", spec.get("lacks")) in header.sizes) == ("has" in spec)
    if "rows" in spec:
        shape = header.shapes.get(spec["rows"], ())
        return shape[1] if len(shape) > 1 else None
    found = next((header.metadata[k] for k in spec["from"] if k in header.metadata), None)
    less = header.metadata.get(spec.get("minus", ""), 0)
    if isinstance(found, list):
        if len(set(map(str, found))) > 1:
            raise InputProblem(
                f"{quoted(path)}: {spec['from'][0]} differs from layer to layer, which is not "
                "mapped to a config.json. Give the config.json of the model, with --quant."
            )
        found = found[0] if found else None
    if less and isinstance(found, int) and isinstance(less, int):
        return found - less
    return found if isinstance(found, (int, float, str)) else None
