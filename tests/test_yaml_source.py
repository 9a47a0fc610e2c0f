"""Rule files as data: exact places, exact values, and one clear error for everything hostile."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings, strategies as st

from fitcheck.engine.errors import Mark, RuleFileError
from fitcheck.engine.yaml_problems import MAX_DEPTH, MAX_NODES
from fitcheck.engine.yaml_source import (
    MAX_BYTES,
    Source,
    parse,
    read,
    scalar,
)

# Of this process, so that a busy machine changes nothing; coverage slows it several times.
SECONDS = 30.0 if "COVERAGE_PROCESS_START" in os.environ else 1.0
# With libyaml, and without it: an installation may lack it, and then reads the same files.
LOADERS: list[Any] = [
    yaml.SafeLoader,
    *([yaml.CSafeLoader] if hasattr(yaml, "CSafeLoader") else []),
]

TEXT = """\
id: probe
cases:
  - {id: a, expr: b * s}
  - id: b
    evidence: [one,
               two]
"deep key":
  list:
    -
      - inner
"""


def value(text: str) -> Any:
    """The value of a scalar as written after a key."""
    return parse("probe.yaml", f"key: {text}\n").data["key"]


def place(mark: Mark) -> str:
    return f"{mark.line}:{mark.column}"


# --- places --------------------------------------------------------------------------------------


def test_line_and_column_of_every_value() -> None:
    source = parse("probe.yaml", TEXT)
    expected = {
        ("id",): "1:5",
        ("cases",): "3:3",
        ("cases", 0): "3:5",
        ("cases", 0, "id"): "3:10",
        ("cases", 0, "expr"): "3:19",
        ("cases", 1): "4:5",
        ("cases", 1, "evidence"): "5:15",
        ("cases", 1, "evidence", 0): "5:16",
        ("cases", 1, "evidence", 1): "6:16",
        ("deep key", "list", 0, 0): "10:9",
    }
    assert {path: place(source.mark(path)) for path in expected} == expected
    assert str(source.mark(("id",))) == "probe.yaml:1:5"


def test_line_and_column_of_every_key() -> None:
    source = parse("probe.yaml", TEXT)
    expected = {
        ("id",): "1:1",
        ("cases",): "2:1",
        ("cases", 0, "expr"): "3:13",
        ("cases", 1, "evidence"): "5:5",
        ("deep key",): "7:1",
        ("deep key", "list"): "8:3",
    }
    assert {path: place(source.key_mark(path)) for path in expected} == expected


def test_a_missing_place_falls_back_to_the_nearest_value_above() -> None:
    source = parse("probe.yaml", TEXT)
    assert place(source.mark(("cases", 0, "when"))) == "3:5"
    assert place(source.key_mark(("cases", 0, "when"))) == "3:5"
    assert place(source.mark(("nothing", "here"))) == "1:1"


def test_the_place_inside_an_expression() -> None:
    source = parse("probe.yaml", "plain: b * s\nquoted: 'b * s'\nfolded: >-\n  b *\n  s\n")
    assert place(source.inside(("plain",), 4)) == "1:12"
    # Quotes and folding move characters, so these point to where the text begins.
    assert place(source.inside(("quoted",), 4)) == "2:9"
    assert place(source.inside(("folded",), 4)) == "3:9"


# --- values --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12", 12),
        ("-3", -3),
        ("+3", 3),
        ("0", 0),
        ("8_030_261_248", 8_030_261_248),
        ("0.1", Fraction(1, 10)),
        ("0.25390625", Fraction(65, 256)),
        ("-7.40", Fraction(-37, 5)),
        ("1.0", Fraction(1)),
        ("123456789012345678901234567890", 123456789012345678901234567890),
        ("0.0000000000000000000000000000000001", Fraction(1, 10**34)),
    ],
)
def test_numbers_are_exact(text: str, expected: int | Fraction) -> None:
    found = value(text)
    assert found == expected
    assert isinstance(found, (int, Fraction))


@pytest.mark.parametrize(
    "text",
    [
        "1_0",  # underscores group thousands
        "12_34",
        "_100",
        "1_000_",
        "007",
        "0x10",
        "0o17",
        "0b1",
        "1e3",
        "1.5e3",
        ".5",
        "5.",
        "1_000.5",
        ".inf",
        ".nan",
        "1:30",
        "2026-01-31",
        "1,024",
        "24 GB",
    ],
)
def test_a_number_in_any_other_spelling_stays_text(text: str) -> None:
    assert value(text) == text


@pytest.mark.parametrize(("text", "expected"), [("true", True), ("false", False)])
def test_the_only_two_booleans(text: str, expected: bool) -> None:
    assert value(text) is expected


@pytest.mark.parametrize(
    "text", ["yes", "no", "on", "off", "y", "n", "True", "TRUE", "False", "Yes", "NO", "On"]
)
def test_other_words_for_truth_stay_text(text: str) -> None:
    assert value(text) == text


@pytest.mark.parametrize("text", ["null", "~", ""])
def test_nothing(text: str) -> None:
    assert value(text) is None


@pytest.mark.parametrize("text", ["true", "12", "0.5", "null", "~"])
def test_quotes_make_text(text: str) -> None:
    assert value(f"'{text}'") == value(f'"{text}"') == text


@pytest.mark.parametrize("text", ["Null", "NULL", "none", "None"])
def test_other_words_for_nothing_stay_text(text: str) -> None:
    assert value(text) == text


def test_keys_are_text() -> None:
    assert parse("probe.yaml", "1: a\ntrue: b\nnull: c\n").data == {
        "1": "a",
        "true": "b",
        "null": "c",
    }


def test_an_empty_file_is_nothing() -> None:
    assert parse("probe.yaml", "").data is None
    assert parse("probe.yaml", "# only a comment\n").data is None


def test_a_list_as_root_is_read_as_a_list() -> None:
    assert parse("probe.yaml", "- a\n- b\n").data == ["a", "b"]


def paths(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The path of every value."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for key, part in inner if isinstance(value, (dict, list)) else ():
        yield from paths(part, (*path, key))


def test_windows_line_ends_change_neither_values_nor_places() -> None:
    plain, windows = parse("p", TEXT), parse("p", TEXT.replace("\n", "\r\n"))
    assert windows.data == plain.data
    for path in paths(plain.data):
        assert windows.mark(path) == plain.mark(path)
        assert windows.key_mark(path) == plain.key_mark(path)


def test_a_byte_order_mark_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "probe.yaml"
    file.write_bytes(b"\xef\xbb\xbf" + TEXT.encode())
    found = read(str(file))
    assert found.data == parse("p", TEXT).data
    assert place(found.mark(("id",))) == "1:5"


def test_text_in_any_script(tmp_path: Path) -> None:
    file = tmp_path / "probe.yaml"
    file.write_text("title: Größe — 大きさ\n", encoding="utf-8")
    assert read(str(file)).data == {"title": "Größe — 大きさ"}


def test_the_name_in_messages_is_the_given_one(tmp_path: Path) -> None:
    file = tmp_path / "probe.yaml"
    file.write_text("a: 1\na: 2\n", encoding="utf-8")
    with pytest.raises(RuleFileError) as caught:
        read(str(file), "formulas/probe.yaml")
    assert caught.value.problems[0].mark == Mark("formulas/probe.yaml", 2, 1)


# --- what is refused -----------------------------------------------------------------------------


def refusal(make: Callable[[], Source]) -> RuleFileError:
    """The error, raised within a second, not counting searches in what other tests left."""
    gc.freeze()
    began = time.process_time()
    with pytest.raises(RuleFileError) as caught:
        make()
    took = time.process_time() - began
    gc.unfreeze()
    assert took < SECONDS
    return caught.value


def laughs() -> str:
    """Nine lists, each nine times the one above: 9 ** 9 values for who follows aliases."""
    lines = ["a0: &a0 [ha]"]
    for level in range(1, 10):
        lines.append(f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]")
    return "\n".join(lines)


HOSTILE = [
    ("anchor", "a: &x 1\nb: 2\n", "F104", "1:4", "`&x`: anchors are not read."),
    ("alias", "a: 1\nb: *x\n", "F104", "2:4", "`*x`: aliases are not read."),
    ("billion laughs", laughs(), "F104", "1:5", "`&a0`: anchors are not read."),
    ("merge key", "a: {<<: *x}\n", "F104", "1:9", "`*x`: aliases are not read."),
    ("local tag", "a: !mine 1\n", "F104", "1:4", "`!mine`: YAML tags are not read."),
    ("type tag", "a: !!str 1\n", "F104", "1:4", "tags are not read."),
    (
        "python tag",
        "a: !!python/object/apply:os.system ['touch ran']\n",
        "F104",
        "1:4",
        "tags are not read.",
    ),
    ("tagged key", "!!python/name:os.system a: 1\n", "F104", "1:1", "tags are not read."),
    ("two documents", "a: 1\n---\nb: 2\n", "F104", "2:1", "One file holds one document"),
    ("a list as key", "? [a, b]\n: 1\n", "F104", "1:3", "A key has to be a plain word."),
    ("a mapping as key", "{{a: 1}: 2}\n", "F104", "1:2", "A key has to be a plain word."),
    ("duplicate key", "a: 1\nb: 2\na: 3\n", "F102", "3:1", "the first is on line 1"),
    ("duplicate inner key", "x:\n  a: 1\n  a: 2\n", "F102", "3:3", "`a` appears twice under x"),
    ("deep lists", "a: " + "[" * 900, "F105", "1:27", f"Nested deeper than {MAX_DEPTH} levels."),
    ("deeper lists", "a: " + "[" * 5_000, None, None, ""),
    ("deep mappings", "{a: " * 100_000, "F105", None, f"Nested deeper than {MAX_DEPTH} levels."),
    ("deep keys", "[? " * 100_000, "F104", "1:4", "A key has to be a plain word."),
    ("compact lists", "- " * 3_000, "F105", None, f"Nested deeper than {MAX_DEPTH} levels."),
    ("many values", "- a\n" * (MAX_NODES + 1), "F105", None, f"More than {MAX_NODES:,} values"),
    ("tab as indent", "a:\n\tb: 1\n", "F100", "2:1", ""),
    ("open bracket", "a: [1, 2\n", "F100", None, ""),
    ("open quote", 'a: "one\n', "F100", None, ""),
    ("bad indent", "a: 1\n  b: 2\n", "F100", "2:4", ""),
    ("a colon in text", "a: one: two\n", "F100", "1:7", ""),
    ("control character", "a: \x07\n", "F100", None, ""),
    ("unknown escape", 'a: "\\q"\n', "F100", None, ""),
    ("directive", "%YAML 9.9\n---\na: 1\n", "F100", None, ""),
]


@pytest.mark.parametrize("loader", LOADERS, ids=lambda loader: loader.__name__)
@pytest.mark.parametrize(
    ("text", "code", "at", "says"), [h[1:] for h in HOSTILE], ids=[h[0] for h in HOSTILE]
)
def test_one_clear_error(
    loader: Any,
    text: str,
    code: str | None,
    at: str | None,
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if loader is yaml.SafeLoader and len(text) > 100 * MAX_DEPTH and text.startswith("- a"):
        pytest.skip("the parser in plain Python needs seconds for so many values")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("fitcheck.engine.yaml_problems._LOADER", loader)
    error = refusal(lambda: parse("probe.yaml", text))
    (problem,) = error.problems
    assert problem.code == code if code else problem.code in ("F100", "F105")
    assert says.casefold() in problem.message.casefold()
    assert problem.mark.path == "probe.yaml"
    if at is not None:
        assert place(problem.mark) == at
    assert problem.render().startswith(f"{problem.mark}  {problem.code} {problem.name}\n")
    assert not os.listdir(tmp_path), "a tag was run"


LONG = {
    "one word": "a: " + "x" * 900_000,
    "quoted": 'a: "' + "x " * 400_000 + '"',
    "escapes": 'a: "' + "\\x41" * 200_000 + '"',
    "folded": "a: >-\n" + "  word\n" * 100_000,
    "literal": "a: |\n" + " \n" * 300_000,
    "comments": "# x\n" * 200_000 + "a: 1\n",
    "spaces": " " * 900_000 + "a: 1\n",
    "one list": "a: [" + "1, " * 4_900 + "1]\n",
    "many keys": "".join(f"k{i}: 1\n" for i in range(2_400)),
}


@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
def test_a_long_file_is_read_within_a_second(text: str) -> None:
    if not hasattr(yaml, "CSafeLoader"):
        pytest.skip("the parser in plain Python needs seconds")
    began = time.process_time()
    assert parse("probe.yaml", text).data
    assert time.process_time() - began < SECONDS


@pytest.mark.parametrize("text", ["a: 1\n" * 100_000, "{" + "a: 1, " * 100_000 + "}"])
def test_many_duplicates(text: str) -> None:
    """A person reads a few problems, and a machine has to end."""
    error = refusal(lambda: parse("probe.yaml", text))
    assert error.problems[0].code == "F102"
    assert len(str(error)) < 100_000


# --- against the parser's own events --------------------------------------------------------------

PIECES = ["a", "b1", " ", "  ", "\n", "\n  ", "- ", "? ", ": ", ":", ",", "[", "]", "{", "}"]
PIECES += ["&x", "*x", "!t", "!!str", "!=x", "!", "&", "*", "%", "#", "'", '"', "|", ">", "-", "="]
PIECES += ["true", "12", "0.5", "~", "---\n", "...\n", "\u2028", "\x85", "<<", "\\", "@", "`"]


def plain_events(text: str) -> list[Any] | None:
    """What the YAML parser sees; None where it sees no YAML or more than a rule file may hold."""
    events: list[Any] = []
    try:
        events = list(yaml.parse(text, Loader=LOADERS[-1]))
    except yaml.YAMLError:
        return None
    if sum(isinstance(e, yaml.DocumentStartEvent) for e in events) > 1:
        return None
    for event in events:
        tag = getattr(event, "tag", None)
        if getattr(event, "anchor", None) is not None or tag not in (None, "!"):
            return None
        if getattr(event, "tags", None) or getattr(event, "version", None):
            return None
    return events


def built(events: list[Any]) -> Any:
    """The data of these events, by recursion; raises KeyError where a key is no new plain word."""
    event = events.pop(0)
    if isinstance(event, yaml.ScalarEvent):
        return scalar(event.value) if not event.style else event.value
    if isinstance(event, yaml.SequenceStartEvent):
        items = []
        while not isinstance(events[0], yaml.SequenceEndEvent):
            items.append(built(events))
        events.pop(0)
        return items
    found: dict[str, Any] = {}
    while not isinstance(events[0], yaml.MappingEndEvent):
        key = events.pop(0)
        if not isinstance(key, yaml.ScalarEvent) or key.value in found:
            raise KeyError
        found[key.value] = built(events)
    events.pop(0)
    return found


@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
@settings(max_examples=3_000)
def test_any_text_is_either_plain_data_or_one_error(text: str) -> None:
    events = plain_events(text)
    inner = [
        e
        for e in events or ()
        if isinstance(e, (yaml.ScalarEvent, yaml.CollectionStartEvent, yaml.CollectionEndEvent))
    ]
    try:
        expected = built(inner) if inner else None
        refused = events is None
    except KeyError:
        refused = True
    if refused:
        with pytest.raises(RuleFileError):
            parse("probe.yaml", text)
    else:
        assert parse("probe.yaml", text).data == expected


def test_every_duplicate_key_is_reported() -> None:
    error = refusal(lambda: parse("p", "a: 1\na: 2\nb: {c: 1, c: 2}\na: 3\n"))
    assert [place(p.mark) for p in error.problems] == ["2:1", "3:11", "4:1"]


def test_a_duplicate_is_reported_beside_what_stops_the_reading() -> None:
    error = refusal(lambda: parse("p", "a: 1\na: 2\nb: [\n"))
    assert [p.code for p in error.problems] == ["F102", "F100"]


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "Not UTF-8 text (byte 0). Save the file as UTF-8"),
        ("id: probe\n".encode("utf-16"), "Not UTF-8 text (byte 0). Save the file as UTF-8"),
        ("title: Größe\n".encode("latin-1"), "Not UTF-8 text (byte 9). Save the file as UTF-8"),
        (b"id: a\x00b\n", ""),
        ("id: probe\n".encode("utf-16-le"), ""),
        (bytes(range(256)) * 64, "Not UTF-8 text"),
    ],
    ids=["image", "UTF-16", "Latin-1", "zero byte", "UTF-16 without mark", "noise"],
)
def test_what_is_not_text(tmp_path: Path, raw: bytes, says: str) -> None:
    file = tmp_path / "probe.yaml"
    file.write_bytes(raw)
    error = refusal(lambda: read(str(file), "probe.yaml"))
    (problem,) = error.problems
    assert problem.code == "F100"
    assert says in problem.message


def test_a_file_of_ten_megabytes(tmp_path: Path) -> None:
    file = tmp_path / "probe.yaml"
    file.write_bytes(b"a: 1\n" * 2_000_000)
    error = refusal(lambda: read(str(file), "probe.yaml"))
    (problem,) = error.problems
    assert (problem.code, problem.mark) == ("F105", Mark("probe.yaml", 1, 1))
    assert f"Larger than {MAX_BYTES:,} bytes" in problem.message


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    error = refusal(lambda: read(str(tmp_path / "none.yaml"), "none.yaml"))
    (problem,) = error.problems
    assert problem.code == "F100"
    assert problem.message == "Cannot be read: No such file or directory."


def test_a_folder_instead_of_a_file(tmp_path: Path) -> None:
    error = refusal(lambda: read(str(tmp_path), "probe.yaml"))
    assert [p.code for p in error.problems] == ["F100"]


def test_the_excerpt_shows_two_lines_around_and_a_caret() -> None:
    error = refusal(lambda: parse("p.yaml", "a: 1\nb: 2\nc: 3\na: 4\nd: 5\ne: 6\nf: 7\n"))
    assert str(error).split("\n") == [
        "p.yaml:4:1  F102 duplicate-key",
        "      2 | b: 2",
        "      3 | c: 3",
        ">     4 | a: 4",
        "          ^",
        "      5 | d: 5",
        "      6 | e: 6",
        "  `a` appears twice; the first is on line 1. Keep one of them.",
    ]


def test_the_excerpt_has_no_control_characters() -> None:
    error = refusal(lambda: parse("p.yaml", "a: \x1b[2J\na: 2\n"))
    assert "\x1b" not in str(error)
