"""A checkout keeps what its rule files say between runs: the same data, and only while it holds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from fitcheck.engine import data_cache
from fitcheck.engine.data_cache import DataCache
from fitcheck.engine.errors import RuleFileError
from fitcheck.engine.paths import bundled_root
from fitcheck.engine.yaml_source import read

ROOT = Path(bundled_root())
FILES = sorted(
    path
    for folder in ("formulas", "gpus", "profiles/overhead", "profiles/reserve")
    for path in (ROOT / folder).glob("*.yaml")
)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "cache"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "rules"
    made.mkdir()
    (made / "one.yaml").write_text("id: one\nvalue: 0.95\nlist: [1, true, a]\n", encoding="utf-8")
    return made


def typed(data: Any) -> Any:
    """Data with the type of every value, which `==` alone does not tell apart."""
    if isinstance(data, dict):
        return {key: typed(value) for key, value in data.items()}
    if isinstance(data, list):
        return [typed(value) for value in data]
    return type(data).__name__, data


def test_every_bundled_file_comes_back_as_it_was_read() -> None:
    first = DataCache(str(ROOT))
    for path in FILES:
        first.source(str(path), path.name)
    first.save()
    again = DataCache(str(ROOT))
    assert set(again.files) == {str(path) for path in FILES}
    for path in FILES:
        kept, fresh = again.source(str(path), path.name), read(str(path), path.name)
        assert typed(kept.data) == typed(fresh.data)
        assert not again.changed
        assert kept.text == fresh.text
        for key in fresh.data:
            assert kept.mark((key,)) == fresh.mark((key,))
            assert fresh.key_mark((key,)) == kept.key_mark((key,))
            assert str(kept.mark((key,))) == str(fresh.mark((key,)))


def test_a_kept_file_is_not_parsed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = DataCache(str(folder))
    cache.source(str(folder / "one.yaml"), "one.yaml")
    cache.save()
    monkeypatch.setattr("fitcheck.engine.yaml_source.parse", None)
    kept = DataCache(str(folder)).source(str(folder / "one.yaml"), "one.yaml")
    assert kept.data == {"id": "one", "value": Fraction(19, 20), "list": [1, True, "a"]}


def test_a_changed_file_is_read_again(folder: Path) -> None:
    path = folder / "one.yaml"
    cache = DataCache(str(folder))
    cache.source(str(path), "one.yaml")
    cache.save()
    before = path.stat()
    path.write_text("id: two\nvalue: 0.95\nlist: [1, true, a]\n", encoding="utf-8")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))  # same size and time of writing
    assert DataCache(str(folder)).source(str(path), "one.yaml").data["id"] == "two"


def test_a_broken_file_is_refused_each_time(folder: Path) -> None:
    path = folder / "one.yaml"
    path.write_text("id: [", encoding="utf-8")
    cache = DataCache(str(folder))
    for _ in range(2):
        with pytest.raises(RuleFileError):
            cache.source(str(path), "one.yaml")
    assert not cache.changed


@pytest.mark.parametrize("content", ["", "{", "[]", '{"reader": []}', '{"files": 1}', "\x00"])
def test_a_damaged_cache_counts_for_nothing(folder: Path, content: str) -> None:
    cache = DataCache(str(folder))
    os.makedirs(os.path.dirname(cache.path))
    Path(cache.path).write_text(content, encoding="utf-8")
    again = DataCache(str(folder))
    assert again.source(str(folder / "one.yaml"), "one.yaml").data["id"] == "one"
    again.save()
    assert "reader" in json.loads(Path(cache.path).read_text(encoding="utf-8"))


def test_where_nothing_can_be_written_nothing_is_lost(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "file"))
    cache = DataCache(str(folder))
    assert cache.source(str(folder / "one.yaml"), "one.yaml").data["id"] == "one"
    cache.save()
    assert (tmp_path / "file").read_text(encoding="utf-8") == ""


def test_files_that_are_gone_are_forgotten(folder: Path) -> None:
    (folder / "two.yaml").write_text("id: two", encoding="utf-8")
    cache = DataCache(str(folder))
    for name in ("one", "two"):
        cache.source(str(folder / f"{name}.yaml"), name)
    (folder / "two.yaml").unlink()
    cache.save()
    assert list(DataCache(str(folder)).files) == [str(folder / "one.yaml")]


def test_the_cache_can_be_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FITCHECK_NO_CACHE", "1")
    assert data_cache.cache_of(str(folder)) is None


def test_a_second_run_of_a_checkout_loads_no_yaml(tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from fitcheck.engine.api import choose_card, rules_for\n"
        "choose_card(rules_for(), 't4', None)\n"
        "print('yaml' in sys.modules)\n"
    )
    says = [
        subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        ).stdout.strip()
        for _ in range(2)
    ]
    assert says[1] == "False"
    stored = list((tmp_path / "cache" / "fitcheck").iterdir())
    assert stored and all(path.suffix == ".json" for path in stored)
    for path in stored:
        json.loads(path.read_text(encoding="utf-8"))
