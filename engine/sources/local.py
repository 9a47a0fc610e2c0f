"""A model given by the path of a config.json, or of the folder that holds it."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial

from ..errors import InputProblem
from .config_file import read_config
from .names import WEIGHT_SUFFIXES, RawModel, printable, quoted

_CONFIG = "config.json"
_ADAPTER = "adapter_config.json"
GGUF = ".gguf"


def load_local(text: str) -> RawModel:
    """The model at a path; the name is the folder's, or the file's where it is named otherwise.

    Raises InputProblem, one sentence naming the path, for everything that keeps it from being
    read. The values in the file are not looked at here.
    """
    expanded = os.path.expanduser(text)
    if expanded.lower().endswith(GGUF) and os.path.isfile(expanded):
        from .gguf_file import load_gguf

        return load_gguf(expanded)
    path = _config_path(text)
    config = read_config(path, quoted(path))
    if os.path.basename(path) == _CONFIG:
        name = os.path.basename(os.path.dirname(os.path.abspath(path))) or _CONFIG
        kind = _CONFIG
    else:
        name = os.path.splitext(os.path.basename(path))[0]
        kind = "model configuration"
    return RawModel(
        name=printable(name),
        config=config,
        reported_params=None,
        source=f"{kind} at {printable(path)}",
        source_kind="local",
        tensors=_tensors(path) if os.path.isdir(expanded) else None,
    )


def _tensors(config: str) -> Callable[[], dict[str, int]] | None:
    """What reads the headers of the tensors beside a config.json, where there are any."""
    from .safetensors_files import holds_tensors, stored_tensors

    folder = os.path.dirname(config)
    return partial(stored_tensors, folder) if holds_tensors(folder) else None


def describes_model(path: str) -> bool:
    """True if `path` exists and a person who typed it can only mean the file or folder.

    A folder without any configuration is left open: an output folder must not hide
    the model of the same name.
    """
    path = os.path.expanduser(path)
    if os.path.isdir(path):
        return any(os.path.lexists(os.path.join(path, name)) for name in (_CONFIG, _ADAPTER))
    return os.path.lexists(path)


def _config_path(text: str) -> str:
    """The configuration file that `text` stands for."""
    path = os.path.expanduser(text)
    if os.path.isdir(path):
        inside = os.path.join(path, _CONFIG)
        if os.path.lexists(inside):
            return inside
        adapter = os.path.join(path, _ADAPTER)
        if os.path.lexists(adapter):
            raise _adapter_problem(adapter, f"The folder {quoted(text)} holds an adapter")
        raise InputProblem(
            f"The folder {quoted(text)} holds no config.json; give the folder of a model, or the "
            "path of its config.json."
        )
    if path.lower().endswith(WEIGHT_SUFFIXES):
        raise InputProblem(
            f"{quoted(text)} is a tensor file; fitcheck reads the model's config.json instead, so "
            "give the path of that file or of its folder, or that of a .gguf file."
        )
    if os.path.basename(path) == _ADAPTER and os.path.lexists(path):
        raise _adapter_problem(path, f"{quoted(text)} describes an adapter")
    if _is_missing(path):
        raise InputProblem(
            f"There is no file or folder {quoted(text)}; expected a config.json or the folder that "
            "holds one, a model id on the Hugging Face Hub (org/name), or a name of the bundled "
            "catalogue."
        )
    return path


def _is_missing(path: str) -> bool:
    """True only if nothing is there; what is there but out of reach gets its own sentence."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return True
    except OSError:
        return False
    return False


def _adapter_problem(path: str, finding: str) -> InputProblem:
    try:
        base = read_config(path, quoted(path)).get("base_model_name_or_path")
    except InputProblem:
        base = None
    named = f", {quoted(base)}" if isinstance(base, str) and base else ""
    return InputProblem(f"{finding}, not a model; estimate its base model{named} instead.")
