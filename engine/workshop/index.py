"""Every rule file by id: what it is, where it lies, and what else an id could have meant."""

from __future__ import annotations

from collections.abc import Iterator

from ..cards import find_card
from ..errors import InputProblem
from ..loading import SPECIAL, files_of, placed, profile_kinds
from ..modes import HEAD
from ..record import record
from ..rules import Rules
from ..scope import suggest
from ..yaml_source import read
from .everything import own


@record
class Entry:
    """One rule file; `said` is its name in messages, `path` where it really lies."""

    folder: str
    id: str
    kind: str
    title: str
    status: str
    path: str
    said: str
    overlay: bool
    mode: str | None = None

    @property
    def name(self) -> str:
        """`overhead/default`, which is unique where the id alone is not."""
        return f"{self.folder.removeprefix('profiles/')}/{self.id}"


def entries(rules: Rules) -> list[Entry]:
    """Formulas, vocabulary, profiles, statuses, architectures and blocks, folder by folder."""
    modes = rules.modes.values()
    return [
        *_formulas(rules, rules),
        *(entry for part in modes for entry in _formulas(rules, part)),
        *_profiles(rules),
        *(entry for part in modes for entry in _profiles(part)),
        *_families(rules),
    ]


def mode_name(rules: Rules) -> str | None:
    """The mode of some rules; None for training."""
    return rules.mode.id if rules.mode is not None else None


def _formulas(rules: Rules, part: Rules) -> Iterator[Entry]:
    mode = mode_name(part)
    folder = placed("formulas", mode)
    shown = sorted(
        own(rules, part),
        key=lambda f: (not f.live, f.order if f.live else 0, f.id.casefold()),
    )
    files = files_of(rules.roots, folder)
    for formula in shown:
        if formula.id in files:
            kind = "component" if formula.live else "quantity"
            yield Entry(
                folder, formula.id, kind, formula.title, formula.status, *files[formula.id], mode
            )
    for stem in (*SPECIAL, HEAD):
        if stem in files:
            title = str(read(files[stem][0]).data.get("title", ""))
            yield Entry(folder, stem, "vocabulary", title, "stable", *files[stem], mode)


def _profiles(rules: Rules) -> Iterator[Entry]:
    mode = mode_name(rules)
    for kind in profile_kinds(rules.roots, mode):
        folder = placed(f"profiles/{kind}", mode)
        files = files_of(rules.roots, folder)
        for profile in rules.profiles.get(kind, ()):
            if profile.id in files:
                yield Entry(
                    folder,
                    profile.id,
                    "profile",
                    profile.title,
                    profile.status,
                    *files[profile.id],
                    mode,
                )
    folder = placed("profiles/statuses", mode)
    files = files_of(rules.roots, folder)
    for status in rules.statuses:
        if status.id in files:
            where = files[status.id]
            state = status.formula.status
            yield Entry(folder, status.id, "status", status.title, state, *where, mode)


def _families(rules: Rules) -> Iterator[Entry]:
    files = files_of(rules.roots, "profiles/architectures")
    for architecture in rules.architectures:
        title = str(architecture.own.get("title", ""))
        yield Entry(
            "profiles/architectures",
            architecture.id,
            "architecture",
            title,
            architecture.status,
            *files[architecture.id],
        )
    files = files_of(rules.roots, "profiles/blocks")
    for stem, source in rules.blocks.items():
        title, state = str(source.data.get("title", "")), str(source.data.get("status", "draft"))
        yield Entry("profiles/blocks", stem, "block", title, state, *files[stem])


def counts(rules: Rules) -> dict[str, int]:
    """How many cards and catalogue models there are, which a list would drown in."""
    return {
        "cards": len(files_of(rules.roots, "gpus")),
        "models": len(files_of(rules.roots, "profiles/models")),
    }


def find(rules: Rules, text: str) -> Entry:
    """
    The rule file with this id (`optimizer`), name (`overhead/default`) or card alias (`rtx 4090`).

    Raises
    ------
    InputProblem
        Nothing has the id, or several have; the message says which. An id that training has is
        training's; the file of a mode with the same id has a name, such as `statuses/MODE/ID`.
    """
    known = entries(rules)
    wanted = text.removesuffix(".yaml").removeprefix("profiles/")
    found = [e for e in known if wanted in (e.id, e.name)]
    found = [e for e in found if e.mode is None or wanted == e.name] or found
    if len(found) > 1:
        names = " and ".join(e.name for e in found)
        raise InputProblem(f"`{text}` is the id of {names}: write one of them.")
    if found:
        return found[0]
    card = _card(rules, wanted.removeprefix("gpus/"))
    if card is not None:
        return card
    near = suggest(wanted, [*(e.id for e in known), *(e.name for e in known)])
    raise InputProblem(f"No rule file has the id `{text}`.{near} `fitcheck rules list` has all.")


def _card(rules: Rules, text: str) -> Entry | None:
    try:
        card = find_card(text, rules.folders("gpus"), rules.units)
    except InputProblem:
        return None
    path, said, overlay = files_of(rules.roots, "gpus")[card.id]
    return Entry("gpus", card.id, "card", card.title, card.status, path, said, overlay)


def readers(rules: Rules, name: str) -> list[str]:
    """The ids of the quantities that read this one."""
    return [f.id for f in rules.formulas.values() if name in rules.reads_of(f)]
