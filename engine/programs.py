"""Other programs' own options: what people type for an engine, as flags of fitcheck.

The files of a kind of profiles say which options their program has (`options`), what each means
here, and how its command begins (`commands`); this module only reads words by them.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from .errors import InputProblem
from .record import record, replace
from .suggest import suggest
from .versions import is_version

if TYPE_CHECKING:
    from .flags import Flag
    from .profile import Profile
    from .rules import Rules


CONTINUED = re.compile(r"\\\s+(?=-|\n|$)|\\\n")  # a line that goes on, pasted as one or as several
ENDS = frozenset((";", "&&", "||", "|", "&", ">", ">>", "2>&1", "<"))
REDIRECTED = re.compile(r"(\d|&)?>{1,2}\S*")
CLOSE, SHORT = 0.85, 4  # how alike a mistyped option is, and how short ones are not compared


@record
class Typed:
    """
    What a command line of another program says.

    `flags` are flags of fitcheck; `free` options cost no memory and `unpriced` ones cost memory
    that is not in the estimate, each with its reason; `unknown` are those that no file lists, and
    `assumes` the flags that it leaves open, with what the program takes.
    """

    model: str | None
    flags: Mapping[str, Any]
    free: Mapping[str, str]
    unpriced: Mapping[str, str]
    unknown: tuple[str, ...]
    assumes: Mapping[str, str] = {}

    def told(self, program: str) -> tuple[str, ...]:
        """Sentences about what could not be priced."""
        told = [
            f"{option} of {program} is not priced ({why}), so the estimate may be too low"
            for option, why in self.unpriced.items()
        ]
        if self.unknown:
            names = ", ".join(self.unknown)
            told.append(
                f"{names}: not known here, so whatever {program} does with it is not priced"
            )
        return tuple(told)


def programs(rules: Rules) -> Iterator[tuple[str, str, Profile]]:
    """(flag, its value, file) of every program whose options are known."""
    for flag in rules.flags.flags.values():
        if flag.of:
            for profile in rules.profiles.get(flag.of, ()):
                if set(profile.matches) == {flag.id} and (profile.options or profile.commands):
                    yield flag.id, str(profile.matches[flag.id]), profile


def options_of(rules: Rules) -> dict[str, list[str]]:
    """Every option of another program to the programs that have it."""
    found: dict[str, list[str]] = {}
    for _, value, profile in programs(rules):
        for name in profile.options:
            found.setdefault(name, []).append(value)
    return found


def read_command(rules: Rules, text: str) -> tuple[str, Typed]:
    """
    The program and meaning of a whole command, such as `vllm serve MODEL --max-model-len 8192`.

    Raises
    ------
    InputProblem
        It is no command of a known program, or an option has a value that it cannot have.
    """
    try:
        words = alone(shlex.split(CONTINUED.sub(" ", text)))
    except ValueError as error:
        raise InputProblem(f"The command cannot be read: {error}.".lower().capitalize()) from None
    for flag, value, profile in programs(rules):
        for start in profile.commands:
            begin = position(words, start.split())
            if begin is not None:
                around = [w for w in words[:begin] if w.partition("=")[0] in profile.options]
                typed = read_options(rules, profile, [*around, *words[begin:]], whole=True)
                found = {flag: value, **tagged(rules, profile, words[begin - 1])}
                return value, replace(typed, flags={**found, **typed.flags})
    known = ", ".join(f"`{start}`" for _, _, p in programs(rules) for start in p.commands)
    raise InputProblem(
        f"{text[:80]!r} is no command of an engine that is known here. It has to hold {known}."
    )


def alone(words: Sequence[str]) -> list[str]:
    """The first command of a line of several."""
    found: list[str] = []
    for word in words:
        if word in ENDS or REDIRECTED.fullmatch(word):
            break
        found.append(word.rstrip(";"))
        if word.endswith(";"):
            break
    return found


def tagged(rules: Rules, profile: Profile, image: str) -> dict[str, str]:
    """The version that the tag of an image says (`vllm/vllm-openai:v0.11.0`), by its flag."""
    keys = {key for other in rules.profiles[profile.kind] for key in other.matches}
    flags = [f for f in map(rules.flags.flags.get, sorted(keys)) if f and f.kind == "version"]
    tag = image.rpartition(":")[2].removeprefix("v")
    return {f.id: tag for f in flags} if ":" in image and is_version(tag) else {}


def position(words: Sequence[str], start: Sequence[str]) -> int | None:
    """The place after the words that begin a command, which may be paths or stand after others."""
    for at in range(len(words) - len(start) + 1):
        here = words[at : at + len(start)]
        if all(
            fnmatchcase(word, pattern) or fnmatchcase(os.path.basename(word), pattern)
            for word, pattern in zip(here, start, strict=True)
        ):
            return at + len(start)
    return None


def read_options(
    rules: Rules, profile: Profile, words: Sequence[str], whole: bool = False
) -> Typed:
    """
    Options of one program.

    With `whole` the words are the rest of its command: the first word that belongs to no option is
    the model, and what no file lists is noted. Raises `InputProblem`.
    """
    flags: dict[str, Any] = {}
    free: dict[str, str] = {}
    unpriced: dict[str, str] = {}
    unknown: list[str] = []
    divided: dict[str, str] = {}
    model: str | None = None
    rest = list(words)
    while rest:
        word = rest.pop(0)
        name, sign, joined = word.partition("=")
        if not word.startswith("-") and (not sign or name not in profile.options):
            name, sign, joined = word, "", ""  # a model may have any sign in its name
        name = spelled(profile.options, name)
        if name not in profile.options:
            if not word.startswith("-"):
                if model is None:
                    model = word
                else:
                    unknown.append(word)
                continue
            if not whole:
                refuse_near(profile, name)
            unknown.append(name)
            if not sign and rest and not rest[0].startswith("-"):
                rest.pop(0)
            continue
        spec = spec_of(profile, name)
        value: str | None = joined if sign else None
        if not sign and with_value(profile, name, rest[0] if rest else ""):
            if not rest:
                raise InputProblem(f"{name} needs a value.")
            value = rest.pop(0)
        if "refused" in spec:
            raise InputProblem(f"{name}: {spec['refused']}.")
        if spec.get("model"):
            model = value
            tail = rules.flags.flags.get(str(spec.get("after_colon", "")))
            if model and tail is not None and ":" in model:  # REPOSITORY:Q4_K_M
                model, _, word = model.rpartition(":")
                flags[tail.id] = meant(tail, name, {}, word)
        elif "flag" in spec:
            flag = rules.flags.flags[str(spec["flag"])]
            if "value" in spec:
                if value is None or truth(name, value):
                    flags.setdefault(flag.id, spec["value"])
                continue
            if "key" in spec:
                value = inside(name, str(value), str(spec["key"]))
                if value is None:
                    unpriced[name] = str(spec.get("unpriced", ""))
                    continue
            said = meant(flag, name, spec, value)
            if said is None:
                continue  # the word that leaves it to the program
            flags[flag.id] = said
            if "divided_by" in spec:
                divided[flag.id] = str(spec["divided_by"])
        elif "unpriced" in spec:
            unpriced[name] = str(spec["unpriced"])
        else:
            free[name] = str(spec.get("free", ""))
    if whole and not flags.keys() & set(list(profile.defaults)[:1]):
        flags = {**profile.defaults, **flags}
    for target, by in divided.items():
        over = flags.get(by, rules.flags.flags[by].default)
        flags[target] = max(1, flags[target] // over)
    assumed = {f: said for f, said in profile.assumes.items() if f not in flags} if whole else {}
    return Typed(model, flags, free, unpriced, tuple(unknown), assumed)


def spec_of(profile: Profile, name: str) -> Mapping[str, Any]:
    """What a file says of an option, or of the one that it is another name of."""
    spec = profile.options[name]
    return profile.options[str(spec["same_as"])] if "same_as" in spec else spec


def with_value(profile: Profile, name: str, following: str) -> bool:
    """Whether an option takes the word after it."""
    spec = spec_of(profile, name)
    takes = spec.get("takes", "nothing" if "value" in spec else "value")
    return bool(takes == "value" or (takes == "maybe" and following[:1] not in ("-", "")))


def spelled(options: Mapping[str, Any], name: str) -> str:
    """The option as its file has it: engines take dashes and underscores alike."""
    if name in options or not name.startswith("--"):
        return name
    folded = name[2:].replace("_", "-")
    return next((o for o in options if o[:2] == "--" and o[2:].replace("_", "-") == folded), name)


def refuse_near(profile: Profile, name: str) -> None:
    """Raise `InputProblem` for what looks like an option that was mistyped."""
    import difflib  # only where something is wrong

    near = difflib.get_close_matches(name, list(profile.options), 1, CLOSE)
    if near and len(name) > SHORT:
        raise InputProblem(
            f"{name} is no option of {profile.title} that is known here. Did you mean {near[0]}?"
        )


def inside(option: str, text: str, key: str) -> str | None:
    """A word of an option that takes JSON; None where it has none. Raises `InputProblem`."""
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise InputProblem(f"{option} takes a JSON object, not {text[:60]!r}.")
    return str(found[key]) if key in found else None


def truth(option: str, value: str) -> bool:
    """`--option=true` or `=false`; raises `InputProblem` for another word."""
    found = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    if value.casefold() not in found:
        raise InputProblem(f"{option} is a switch: it takes no value but true or false.")
    return found[value.casefold()]


def meant(flag: Flag, option: str, spec: Mapping[str, Any], value: str | None) -> Any:
    """The value of an option as its flag takes it; raises `InputProblem`."""
    from .flags import check_value

    words: Mapping[str, Any] = spec.get("words", {})
    if value is None:
        return True  # an option that may stand alone
    known = {str(word).casefold(): meaning for word, meaning in words.items()}
    if value.casefold() in known:
        found: Any = known[value.casefold()]
        if found is None:
            return None
    elif words and flag.kind != "integer":
        raise InputProblem(
            f"{option} {value} is not modelled; it can be {', '.join(map(str, words))}."
            f"{suggest(value, [*map(str, words)])}"
        )
    else:
        found = number(value, spec.get("suffixes", {})) if flag.kind == "integer" else value
    try:
        return check_value(flag, found)
    except InputProblem as problem:
        raise InputProblem(str(problem).replace(flag.option, option)) from None


def number(text: str, suffixes: Mapping[str, int]) -> int | str:
    """`8192`, or `32k` where the program takes suffixes; other text as it is, to be refused."""
    for suffix, factor in suffixes.items():
        digits = text.removesuffix(suffix)
        if digits != text and digits.replace(".", "", 1).isdigit():
            return int(float(digits) * factor)
    return int(text) if text.lstrip("-").isdigit() and len(text) < 20 else text
