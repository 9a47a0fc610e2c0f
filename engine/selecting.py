"""How adapters pick modules: by the end of a path, or by a regular expression over the whole path.

The rules of PEFT (huggingface/peft v0.18.0, src/peft/tuners/tuners_utils.py,
check_target_module_exists): a name picks a module whose path is that name or ends with a dot and
it; one text that is a pattern has to match the whole path.

In a path `#` stands for the number of the layer, and an `N` between dots for that of one of the
equal modules that a layer has several of, such as experts.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache

from .evaluation import EvaluationError

SIGNS = frozenset("\\*+?()[]{}|^$")  # one of them makes a pattern of a name
LAYER, COPY = "#", "N"
TRIED = range(40)  # copies of a module that a pattern is tried on
LONGEST = 300
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
