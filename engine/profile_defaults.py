"""Defaults that a profile gives: an engine's own block size where nobody set one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .errors import FitcheckError
from .flags import FromProfile, Settings
from .formula import VALUE
from .profile import Profile, best_match
from .record import replace

if TYPE_CHECKING:
    from .rules import Rules


def refilled(rules: Rules, settings: Settings, card: Mapping[str, Any]) -> Settings:
    """The settings on another card, which may be another profile's."""
    flags = rules.flags.flags
    left = {
        name: flag.default
        for name, flag in flags.items()
        if isinstance(flag.default, FromProfile) and settings.origin[name] != flag.option
    }
    if not left:
        return settings
    return filled(rules, replace(settings, values={**settings.values, **left}), card)


def filled(rules: Rules, settings: Settings, card: Mapping[str, Any]) -> Settings:
    """
    The settings with a value for every flag that was left to a profile; `card` are its facts.

    Raises
    ------
    FitcheckError
        The chosen profile gives no such value, or one that the flag cannot have.
    """
    values: dict[str, Any] = {}
    origin: dict[str, str] = {}
    chosen: dict[str, Profile] = {}
    facts = {"card": card.get("id"), **{f"card.{n}": v for n, v in card.items()}}
    for name, default in settings.values.items():
        if not isinstance(default, FromProfile):
            continue
        kind = default.kind
        if kind not in chosen:
            chosen[kind] = best_match(
                rules.profiles.get(kind, ()), {**facts, **settings.values}.get
            )[0]
        profile = chosen[kind]
        try:
            value = profile.value(default.field, VALUE)
        except KeyError:
            raise FitcheckError(
                f"{profile.mark}: `{profile.id}` gives no `{default.field}`, which stands in for "
                f"{rules.flags.spelled(name)}."
            ) from None
        values[name] = rules.flags.check(rules.flags.flags[name], value)
        origin[name] = profile.source.path
    if not values:
        return settings
    return replace(
        settings, values={**settings.values, **values}, origin={**settings.origin, **origin}
    )
