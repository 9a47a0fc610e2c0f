"""The command that starts a training, alone or in a shell script, as a document of keys."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import yaml

from ..errors import InputProblem
from ..programs import alone, position
from .document import Document, Item, read_document
from .mapping import COMMAND, Importer

SCRIPTS = (".sh", ".bash", ".slurm", ".sbatch", ".txt")
CONTINUED = re.compile(r"\\\s*\n")
ASSIGNED = re.compile(r"(?:export\s+|declare\s+(?:-\w+\s+)?|readonly\s+)?([A-Za-z_]\w*)=(.*)")
NAMED = re.compile(r"\$(?:\{([A-Za-z_]\w*)(?::?-([^{}]*))?\}|([A-Za-z_]\w*))")
COMPUTED = re.compile(r"\$\([^()]*\)|`[^`]*`")  # its pipes are not those of the command
ARGUMENTS = ("$@", "$*", "${@}", "${*}")  # of the script itself
OPENED = "${"
PROGRAM = ".py"  # what a launcher starts ends the values of its options


def is_script(path: str) -> bool:
    """Whether a file holds commands."""
    if path.endswith(SCRIPTS):
        return os.path.isfile(path)
    try:
        with open(path, "rb") as file:
            return file.read(2) == b"#!"
    except OSError:
        return False


def command_document(path: str, text: str, known: Mapping[str, Importer]) -> Document:
    """
    The keys of the first training command in a text, over those of a file that it names.

    Raises
    ------
    InputProblem
        No line starts a program that is known here.
    """
    variables: dict[str, str] = {}
    for line, written in lines_of(text):
        command = expanded(written.strip(), variables)
        assigned = assignment(command)
        if assigned is not None:
            variables[assigned[0]] = assigned[1]
            continue
        try:
            words = alone(shlex.split(command, comments=True))
        except ValueError:
            continue
        found = [
            (begin, specific(start), name, start)
            for name, importer in known.items()
            for start in importer.commands
            if (begin := position(words, start.split())) is not None
        ]
        if found:  # what comes later is what a launcher launches
            own = [one for one in found if not is_value(words, one[0] - len(one[3].split()))]
            begin, _, name, start = max(own or found)
            return document_of(path, text, line, words, begin, known[name], start)
    starts = ", ".join(f"`{start}`" for importer in known.values() for start in importer.commands)
    raise InputProblem(
        f"{path}: no command that starts a training is known here; known are {starts}."
    )


def specific(start: str) -> tuple[int, int]:
    """How much the beginning of a command says: its last word, the script, counts most."""
    return len(start.split()[-1].replace("*", "")), len(start.replace("*", ""))


def is_value(words: Sequence[str], at: int) -> bool:
    """Whether a word is the value of the option before it, as in `--launcher torchrun`."""
    return at > 0 and words[at - 1].startswith("--") and not words[at].endswith(PROGRAM)


def assignment(command: str) -> tuple[str, str] | None:
    """The variable that a line sets, with its value; None for any other line."""
    match = ASSIGNED.fullmatch(command)
    if match is None:
        return None
    try:
        words = shlex.split(match[2], comments=True)
    except ValueError:
        return None
    return (match[1], "".join(words)) if len(words) <= 1 else None


def expanded(command: str, variables: Mapping[str, str]) -> str:
    """A line with the variables that the script sets; others stay, as `${NAME}`."""

    def value(match: re.Match[str]) -> str:
        name, usual = match[1] or match[3], match[2]
        return variables.get(name) or (usual if usual is not None else f"{OPENED}{name}}}")

    return NAMED.sub(value, COMPUTED.sub("${command}", command))


def lines_of(text: str) -> list[tuple[int, str]]:
    """Every command with the number of its first line, continued lines joined."""
    found, number = [], 1
    for whole in re.split(r"(?<!\\)\n", text):
        found.append((number, CONTINUED.sub(" ", whole)))
        number += whole.count("\n") + 1
    return found


def document_of(
    path: str,
    text: str,
    line: int,
    words: Sequence[str],
    begin: int,
    importer: Importer,
    start: str,
) -> Document:
    """The options of a command as keys, those of a launcher before it where they matter here."""
    items = {COMMAND: Item(COMMAND, start, line, 1)}
    matter = {key for rule in importer.rules for key in rule.when}
    for key, item in options_of(path, line, words[:begin], importer, read=False).items():
        if importer.entry(key) is not None or key in matter:
            items[key] = item
    rest = [word for word in words[begin:] if word not in ARGUMENTS]
    if len(rest) < len(words[begin:]):  # nobody knows what a caller adds
        items["$@"] = Item("$@", True, line, 1)
    items.update(options_of(path, line, rest, importer))
    if len(items) == 1:
        raise InputProblem(f"{path}: line {line} starts {importer.title} with no option or file.")
    return Document(path, text, items)


def options_of(
    path: str, line: int, words: Sequence[str], importer: Importer, read: bool = True
) -> dict[str, Item]:
    """
    `--key value`, `--key=value`, `key=value` and `--switch` as keys, over those of the files that
    the words name, if these are to be read.
    """
    items: dict[str, Item] = {}
    folder, rest = os.path.dirname(path), list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            continue
        option = word.startswith("-") and len(word) > 1 and not number(word)
        name, sign, value = word.lstrip("-").partition("=")
        named = importer.options.get(word.partition("=")[0], name).replace("-", "_")
        if not option and not sign:
            if read and any(fnmatchcase(word, one) for one in importer.files if "*" in one):
                items.update(named_file(path, line, folder, word, importer).items)
            elif word.startswith(OPENED):
                items[word] = Item(word, True, line, 1)
            continue
        given: Any = True
        if sign:
            given = plain(value)
        elif several := values_of(rest):
            del rest[: len(several)]
            given = plain(several[0]) if len(several) == 1 else [plain(one) for one in several]
        if read and word.partition("=")[0] in importer.files and isinstance(given, str):
            items.update(named_file(path, line, folder, given, importer).items)
            continue
        items[named] = Item(named, given, line, 1)
    return items


def named_file(path: str, line: int, folder: str, name: str, importer: Importer) -> Document:
    """The file that a command names; where it is not there, what its mapping says of that."""
    place = os.path.join(folder, name)
    if importer.absent and not os.path.exists(place):
        says = importer.absent.replace("{value}", name)
        raise InputProblem(f"{path}:{line}:1: {place}: there is no such file; {says}")
    return read_document(place)


def values_of(words: Sequence[str]) -> list[str]:
    """The values of the option before these words: up to an option, `key=value` or a program."""
    found: list[str] = []
    for word in words:
        option = word.startswith("-") and not number(word)
        if option or word.endswith(PROGRAM) or "=" in word:
            break
        found.append(word)
    return found


def number(word: str) -> bool:
    return re.fullmatch(r"-?\d+(\.\d+)?(e-?\d+)?", word, re.IGNORECASE) is not None


def plain(text: str) -> Any:
    """A word as YAML would read it; text that it cannot read stays text."""
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        return text
    return value if isinstance(value, (bool, int, float, str, list)) else text
