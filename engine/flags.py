"""Flags: what `formulas/flags.yaml` declares, and what a person's values resolve to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from .errors import InputProblem
from .evaluation import NO_LOOP, Thunk
from .formula import Parsed
from .record import record
from .selecting import LONGEST, is_pattern
from .suggest import suggest
from .versions import UNKNOWN, Version, is_version

if TYPE_CHECKING:
    from . import expression as ex
    from .scope import Scope
    from .units import Unit
    from .yaml_source import Source


PREFIXES = ("v", "b")  # tags and builds: v0.11.0, b9000


@record
class FromProfile:
    """A default that the chosen profile of a kind gives, filled in once the card is known."""

    kind: str
    field: str

    def __str__(self) -> str:
        return f"by {self.kind.removesuffix('s')}"


@record
class Flag:
    """One declared flag; `kind` is choice, switch, integer, share, text, words or version."""

    id: str
    kind: str
    option: str
    group: str
    help: str
    default: Any
    json: str | None
    null_without: str | None
    values: Mapping[str, str]
    inverse: bool
    low: int
    high: int
    unit: Unit | None
    presets: Mapping[str, tuple[str, ...]]
    short: Mapping[str, str]
    aliases: tuple[str, ...] = ()  # further spellings of the option
    of: str = ""  # the kind of profiles whose files give the values of a choice
    quiet: bool = False  # the table names it only where it was changed
    follows: str | None = None  # fact of the stored weights that is its default

    @property
    def domain(self) -> tuple[Any, ...] | None:
        """Every value of a discrete flag; None for numbers and lists."""
        if self.kind == "choice":
            return tuple(self.values)
        return (True, False) if self.kind == "switch" else None


@record
class Shorthand:
    """A switch that sets several flags, each of which an explicit flag overrides."""

    id: str
    option: str
    group: str
    sets: Mapping[str, Any]
    help: str


@record
class Conflict:
    """A combination that is refused before anything is computed."""

    id: str
    given: tuple[str, ...]
    when: ex.Node
    when_text: str
    says: str
    yields: tuple[str, ...] = ()  # a kept value of these gives way to what is typed now


Conflict.when = Parsed("when")  # type: ignore[assignment]


@record
class Settings:
    """Resolved flags; `origin` says where each value came from (flag, shorthand, default)."""

    values: Mapping[str, Any]
    origin: Mapping[str, str]

    def changed(self, **values: Any) -> Settings:
        """These settings with other values."""
        return Settings(
            {**self.values, **values}, {**self.origin, **dict.fromkeys(values, "changed")}
        )


@record(identity=True)
class FlagSet:
    """The declarations of `flags.yaml`, or those that a mode takes and adds."""

    flags: Mapping[str, Flag]
    shorthands: Mapping[str, Shorthand]
    conflicts: tuple[Conflict, ...]
    groups: tuple[str, ...]
    default_card: str
    source: Source
    functions: dict[str, Thunk]  # conditions of conflicts by their text, made when needed
    reserved: tuple[str, ...] = ()  # options of the command line itself

    def spelled(self, name: str) -> str:
        """The option as typed on the command line."""
        found = self.flags.get(name) or self.shorthands.get(name)
        return found.option if found else name

    def names(self) -> dict[str, str]:
        """Every keyword a caller may use (id, option spelling, JSON key) to the flag's id."""
        known: dict[str, str] = {}
        declared: list[Flag | Shorthand] = [*self.flags.values(), *self.shorthands.values()]
        for flag in declared:
            known[flag.id] = flag.id
            for option in (flag.option, *(flag.aliases if isinstance(flag, Flag) else ())):
                known.setdefault(option.lstrip("-").replace("-", "_"), flag.id)
            if isinstance(flag, Flag) and flag.json:
                known.setdefault(flag.json, flag.id)
        return known

    def stack(self, text: str) -> dict[str, str]:
        """`transformers=4.57.6,peft==0.18` as flags; raises `InputProblem`."""
        known = self.libraries()
        found: dict[str, str] = {}
        for part in text.split(","):
            exact = part.replace("==", "=")
            name, sign, version = (piece.strip() for piece in exact.partition("="))
            if name.rstrip("<>~! ") in known and name not in known:
                name = name.rstrip("<>~! ")
                raise InputProblem(
                    f"--stack {text}: a run has one version of {name}, so write {name}=VERSION."
                )
            if name not in known:
                raise InputProblem(
                    f"--stack {text}: {name!r} is no library that something hangs on here; known "
                    f"are {', '.join(known)}.{suggest(name, known)}"
                )
            if not sign or not version:
                raise InputProblem(f"--stack {text}: write {name}=VERSION.")
            try:
                self.check(self.flags[name], version)
            except InputProblem as problem:
                said = str(problem).replace(f"{self.flags[name].option} ", f"--stack {name}: ")
                raise InputProblem(said) from None
            found[name] = version
        return found

    def libraries(self) -> list[str]:
        """The flags that are versions of libraries."""
        return [name for name, flag in self.flags.items() if flag.kind == "version"]

    def versions(self, settings: Settings) -> dict[str, Any]:
        """The library versions of a run, by flag."""
        return {name: settings.values[name] for name in self.libraries()}

    def resolve(self, given: Mapping[str, Any]) -> Settings:
        """
        Defaults, then shorthands, then what was given explicitly.

        Parameters
        ----------
        given : mapping
            Flag id (or option spelling, or JSON key) to value. None means not given.

        Raises
        ------
        InputProblem
            An unknown flag, a value outside its domain, or a combination that is not modelled.
        """
        settings, explicit = self.settled(given)
        self.refuse_conflicts(settings, explicit)
        return settings

    def settled(self, given: Mapping[str, Any]) -> tuple[Settings, dict[str, Any]]:
        """`resolve` without a look at conflicts, and what was given explicitly by flag id."""
        known = self.names()
        explicit: dict[str, Any] = {}
        for name, value in given.items():
            if name not in known:
                raise InputProblem(f"There is no flag `{name}`.{suggest(name, known)}")
            flag_id = known[name]
            flag = self.flags.get(flag_id)
            if flag and flag.inverse and name != flag_id and isinstance(value, bool):
                value = not value  # no_lora=True is lora=False
            if value is None:
                continue
            if flag_id in explicit and explicit[flag_id] != value:
                raise InputProblem(f"`{name}` contradicts another spelling of the same flag.")
            explicit[flag_id] = value
        values = {f.id: f.default for f in self.flags.values()}
        origin = dict.fromkeys(values, "default")
        for short in self.shorthands.values():
            chosen = explicit.pop(short.id, False)
            if not isinstance(chosen, bool):
                raise InputProblem(f"{short.option} is a switch, not {chosen!r}.", flag=short.id)
            if chosen:
                values.update(short.sets)
                origin.update(dict.fromkeys(short.sets, short.option))
        for flag_id, value in explicit.items():
            values[flag_id], origin[flag_id] = value, self.flags[flag_id].option
        checked = {n: self.check(self.flags[n], v) for n, v in values.items()}
        return Settings(checked, origin), explicit

    def following(
        self, settings: Settings, facts: Mapping[str, Any], origins: Mapping[str, str]
    ) -> Settings:
        """
        These settings with what the model's files say of the flags that nobody gave.

        Raises `InputProblem` where that is not modelled, or does not go with what was given.
        """
        values, origin = dict(settings.values), dict(settings.origin)
        for flag in self.flags.values():
            fact = facts.get(flag.follows) if flag.follows else None
            if fact in (None, "") or origin[flag.id] != "default" or fact == flag.default:
                continue
            values[flag.id] = self.check(flag, fact)
            origin[flag.id] = origins.get(str(flag.follows), "the model")
        found = Settings(values, origin)
        self.refuse_conflicts(found, {n: v for n, v in values.items() if origin[n] != "default"})
        return found

    def check(self, flag: Flag, value: Any) -> Any:
        """The value in its canonical form, or `InputProblem` naming the flag."""
        return check_value(flag, value)

    def scope(self) -> Scope:
        """The names a condition over flags may use."""
        from .scope import Scope

        return Scope({}, {}, {}, self.flags, {})

    def holds(self, conflict: Conflict) -> Thunk:
        """The condition of a conflict as a function, made once."""
        text = conflict.when_text
        if text not in self.functions:
            from .algebra import EXACT, compile_tree

            tree = conflict.when
            self.functions[text] = compile_tree(tree, EXACT, self.scope().inside(tree))
        return self.functions[text]

    def refuse_conflicts(self, settings: Settings, explicit: Mapping[str, Any]) -> None:
        """Raise `InputProblem` for the first conflict that holds."""
        for conflict in self.conflicting(settings, explicit):
            raise InputProblem(fill(conflict.says, settings.values))

    def conflicting(self, settings: Settings, explicit: Mapping[str, Any]) -> Iterator[Conflict]:
        """The conflicts that hold, in the order of the file."""
        for conflict in self.conflicts:
            given = all(g in explicit for g in conflict.given)
            if given and self.holds(conflict)(FlagValues(settings), NO_LOOP):
                yield conflict

    def possible(self, values: Mapping[str, Any]) -> bool:
        """Whether a combination of discrete flags can occur at all."""
        from . import expression as ex

        run = FlagValues(Settings(values, {}))
        for conflict in self.conflicts:
            names = ex.names(conflict.when)
            applies = names <= values.keys() and not self.given_only(conflict, values)
            if applies and self.holds(conflict)(run, NO_LOOP):
                return False
        return True

    def given_only(self, conflict: Conflict, values: Mapping[str, Any]) -> bool:
        """A conflict about an explicit flag does not exclude that flag's default."""
        return any(
            values.get(g, self.flags[g].default) == self.flags[g].default for g in conflict.given
        )


