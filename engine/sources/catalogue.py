"""The bundled catalogue: facts about well-known models, one small YAML file each.

A lookup opens the one file that the name maps to. Only a name that maps to none is searched for
among the aliases, as plain text first, so that no run parses the whole folder.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from typing import Any

from ..data_cache import cache_of, save_caches
from ..errors import FitcheckError, InputProblem
from ..paths import data_folder
from ..record import record
from .names import RawModel, is_hub_id, quoted

_BUNDLED = "profiles/models"


@record
class Entry:
    """One catalogue file: the Hub id, what else people call the model, and its facts."""

    file: str
    hub_id: str
    aliases: tuple[str, ...]
    parameters: int
    config: dict[str, object]
    remark: str = ""  # what is uncertain about its dimensions

    def raw_model(self, typed: str) -> RawModel:
        """The entry as a model source, under the name that was asked for."""
        name, own = self.spelled(typed).split("/")[-1], self.hub_id.split("/")[-1]
        other = "" if name == own else f", with the dimensions of {self.hub_id}"
        return RawModel(
            name=name,
            config=self.config,
            reported_params=self.parameters,
            source=f"bundled catalogue{other} ({_BUNDLED}/{self.file})",
            source_kind="catalogue",
            place=f"{_BUNDLED}/{self.file}",
            remark=self.remark,
        )

    def spelled(self, typed: str) -> str:
        """The Hub id or alias that ends like what was typed, capitals as in the file."""
        names = (self.hub_id, *sorted(self.aliases, key=lambda name: "/" not in name))
        last = folded(typed).split("/")[-1]
        return next((n for n in names if folded(n).split("/")[-1] == last), self.hub_id)


@record
class Catalogue:
    """The entries in one folder, read on demand."""

    folder: str

    @classmethod
    def bundled(cls) -> Catalogue:
        """The catalogue that ships with fitcheck."""
        return cls(data_folder(_BUNDLED))

    def find(self, text: str) -> Entry | None:
        """The entry with this Hub id or alias, or with this name whoever its owner is; else None.

        Capitals are ignored. Raises FitcheckError if the file is damaged or two files claim the
        same alias, InputProblem if models of several owners have the name.
        """
        wanted = folded(text)
        compiled = self._compiled()
        if compiled is not None and wanted in compiled.NAMES:
            return Entry(*compiled.ENTRIES[compiled.NAMES[wanted]])
        if compiled is not None:
            files = {file for name, file in compiled.NAMES.items() if name.endswith(f"/{wanted}")}
            known = self._only(wanted, files)
            return Entry(*compiled.ENTRIES[known]) if known else None
        if is_hub_id(wanted):  # so that no text reaches beyond the folder
            file = _stem(wanted) + ".yaml"
            if os.path.isfile(os.path.join(self.folder, file)):
                entry = self._entry(file, self._text(file))
                save_caches()
                return entry
        found, named = list[Entry](), set[str]()  # by the whole name, and by what follows the owner
        for file in self._files():
            content = self._text(file)
            if wanted in folded(content):
                entry = self._entry(file, content)
                names = [folded(name) for name in (entry.hub_id, *entry.aliases)]
                if wanted in names:
                    found.append(entry)
                if any(name.endswith(f"/{wanted}") for name in names):
                    named.add(file)
        if len(found) > 1:
            both = " and ".join(entry.file for entry in found)
            raise FitcheckError(f"The name '{wanted}' is an alias in {both} of {_BUNDLED}.")
        if found:
            return found[0]
        only = self._only(wanted, named)
        return self._entry(only, self._text(only)) if only else None

    def _only(self, name: str, files: Collection[str]) -> str | None:
        """The one file of a model that is called so whoever its owner is, None without any."""
        if len(files) > 1:
            ids = sorted(file.removesuffix(".yaml").replace("--", "/") for file in files)
            raise InputProblem(
                f"{quoted(name)} is the name of several models of the bundled catalogue: "
                f"{', '.join(ids)}. Write one of them whole."
            )
        return next(iter(files), None)

    def _compiled(self) -> Any:
        """The generated module of a wheel, where this is its catalogue."""
        try:
            from .. import _compiled_models  # type: ignore[attr-defined]
        except ImportError:  # a checkout
            return None
        return _compiled_models if self.folder == data_folder(_BUNDLED) else None

    def nearest(self, text: str) -> str | None:
        """The Hub id whose spelling, or whose alias's spelling, is closest to `text`, if any is.

        Parses every file, so it is for error messages only.
        """
        import difflib

        names = {folded(name): e.hub_id for e in self.entries() for name in (e.hub_id, *e.aliases)}
        close = difflib.get_close_matches(folded(text), names, n=1, cutoff=0.75)
        return names[close[0]] if close else None

    def entries(self) -> Iterator[Entry]:
        """Every entry, in the order of the file names."""
        return (self._entry(file, self._text(file)) for file in self._files())

    def _files(self) -> list[str]:
        return sorted(file for file in os.listdir(self.folder) if file.endswith(".yaml"))

    def _text(self, file: str) -> str:
        try:
            with open(os.path.join(self.folder, file), encoding="utf-8") as stream:
                return stream.read()
        except (OSError, UnicodeDecodeError) as error:
            raise FitcheckError(f"{_BUNDLED}/{file} cannot be read: {error}.") from None

    def _entry(self, file: str, text: str) -> Entry:
        cache = cache_of(self.folder) if self.folder == data_folder(_BUNDLED) else None
        path = os.path.join(self.folder, file)
        data = cache.data(path, lambda: _parse(file, text)) if cache else _parse(file, text)
        hub_id, aliases = data.get("hub_id"), data.get("aliases", [])
        parameters, config = data.get("parameters"), data.get("config")
        count = parameters.get("value") if isinstance(parameters, dict) else None
        if not isinstance(hub_id, str) or _stem(hub_id) + ".yaml" != file:
            raise FitcheckError(f"{_BUNDLED}/{file}: hub_id does not match the file's name.")
        if not isinstance(aliases, list) or not all(isinstance(name, str) for name in aliases):
            raise FitcheckError(f"{_BUNDLED}/{file}: aliases must be a list of names.")
        if not isinstance(count, int) or isinstance(count, bool) or count <= 0:
            raise FitcheckError(f"{_BUNDLED}/{file}: parameters.value must be a positive integer.")
        if not isinstance(config, dict) or not all(isinstance(key, str) for key in config):
            raise FitcheckError(f"{_BUNDLED}/{file}: config must be a mapping.")
        return Entry(file, hub_id, tuple(aliases), count, config, _remark(file, data))


def _remark(file: str, data: dict[Any, Any]) -> str:
    """A warning where the dimensions of an entry were not copied from a config.json."""
    proof = (data.get("evidence") or {}).get("config") or {}
    if proof.get("kind") != "assumption":
        return ""
    return f"The dimensions of this model are not certain ({_BUNDLED}/{file}): {proof.get('says')}."


def _parse(file: str, text: str) -> dict[object, object]:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)
    try:
        data = loader.get_single_data()
    except yaml.YAMLError as error:
        raise FitcheckError(f"{_BUNDLED}/{file} is not valid YAML: {error}") from None
    finally:
        loader.dispose()
    if not isinstance(data, dict):
        raise FitcheckError(f"{_BUNDLED}/{file} must be a mapping.")
    return data


def folded(text: str) -> str:
    """A name as names are compared: lower case, spaces read as hyphens."""
    return "-".join(text.lower().split())


def _stem(hub_id: str) -> str:
    """The file name of a Hub id; the Hub allows no "--" in a name, so this is unambiguous."""
    return hub_id.lower().replace("/", "--")
