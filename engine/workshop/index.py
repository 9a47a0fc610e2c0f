"""Every rule file by id: what it is, where it lies, and what else an id could have meant."""

from __future__ import annotations

from collections.abc import Iterator

from ..cards import find_card
from ..errors import InputProblem
from ..loading import SPECIAL, files_of, profile_kinds
from ..record import record
from ..rules import Rules
from ..scope import suggest
from ..yaml_source import read


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

    @property
    def name(self) -> str:
        """`overhead/default`, which is unique where the id alone is not."""
        return f"{self.folder.removeprefix('profiles/')}/{self.id}"


def entries(rules: Rules) -> list[Entry]:
    """Formulas, vocabulary, profiles, statuses, architectures and blocks, folder by folder."""
    return [*_formulas(rules), *_profiles(rules)]


def _formulas(rules: Rules) -> Iterator[Entry]:
    shown = sorted(
        rules.formulas.values(),
        key=lambda f: (not f.live, f.order if f.live else 0, f.id.casefold()),
    )
    files = files_of(rules.roots, "formulas")
    for formula in shown:
        if formula.id in files:
            kind = "component" if formula.live else "quantity"
            yield Entry(
                "formulas", formula.id, kind, formula.title, formula.status, *files[formula.id]
            )
    for stem in SPECIAL:
        if stem in files:
            title = str(read(files[stem][0]).data.get("title", ""))
            yield Entry("formulas", stem, "vocabulary", title, "stable", *files[stem])


def _profiles(rules: Rules) -> Iterator[Entry]:
    for kind in profile_kinds(rules.roots):
        files = files_of(rules.roots, f"profiles/{kind}")
        for profile in rules.profiles.get(kind, ()):
            if profile.id in files:
                yield Entry(
                    f"profiles/{kind}",
                    profile.id,
                    "profile",
                    profile.title,
                    profile.status,
                    *files[profile.id],
                )
    files = files_of(rules.roots, "profiles/statuses")
    for status in rules.statuses:
        if status.id in files:
            where = files[status.id]
            state = status.formula.status
            yield Entry("profiles/statuses", status.id, "status", status.title, state, *where)
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
        Nothing has the id, or several have; the message says which.
    """
    known = entries(rules)
    wanted = text.removesuffix(".yaml").removeprefix("profiles/")
    found = [e for e in known if wanted in (e.id, e.name)]
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
