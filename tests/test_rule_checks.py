"""What is said about rule files that are wrong: `tests/bad/`, a file for each kind of mistake.

A bad file is an overlay over the small rules in `tests/bad/base/`. Its name begins with the code
and name of a problem that it has; every line `# file: PLACE` in it begins a file of the overlay.
The exact message is in the .txt beside it. To write the messages anew after a change of wording,
run this module with FITCHECK_REWRITE_BAD=1 and read the difference.
"""

from __future__ import annotations

import ast
import itertools
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import fitcheck.engine
from fitcheck.engine.api import rules_for
from fitcheck.engine.checks import check_roots, checked_rules
from fitcheck.engine.checks.limits import MAX_FILES, MAX_TOTAL
from fitcheck.engine.errors import Problem, RuleFileError
from fitcheck.engine.yaml_source import MAX_BYTES

BAD = Path(__file__).parent / "bad"
BASE = BAD / "base"
ENGINE = Path(fitcheck.engine.__file__ or "").parent
REWRITE = os.environ.get("FITCHECK_REWRITE_BAD") == "1"

FILES = sorted(p.stem for p in BAD.glob("*.yaml"))
CODE = re.compile(r"F[0-9]{3}")
BEGIN = re.compile(rb"^# file: (\S+)\n", re.MULTILINE)

# Mistakes that no file of this folder can hold: the test makes them.
MADE = {"F100-unreadable", "F104-link-outside", "F105-too-large", "F105-too-many"}


def lay(name: str, folder: Path) -> Path:
    """The overlay of a bad file; each part keeps its first line, so that lines count from there."""
    raw = (BAD / f"{name}.yaml").read_bytes()
    places = list(BEGIN.finditer(raw))
    assert places and places[0].start() == 0, f"{name}.yaml has to begin with `# file: PLACE`"
    ends = [p.start() for p in places[1:]] + [len(raw)]
    for place, end in zip(places, ends, strict=True):
        file = folder / place[1].decode()
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(raw[place.start() : end])
    return folder


def problems_of(overlay: Path) -> tuple[Problem, ...]:
    return check_roots([(str(BASE), False), (str(overlay), True)])


def rendered(problems: tuple[Problem, ...], overlay: Path) -> str:
    """The messages as printed, with the overlay's folder left out."""
    text = "\n\n".join(p.render() for p in problems)
    return text.replace(f"{overlay}{os.sep}", "") + "\n"


def test_the_bundled_rules_have_no_problem() -> None:
    problems = check_roots()
    assert problems == (), "\n\n".join(p.render() for p in problems)


def test_the_base_of_the_bad_files_has_no_problem() -> None:
    problems = check_roots([(str(BASE), False)])
    assert problems == (), "\n\n".join(p.render() for p in problems)


def check_message(name: str, problems: tuple[Problem, ...], overlay: Path) -> None:
    assert name.split("--")[0] in {f"{p.code}-{p.name}" for p in problems}
    text, file = rendered(problems, overlay), BAD / f"{name}.txt"
    if REWRITE:
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", FILES)
def test_message(name: str, tmp_path: Path) -> None:
    overlay = lay(name, tmp_path)
    check_message(name, problems_of(overlay), overlay)


def test_a_file_that_is_too_large(tmp_path: Path) -> None:
    (tmp_path / "extra.yaml").write_text("title: Extra\n" * 100_000, encoding="utf-8")
    check_message("F105-too-large", problems_of(tmp_path), tmp_path)


def test_a_folder_of_too_many_files(tmp_path: Path) -> None:
    """None of them is opened, so a folder of thousands is refused at once."""
    for number in range(MAX_FILES + 1):
        (tmp_path / f"extra{number:04}.yaml").write_text("id: [", encoding="utf-8")
    check_message("F105-too-many", problems_of(tmp_path), tmp_path)


def test_folders_of_too_many_bytes(tmp_path: Path) -> None:
    text = "# long\n" * 14_000
    fitting = MAX_TOTAL // len(text)  # the next one is too much
    for number in range(fitting + 2):
        (tmp_path / f"extra{number:02}.yaml").write_text(text, encoding="utf-8")
    (problem,) = problems_of(tmp_path)
    assert (problem.code, problem.name) == ("F105", "too-large")
    assert problem.mark.path.endswith(f"extra{fitting:02}.yaml")
    assert f"{MAX_TOTAL:,} bytes" in problem.message


def test_too_many_folders_of_profiles(tmp_path: Path) -> None:
    for number in range(MAX_FILES + 1):
        (tmp_path / "profiles" / f"kind{number}").mkdir(parents=True)
    (problem,) = problems_of(tmp_path)
    assert problem.name == "too-many"


def test_the_bundled_files_are_well_below_the_limits() -> None:
    """Whoever ejects all of them still has room for files of their own."""
    folders = [BAD.parent.parent / name for name in ("formulas", "gpus", "profiles")]
    models = folders[-1] / "models"  # read from the package alone
    files = [f for folder in folders for f in folder.rglob("*.yaml") if f.parent != models]
    assert 100 < len(files) < 0.75 * MAX_FILES
    assert sum(f.stat().st_size for f in files) < 0.75 * MAX_TOTAL
    assert max(f.stat().st_size for f in files) < 0.1 * MAX_BYTES


def test_a_file_that_cannot_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "extra.yaml").write_text("id: extra\n", encoding="utf-8")

    def refuse(file: str, *args: Any, **options: Any) -> Any:
        if file.startswith(str(tmp_path)):
            raise PermissionError(13, "Permission denied")
        return open(file, *args, **options)

    monkeypatch.setattr("fitcheck.engine.yaml_source.open", refuse, raising=False)
    check_message("F100-unreadable", problems_of(tmp_path), tmp_path)


