"""How adapters pick modules: by the end of a path, or by a regular expression over the whole path.

The rules of PEFT (huggingface/peft v0.18.0, src/peft/tuners/tuners_utils.py,
check_target_module_exists): a name picks a module whose path is that name or ends with a dot and
it; one text that is a pattern has to match the whole path.

In a path `#` stands for the number of the layer, and an `N` between dots for that of one of the
equal modules that a layer has several of, such as experts.

Lists of checkpoints, such as that of modules that stay as they are, have their own: `named`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import lru_cache

from .evaluation import EvaluationError

SIGNS = frozenset("\\*+?()[]{}|^$")  # one of them makes a pattern of a name
LAYER, COPY = "#", "N"
TRIED = range(40)  # copies of a module that a pattern is tried on
LONGEST = 300
BY_PATTERN, MOST_REPEATS = "re:", 4
LONGEST_SPAN, MOST_LAYERS = 40, 65_536


def is_pattern(word: str) -> bool:
    """Whether a target is a regular expression."""
    return not SIGNS.isdisjoint(word)


def selected(words: Collection[str], path: str, places: str) -> int:
    """In how many of the layers, `0-4 6`, one of the targets picks the module at this path."""
    return _selected(tuple(words), path, places)


@lru_cache(maxsize=65536)  # a run asks the same for several quantities
def _selected(words: tuple[str, ...], path: str, places: str) -> int:
    spans = layers_of(places)
    numbered, plain = _sorted_out(words)
    if any(path == word or path.endswith(f".{word}") for word in plain):
        return sum(map(len, spans))
    if not numbered:
        return 0
    return sum(
        1 for span in spans for layer in span if any(_picks(w, path, layer) for w in numbered)
    )


@lru_cache(maxsize=1024)
def _sorted_out(words: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """The words that may hang on the number of a layer, and those that do not."""
    numbered = [word for word in words if is_pattern(word) or _has_number(word)]
    return numbered, [word for word in words if word not in numbered]


@lru_cache(maxsize=1024)
def layers_of(places: str) -> tuple[range, ...]:
    """The layers that `0-4 6 8-9` stands for; raises `EvaluationError`."""
    spans = []
    for part in places.split():
        first, _, last = part.partition("-")
        if not (first.isdecimal() and (last or first).isdecimal() and len(part) < LONGEST_SPAN):
            raise EvaluationError(f"`{places[:LONGEST_SPAN]}` says no layers")
        spans.append(range(int(first), int(last or first) + 1))
    if sum(map(len, spans)) > MOST_LAYERS:
        raise EvaluationError(f"`{places[:LONGEST_SPAN]}` says more than {MOST_LAYERS:,} layers")
    return tuple(spans)


def _picks(word: str, path: str, layer: int) -> bool:
    if is_pattern(word):
        return _matches(word, path.replace(LAYER, str(layer)))
    if _has_number(word):
        path = path.replace(LAYER, str(layer))
    return path == word or path.endswith(f".{word}")


def layers_in(places: str, first: int, end: int, step: int) -> int:
    """How many of the layers, `0-4 6`, are one of first, first + step, ... below end."""
    if step < 1 or any(n != int(n) for n in (first, end, step)):
        raise EvaluationError("a span of layers needs whole numbers and a step of at least 1")
    wanted = range(max(0, int(first)), max(0, int(end)), int(step))
    return sum(1 for span in layers_of(places) for layer in span if layer in wanted)


def named(words: Collection[str], path: str, places: str) -> int:
    """
    In how many of the layers, `0-4 6`, a word of a checkpoint's list names the module at this path
    or what holds it: names from any dot to any other, `*` for any text, `re:` before a pattern.
    """
    return _named(tuple(words), path, places)


@lru_cache(maxsize=65536)
def _named(words: tuple[str, ...], path: str, places: str) -> int:
    plain, patterns = _lists(words)
    return sum(
        1
        for span in layers_of(places)
        for layer in span
        if _is_named(path.replace(LAYER, str(layer)), plain, patterns)
    )


def _is_named(path: str, plain: frozenset[str], patterns: Sequence[re.Pattern[str]]) -> bool:
    parts = path.split(".")
    spans = (".".join(parts[a:b]) for a in range(len(parts)) for b in range(a + 1, len(parts) + 1))
    return not plain.isdisjoint(spans) or any(pattern.match(path) for pattern in patterns)


@lru_cache(maxsize=256)
def _lists(words: tuple[str, ...]) -> tuple[frozenset[str], tuple[re.Pattern[str], ...]]:
    """The plain names, and the patterns that stand for the others."""
    plain = frozenset(w for w in words if "*" not in w and not w.startswith(BY_PATTERN))
    return plain, tuple(_pattern(word) for word in words if word not in plain)


def _pattern(word: str) -> re.Pattern[str]:
    """What a word with a sign matches from the start of a path; raises `EvaluationError`."""
    text = word.removeprefix(BY_PATTERN)
    if word.startswith(BY_PATTERN):
        # Groups that repeat and many repetitions take a time that nobody has.
        slow = re.search(r"\)[*+?{]", text) or sum(map(text.count, "*+{")) > MOST_REPEATS
    else:
        slow = text.count("*") > MOST_REPEATS
        text = rf"(?:.*\.)?{'.*'.join(map(re.escape, text.split('*')))}(?:\.|$)"
    if slow or len(word) > LONGEST:
        raise EvaluationError(f"`{word[:80]}` is too intricate for a list of modules")
    try:
        return re.compile(text)
    except re.error as error:
        raise EvaluationError(f"`{word}` is no regular expression ({error})") from None


def _has_number(word: str) -> bool:
    """Whether a name has the number of a layer in it."""
    return any(map(str.isdecimal, word.split(".")))


@lru_cache(maxsize=65536)
def _matches(pattern: str, path: str) -> bool:
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise EvaluationError(f"`{pattern}` is no regular expression ({error})") from None
    parts = path.split(".")
    tried = TRIED if COPY in parts else range(1)
    paths = (".".join(str(n) if part == COPY else part for part in parts) for n in tried)
    found = {bool(compiled.fullmatch(each)) for each in paths}
    if len(found) > 1:
        raise EvaluationError(f"`{pattern}` picks some of the equal modules {path}: not modelled")
    return found.pop()
