"""Profile files (overhead, reserve, ...): a key, the values it gives, and the best match."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from .errors import FitcheckError, Mark, RuleFileError
from .record import record
from .versions import Version

if TYPE_CHECKING:
    from .formula import Constant, Evidence
    from .yaml_source import Source


@record(identity=True)
class Profile:
    """
    One file of `profiles/<kind>/`.

    `matches` maps a flag, `card` or `card.<field>` to the value it must have; `values` holds words
    and banded constants.
    """

    kind: str
    id: str
    title: str
    status: str
    matches: Mapping[str, Any]
    values: Mapping[str, str | Constant]
    evidence: Mapping[str, Evidence]
    mark: Mark
    source: Source
    overlay: bool = False
    extends: str = ""  # another profile of the kind, whose values hold where this one gives none
    options: Mapping[str, Mapping[str, Any]] = {}  # options of the program that it describes
    commands: tuple[str, ...] = ()  # how a command of this program begins
    defaults: Mapping[str, Any] = {}  # flags of a command that does not say the first of them
    assumes: Mapping[str, str] = {}  # flags that a command should say, and what the program takes

    def value(self, name: str, band: int) -> Any:
        """The value at a band end (0 low, 1 value, 2 high); raises KeyError where there is none."""
        found = self.values[name]
        return found if isinstance(found, str) else found.band[band]


@record
class PassedOver:
    """A profile that was not chosen; `key` is the first that failed, empty if less specific."""

    profile: Profile
    key: str
    wanted: Any
    found: Any


def matches(wanted: Any, found: Any) -> bool:
    """Whether a fact has the wanted value; lists are compared as sets, versions with bounds."""
    if isinstance(found, Version):
        try:
            return found.within(str(wanted))
        except ValueError as error:
            raise FitcheckError(f"{error}; a profile key for a version needs a range.") from None
    if isinstance(wanted, (list, tuple)):
        if isinstance(found, (list, tuple)):
            return sorted(map(str, wanted)) == sorted(map(str, found))
        return found in wanted
    return type(wanted) is type(found) and bool(wanted == found)


def more_specific(one: Profile, other: Profile) -> bool:
    """
    Whether one profile has all the keys of the other, and more.

    A card decides its fields, so the key `card` includes every `card.<field>`.
    """
    if not _covers(one, other):
        return False
    return not _covers(other, one) or set(one.matches) > set(other.matches)


def _covers(one: Profile, other: Profile) -> bool:
    named = "card" in one.matches
    return all(k in one.matches or (named and k.startswith("card.")) for k in other.matches)


def best_match(
    profiles: Sequence[Profile], fact: Callable[[str], Any]
) -> tuple[Profile, tuple[PassedOver, ...]]:
    """
    The most specific profile whose every key holds, and those passed over.

    A profile beats another if it is more specific; two that fit, neither of them more specific
    than the other, are a tie.

    Raises
    ------
    RuleFileError
        On a tie, or where nothing matches.
    """
    fitting: list[Profile] = []
    passed: list[PassedOver] = []
    for profile in profiles:
        for key, wanted in profile.matches.items():
            found = fact(key)
            if not matches(wanted, found):
                passed.append(PassedOver(profile, key, wanted, found))
                break
        else:
            fitting.append(profile)
    if not fitting:
        kind = profiles[0].kind if profiles else "?"
        raise FitcheckError(
            f"No file of profiles/{kind} matches this run; one with `matches: {{}}` "
            "has to be the fallback."
        )
    best, *rivals = [p for p in fitting if not any(more_specific(o, p) for o in fitting)]
    if rivals:
        _tie(best, rivals[0])
    passed += [PassedOver(p, "", None, None) for p in fitting if p is not best]
    return best, tuple(passed)


def _tie(first: Profile, second: Profile) -> NoReturn:
    raise RuleFileError(
        [
            first.source.problem(
                "F305",
                "profile-tie",
                first.source.key_mark(("matches",)),
                f"`{first.id}` and `{second.id}` ({second.mark.path}) both match this run and "
                "neither has all the keys of the other. Add a key to one of them.",
            )
        ]
    )