def test_a_link_that_leads_outside(tmp_path: Path) -> None:
    target = tmp_path / "elsewhere.yaml"
    target.write_text("id: elsewhere\n", encoding="utf-8")
    overlay = tmp_path / "overlay"
    overlay.mkdir()
    (overlay / "extra.yaml").symlink_to(target)
    check_message("F104-link-outside", problems_of(overlay), overlay)


# --- codes and files ------------------------------------------------------------------------------


def pairs(values: list[ast.expr]) -> Iterator[tuple[str, str]]:
    """A code followed by a name among the arguments of one call."""
    words = [str(v.value) if isinstance(v, ast.Constant) else "" for v in values]
    for code, name in itertools.pairwise(words):
        if CODE.fullmatch(code) and name:
            yield code, name


def emitted() -> dict[str, str]:
    """`F204-unit-mismatch` to a file of the engine that emits it."""
    found: dict[str, str] = {}
    for file in sorted(ENGINE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            values: list[ast.expr] = []
            if isinstance(node, ast.Call):
                values = node.args
            elif isinstance(node, ast.arguments):
                values = node.defaults
            for code, name in pairs(values):
                found.setdefault(f"{code}-{name}", file.name)
    return found


def test_every_code_that_the_engine_emits_has_a_bad_file() -> None:
    shown = {name.split("--")[0] for name in FILES} | MADE
    missing = {k: v for k, v in emitted().items() if k not in shown}
    assert not missing


def test_every_bad_file_is_about_a_code_that_the_engine_emits() -> None:
    known = emitted()
    assert [name for name in FILES if name.split("--")[0] not in known] == []


def test_one_code_has_one_meaning() -> None:
    """Names that share a code are of one family, so a person can look either up."""
    families: dict[str, set[str]] = {}
    for key in emitted():
        code, _, name = key.partition("-")
        families.setdefault(name, set()).add(code)
    assert {name: codes for name, codes in families.items() if len(codes) > 1} == {
        "too-large": {"F105", "F209"},  # a file, and an expression
    }


def test_every_message_belongs_to_a_bad_file() -> None:
    texts = {p.stem for p in BAD.glob("*.txt")}
    assert texts == {*FILES, *MADE}


# --- form of the messages -------------------------------------------------------------------------

MESSAGES = [
    block for file in sorted(BAD.glob("*.txt")) for block in file.read_text("utf-8").split("\n\n")
]


@pytest.mark.parametrize("block", MESSAGES, ids=range(len(MESSAGES)))
def test_every_message_names_the_place_and_ends_in_a_sentence(block: str) -> None:
    head, *_, last = block.rstrip("\n").split("\n")
    assert re.fullmatch(r"\S+\.yaml:\d+:\d+  F\d{3} [a-z-]+(-8)?", head), head
    assert re.match(r"  \S", last)
    assert last.rstrip()[-1] in ".?`", last
    assert len(last) <= 400
    for python in ("Fraction(", "Traceback", "NoneType", "object at 0x", "'str'", "OrderedDict"):
        assert python not in block


# --- all problems at once -------------------------------------------------------------------------


def test_problems_of_several_files_are_found_in_one_run(tmp_path: Path) -> None:
    """Unreadable, misshapen, unbound, wrong and disagreeing files, in one list."""
    names = [
        "F100-not-yaml--tab",
        "F108-bad-value--choice",
        "F201-unknown-symbol",
        "F601-example-differs",
        "F207-symbol-disagrees",
        "F308-profile-value",
        "F705-usable-above-total",
        "F201-unknown-symbol--architecture",
    ]
    for index, name in enumerate(names):
        raw = (BAD / f"{name}.yaml").read_text(encoding="utf-8")
        place = raw.split("\n")[0].removeprefix("# file: ")
        if place == "formulas/extra.yaml":
            place, raw = (
                f"formulas/extra{index}.yaml",
                raw.replace("id: extra", f"id: extra{index}"),
            )
        file = tmp_path / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(raw, encoding="utf-8")
    problems = problems_of(tmp_path)
    codes = {p.code for p in problems}
    assert codes >= {name.split("-")[0] for name in names}
    assert list(problems) == sorted(problems, key=lambda p: (p.mark, p.code, p.message))
    assert len(set(problems)) == len(problems)
    with pytest.raises(RuleFileError) as caught:
        checked_rules([(str(BASE), False), (str(tmp_path), True)])
    assert caught.value.problems == problems


def test_a_broken_file_is_not_blamed_on_those_that_read_it(tmp_path: Path) -> None:
    """The base's slack, thin and statuses all read `state`; only state.yaml is reported."""
    text = (BASE / "formulas/state.yaml").read_text(encoding="utf-8")
    for index, (old, new) in enumerate(
        [("expr: b * width", "expr: b * open(width)"), ("unit: byte\n", "unit: [byte\n")]
    ):
        folder = tmp_path / str(index)
        folder.mkdir()
        (folder / "state.yaml").write_text(text.replace(old, new), encoding="utf-8")
        assert {Path(p.mark.path).name for p in problems_of(folder)} == {"state.yaml"}


def test_an_overlay_is_always_checked(tmp_path: Path) -> None:
    (tmp_path / "extra.yaml").write_text("id: extra\ntitle: Extra\n", encoding="utf-8")
    with pytest.raises(RuleFileError) as caught:
        rules_for([str(tmp_path)])
    assert "F107" in {p.code for p in caught.value.problems}


def test_the_checks_can_be_repeated(tmp_path: Path) -> None:
    overlay = lay("F304-bad-table", tmp_path)
    assert problems_of(overlay) == problems_of(overlay)
