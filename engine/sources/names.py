"""What a model's name can look like, how names are shown, and the record every source returns."""

from __future__ import annotations

import re  # patterns are compiled when first needed: each costs a start 0.2 ms
from collections.abc import Callable, Mapping
from typing import Literal

from ..record import record

SourceKind = Literal["local", "catalogue", "hub"]

# Organisation and repository, or a bare repository. The Hub's own rules are a little stricter;
# what passes here and fails there is reported in the Hub library's words.
_HUB_ID = r"[A-Za-z0-9_][A-Za-z0-9._-]{0,95}(/[A-Za-z0-9_][A-Za-z0-9._-]{0,95})?"
_HUB_ADDRESS = r"https?://(?:www\.)?(?:huggingface\.co|hf\.co)/([^/?#]+/[^/?#]+)"

WEIGHT_SUFFIXES = (
    ".safetensors",
    ".safetensors.index.json",
    ".gguf",
    ".bin",
    ".bin.index.json",
    ".pt",
    ".pth",
)


@record
class RawModel:
    """A model as its source describes it, before any field is interpreted.

    `config` is the parsed config.json, known only to be an object; `reported_params` is the exact
    parameter count where the source states one; `source` is the line a person reads.
    """

    name: str
    config: dict[str, object]
    reported_params: int | None
    source: str
    source_kind: SourceKind
    place: str = "config.json"  # the file that its dimensions come from
    remark: str = ""  # what is uncertain about them
    tensors: Callable[[], Mapping[str, int]] | None = None  # reads the bytes of stored tensors


def printable(text: str, longest: int = 200) -> str:
    """`text` without characters that would move a terminal's cursor, and of bounded length."""
    if len(text) > longest:
        text = text[:longest] + "..."
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text
    )


def quoted(text: str) -> str:
    """`text` in single quotes, safe to print."""
    return f"'{printable(text)}'"


def is_hub_id(text: str) -> bool:
    """True for `org/name` or a bare name made of the characters that the Hub allows."""
    return re.fullmatch(_HUB_ID, text) is not None


def id_in_address(text: str) -> str | None:
    """The `org/name` in the address of a model's page on the Hub, or None."""
    found = re.match(_HUB_ADDRESS, text) if text.startswith("http") else None
    return found.group(1) if found and is_hub_id(found.group(1)) else None


def looks_like_path(text: str) -> bool:
    """True for text that only a path is written like, whether or not such a file exists."""
    return (
        text.startswith(("./", "../", "/", "~"))
        or text in (".", "..")
        or "\\" in text
        or (text[1:2] == ":" and text[0].isascii() and text[0].isalpha())  # a drive
        or text.lower().endswith((".json", *WEIGHT_SUFFIXES))
    )