def check_value(flag: Flag, value: Any) -> Any:
    """The value in its canonical form, or `InputProblem` naming the flag."""
    if isinstance(value, FromProfile) and value == flag.default:
        return value
    if flag.kind == "share":
        return check_share(flag, value)
    if flag.kind == "text":
        if not isinstance(value, str) or len(value) > LONGEST or not value.isprintable():
            raise InputProblem(f"{flag.option} has to be a short text.", flag=flag.id)
        return value
    if flag.kind == "switch":
        if not isinstance(value, bool):
            raise InputProblem(f"{flag.option} is a switch, not {value!r}.", flag=flag.id)
        return value
    if flag.kind == "choice":
        if isinstance(value, str) and any(v != v.lower() for v in flag.values):
            # Names with capitals are typed in any: Q4_K_M as q4_k_m. Others are matched exactly.
            same = (v for v in flag.values if v.lower() == value.lower())
            value = value if value in flag.values else next(same, value)
        if not isinstance(value, str) or value not in flag.values:
            hint = suggest(str(value), flag.values)
            raise InputProblem(
                f"{flag.option} {value} is not modelled; it can be {', '.join(flag.values)}.{hint}",
                flag=flag.id,
            )
        return value
    if flag.kind == "words":
        return check_words(flag, value)
    if flag.kind == "version":
        if isinstance(value, Version):
            return value
        if str(value)[:1] in PREFIXES and str(value)[1:2].isdigit():
            value = str(value)[1:]
        if str(value) != UNKNOWN and not is_version(str(value)):
            raise InputProblem(
                f"{flag.option} {value} is not a version such as 4.57 or 5.0.1, nor `{UNKNOWN}`.",
                flag=flag.id,
            )
        return Version(str(value))
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputProblem(f"{flag.option} has to be a whole number, not {value!r}.", flag=flag.id)
    if not flag.low <= value <= flag.high:
        raise InputProblem(
            f"{flag.option} {value} is out of range; it goes from {flag.low:,} to {flag.high:,}.",
            flag=flag.id,
        )
    return value


