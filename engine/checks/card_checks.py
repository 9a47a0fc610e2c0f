"""Checks of card files: amounts, evidence that exists, names that belong to one card."""

from __future__ import annotations

from collections.abc import Iterator

from ..card_reader import read_card
from ..cards import normalised
from ..errors import Problem, RuleFileError
from ..scope import suggest
from ..units import Units
from ..yaml_source import Source


def check_cards(sources: list[Source], units: Units) -> Iterator[Problem]:
    """F502, F703, F705, F706 over every card file; only a `family` name may lead to several."""
    owners: dict[str, str] = {}
    families: list[tuple[str, Source]] = []
    for source in sources:
        try:
            read_card(source, units)
        except RuleFileError as error:
            yield from error.problems
            continue
        except (KeyError, TypeError, ValueError, AttributeError):
            continue  # its shape was reported
        data = source.data
        for name in ("total", "usable"):
            for proof in data["memory"][name]["evidence"]:
                if proof not in data["evidence"]:
                    yield source.problem(
                        "F502",
                        "dangling-evidence",
                        source.mark(("memory", name, "evidence")),
                        f"`{proof}` is not an entry under evidence."
                        f"{suggest(proof, data['evidence'])}",
                    )
        for name in (str(data["id"]), *map(str, data.get("aliases", ()))):
            key = normalised(name)
            if owners.setdefault(key, source.path) != source.path:
                yield source.problem(
                    "F706",
                    "name-taken",
                    source.mark(("aliases",)),
                    f"`{name}` already names the card of {owners[key]}; names are compared by "
                    "letters and digits only.",
                )
        families += [(str(name), source) for name in data.get("family", ())]
    for name, source in families:
        owner = owners.get(normalised(name))
        if owner is not None:
            yield source.problem(
                "F706",
                "name-taken",
                source.mark(("family",)),
                f"`{name}` is an id or alias in {owner}, so it leads to that card alone; move it "
                "to `family` there too.",
            )
