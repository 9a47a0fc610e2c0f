"""From what a person typed to a model: a path, a name of the bundled catalogue, or a Hub id.

`load_model` decides which of the three is meant; each source is one module.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Literal

from ..errors import FitcheckError, InputProblem
from .catalogue import Catalogue
from .local import describes_model, load_local
from .names import (
    RawModel,
    id_in_address,
    is_hub_id,
    looks_like_path,
    quoted,
)

__all__ = ["Catalogue", "RawModel", "Source", "load_model"]

Source = Literal["auto", "local", "catalogue", "hub"]
Check = Callable[[dict[str, object]], None]


kept: dict[tuple[str, str], RawModel] | None = None
"""What was read in this process, where somebody (a session) keeps it; None keeps nothing."""


def load_model(
    model: str | os.PathLike[str],
    *,
    source: Source = "auto",
    catalogue: Catalogue | None = None,
    check: Check | None = None,
) -> RawModel:
    """Finds and reads a model's configuration.

    "auto" takes an existing path first, then a catalogue name, then the Hub; another `source` is
    the only one asked. `check` gets the configuration as soon as it is read and may raise: for a
    model on the Hub that is before the second call, the one for its parameter count. Without a
    `catalogue` the bundled one is used. Raises InputProblem if the model cannot be read.
    """
    if kept is not None and (os.fspath(model), source) in kept:
        return _checked(kept[os.fspath(model), source], check)
    found = _load(model, source, catalogue, check)
    if kept is not None:
        kept[os.fspath(model), source] = found
    return found


def _load(
    model: str | os.PathLike[str], source: Source, catalogue: Catalogue | None, check: Check | None
) -> RawModel:
    text = os.fspath(model)
    if source == "auto" and not isinstance(model, str):
        source = "local"
    if not text.strip():
        raise InputProblem("No model given: the name is empty.")
    if source == "local" or (source == "auto" and _means_path(text)):
        return _checked(load_local(text), check)
    text = text.strip()
    if source in ("auto", "catalogue"):
        known = catalogue if catalogue is not None else Catalogue.bundled()
        entry = known.find(text)
        if entry is not None:
            return _checked(entry.raw_model(text), check)
        if source == "catalogue":
            near = _nearest(known, text) or "Give a Hub id or a path instead."
            raise InputProblem(f"{quoted(text)} is not in the bundled catalogue. {near}")
    if source not in ("auto", "hub"):
        raise InputProblem(f"{quoted(source)} is not a source: use auto, local, catalogue or hub.")
    return _from_hub(text, catalogue, check)


def _means_path(text: str) -> bool:
    if id_in_address(text):
        return False
    if looks_like_path(text) or describes_model(text):
        return True
    return os.path.isdir(text) and not is_hub_id(text)


def _checked(model: RawModel, check: Check | None) -> RawModel:
    if check is not None:
        check(model.config)
    return model


def _from_hub(text: str, catalogue: Catalogue | None, check: Check | None) -> RawModel:
    if not is_hub_id(text):
        known_id = id_in_address(text)
        meant = f" Did you mean {quoted(known_id)}?" if known_id else ""
        raise InputProblem(
            f"{quoted(text)} is neither an existing path nor a name that the Hugging Face Hub "
            f"allows (org/name, of letters, digits, '.', '_' and '-').{meant}"
        )
    from . import hub

    def alternative() -> str:
        near = _nearest(catalogue if catalogue is not None else Catalogue.bundled(), text)
        folder = (
            f"(The folder {quoted(text)} here holds no config.json.)" if os.path.isdir(text) else ""
        )
        return f"{near} {folder}".strip()

    config = hub.fetch_config(text, alternative)
    if check is not None:
        check(config)
    cached = " from the local cache, offline" if hub.is_offline() else ""
    return RawModel(
        name=text.split("/")[-1],
        config=config,
        reported_params=hub.reported_params(text),
        source=f"Hugging Face Hub ({text}){cached}",
        source_kind="hub",
    )


def _nearest(catalogue: Catalogue, text: str) -> str:
    try:
        if catalogue.find(text) is not None:
            return "The bundled catalogue has this model and needs no network: drop --source hub."
        near = catalogue.nearest(text)
    except FitcheckError:  # a damaged catalogue file must not hide the problem being reported
        near = None
    return (
        f"The nearest name in the bundled catalogue is {quoted(near)}; it needs no network."
        if near
        else ""
    )