def check_share(flag: Flag, value: Any) -> Fraction:
    """A share above 0 and up to 1 as the decimal that was written, or `InputProblem`."""
    try:
        share = Fraction(str(value)[:30]) if not isinstance(value, bool) else Fraction(0)
    except (ValueError, ZeroDivisionError):
        share = Fraction(0)
    if not 0 < share <= 1:
        raise InputProblem(
            f"{flag.option} has to be a share such as 0.9, above 0 and up to 1, not {value!r}.",
            flag=flag.id,
        )
    return share


def check_words(flag: Flag, value: Any) -> tuple[str, ...]:
    if isinstance(value, (list, tuple)) and not value and () in flag.presets.values():
        return ()
    if not isinstance(value, (str, list, tuple)) or not value:
        raise InputProblem(f"{flag.option} needs module names, not {value!r}.", flag=flag.id)
    words = value.split(",") if isinstance(value, str) else list(value)
    if isinstance(value, str) and value.strip() in flag.presets:
        return flag.presets[value.strip()]
    if len(words) == 1 or (isinstance(value, str) and is_pattern(value)):
        text = value if isinstance(value, str) else str(words[0])
        if is_pattern(text):
            return (check_pattern(flag, text.strip()),)
    names: list[str] = []
    for word in words:
        name = flag.short.get(str(word).strip(), str(word).strip())
        if not name or not all(c.isalnum() or c in "._-" for c in name):
            known = ", ".join(flag.presets)
            raise InputProblem(
                f"{flag.option}: {str(word)!r} is no module name. Write names "
                f"separated by commas, or one of {known}.",
                flag=flag.id,
            )
        if name not in names:
            names.append(name)
    return tuple(names)


def check_pattern(flag: Flag, text: str) -> str:
    """A regular expression over module paths, or `InputProblem`."""
    import re

    try:
        re.compile(text)
    except re.error as error:
        raise InputProblem(
            f"{flag.option}: {text[:80]!r} is no regular expression ({error}).", flag=flag.id
        ) from None
    if len(text) > LONGEST:
        raise InputProblem(f"{flag.option}: a pattern has at most {LONGEST} characters.")
    return text


class FlagValues:
    """The smallest run: it only knows flags (for conditions over flags alone)."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def flag(self, name: str) -> Any:
        return self.settings.values[name]


def fill(text: str, values: Mapping[str, Any]) -> str:
    """`{name}` in a message replaced by the value; lists are joined with commas."""
    for name, value in values.items():
        if f"{{{name}}}" in text:
            shown = ",".join(value) if isinstance(value, tuple) else str(value)
            text = text.replace(f"{{{name}}}", shown)
    return " ".join(text.split())
