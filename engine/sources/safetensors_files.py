"""The bytes of the tensors in a folder of safetensors files, from their headers alone."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from ..errors import ExtraMissing, InputProblem
from .config_file import read_config
from .names import quoted

SUFFIX = ".safetensors"
INDEX, SINGLE = "model.safetensors.index.json", "model.safetensors"
_MOST_INDEX_BYTES = 100_000_000  # that of a model with 60,000 tensors has 9 MB
_BITS_OF_TRUTH = 8  # the only type without a number in its name


def weight_files(folder: str) -> list[str]:
    """Paths of the safetensors files that hold a model: those of its index, else the one of it."""
    if os.path.isfile(os.path.join(folder, INDEX)):
        return [os.path.join(folder, name) for name in sorted(set(_index(folder)[0].values()))]
    single = os.path.join(folder, SINGLE)
    return [single] if os.path.isfile(single) else []


def holds_tensors(folder: str) -> bool:
    """Whether the headers of a folder say the bytes of its tensors."""
    return any(os.path.isfile(os.path.join(folder, name)) for name in (INDEX, SINGLE))


def stored_tensors(folder: str) -> dict[str, int]:
    """
    The bytes of every tensor by its name; their sum under "" where the index has no file beside it.

    Raises `InputProblem` where a file is missing, cut off or wrong, or the extra `safetensors` is
    not installed and headers are to be read.
    """
    files = weight_files(folder)
    missing = [path for path in files if not os.path.isfile(path)]
    if len(missing) == len(files) and files:
        total = _index(folder)[1]
        if total is not None:
            return {"": total}
    if missing:
        raise InputProblem(
            f"The index of {quoted(folder)} names {len(files)} files and {len(missing)} are "
            f"missing, such as {quoted(os.path.basename(missing[0]))}: the bytes of its tensors "
            "are not known. Give a folder that is whole, or the path of its config.json."
        )
    found: dict[str, int] = {}
    for path in files:
        found.update(read_headers(path))
    return found


def read_headers(path: str) -> dict[str, int]:
    """The bytes of every tensor of one file; raises `InputProblem`."""
    try:
        import numpy  # noqa: F401  (the library reads nothing without it)
        from safetensors import SafetensorError, safe_open
    except ImportError as error:
        raise ExtraMissing(
            f"The header of {quoted(path)} was not read, because the safetensors library is not "
            f"there ({error}): pip install 'fitcheck-llm[safetensors]'. Its bytes are derived from "
            "config.json."
        ) from error
    try:
        with safe_open(path, framework="np") as file:
            return {name: _bytes(file.get_slice(name)) for name in file.keys()}  # noqa: SIM118
    except OSError as error:
        raise InputProblem(f"Could not read {quoted(path)}: {error.strerror or error}.") from None
    except (SafetensorError, ValueError, OverflowError) as error:
        raise InputProblem(
            f"Could not read {quoted(path)} as a safetensors file (cut off, or no such file): "
            f"{str(error)[:200]}."
        ) from None


def _bytes(tensor: object) -> int:
    """The bytes of a tensor by its type, such as F8_E4M3, and its shape."""
    dtype, shape = str(tensor.get_dtype()), tensor.get_shape()  # type: ignore[attr-defined]
    bits = re.search(r"\d+", dtype)
    count = int(bits.group()) if bits else _BITS_OF_TRUTH
    for n in shape:
        count *= int(n)
    return count // 8


def _index(folder: str) -> tuple[Mapping[str, str], int | None]:
    """Tensor to file, and the bytes of all, as the index says; raises `InputProblem`."""
    path = os.path.join(folder, INDEX)
    data = read_config(path, quoted(path), _MOST_INDEX_BYTES)
    files, metadata = data.get("weight_map"), data.get("metadata")
    named = isinstance(files, dict) and all(
        isinstance(f, str) and os.path.basename(f) == f and f.endswith(SUFFIX)
        for f in files.values()
    )
    if not named or not files:
        raise InputProblem(f"{quoted(path)} has no weight_map from tensors to safetensors files.")
    assert isinstance(files, dict)
    total = metadata.get("total_size") if isinstance(metadata, dict) else None
    if isinstance(total, float) and total.is_integer():
        total = int(total)
    whole = isinstance(total, int) and not isinstance(total, bool) and 0 < total < 10**18
    return files, total if whole else None
