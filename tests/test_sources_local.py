"""Models given by a path: what is read, and one sentence for everything that can't be."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from fitcheck.engine.errors import FitcheckError, InputProblem
from fitcheck.engine.paths import data_folder
from fitcheck.engine.sources import Catalogue, load_model
from fitcheck.engine.sources.config_file import MAX_BYTES, MAX_DEPTH, MAX_DIGITS

posix = pytest.mark.skipif(os.name == "nt", reason="names and errors of a POSIX system")
CONFIG = {"model_type": "llama", "hidden_size": 64}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(path: Path, content: str | bytes) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


def problem(text: str, **options: object) -> str:
    with pytest.raises(InputProblem) as caught:
        load_model(text, catalogue=Catalogue("."), **options)  # type: ignore[arg-type]
    message = str(caught.value)
    assert message.isprintable() and len(message) < 1000
    return message


def test_a_file_is_named_after_its_folder(here: Path) -> None:
    write(here / "llama-tiny" / "config.json", json.dumps(CONFIG))
    model = load_model("./llama-tiny/config.json")
    assert model.name == "llama-tiny"
    assert model.config == CONFIG
    assert model.reported_params is None
    assert model.source == "config.json at ./llama-tiny/config.json"
    assert model.source_kind == "local"


@pytest.mark.parametrize("typed", ["llama-tiny", "./llama-tiny", "llama-tiny/", "llama-tiny/."])
def test_a_folder_stands_for_its_config(here: Path, typed: str) -> None:
    write(here / "llama-tiny" / "config.json", json.dumps(CONFIG))
    model = load_model(typed)
    assert (model.name, model.config, model.source_kind) == ("llama-tiny", CONFIG, "local")


def test_the_current_folder_and_the_home_folder(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(here / "config.json", json.dumps(CONFIG))
    monkeypatch.setenv("HOME", str(here))
    monkeypatch.setenv("USERPROFILE", str(here))
    assert load_model(".").name == here.name
    assert load_model("config.json").name == here.name
    assert load_model("~/config.json").name == here.name
    assert load_model("~").name == here.name


def test_a_file_of_another_name_is_named_after_itself(here: Path) -> None:
    write(here / "Qwen--Qwen3-8B.json", json.dumps(CONFIG))
    model = load_model("Qwen--Qwen3-8B.json")
    assert model.name == "Qwen--Qwen3-8B"
    assert model.source == "model configuration at Qwen--Qwen3-8B.json"


def test_a_path_object_is_a_path(here: Path) -> None:
    write(here / "model", json.dumps(CONFIG))
    assert load_model(Path("model")).source_kind == "local"
    with pytest.raises(InputProblem, match="There is no file or folder 'org/name'"):
        load_model(Path("org/name"))


def test_the_check_sees_the_config(here: Path) -> None:
    write(here / "config.json", json.dumps(CONFIG))
    seen: list[object] = []
    load_model("config.json", check=seen.append)
    assert seen == [CONFIG]


def test_links_are_followed(here: Path) -> None:
    write(here / "blobs" / "abc", json.dumps(CONFIG))
    (here / "snapshot").mkdir()
    (here / "snapshot" / "config.json").symlink_to(here / "blobs" / "abc")
    assert load_model("snapshot").config == CONFIG


def test_a_byte_order_mark_is_accepted(here: Path) -> None:
    write(here / "config.json", b"\xef\xbb\xbf" + json.dumps(CONFIG).encode())
    assert load_model("config.json").config == CONFIG


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "it is empty"),
        (" \n", "it is empty"),
        ('{"a": 1,\n  "b": }', "it is not valid JSON (line 2, column 8: Expecting value)"),
        ('{"a": 1} x', "it is not valid JSON (line 1, column 10: Extra data)"),
        ("[1, 2]", "its root is a list, not a JSON object {...}"),
        ('"text"', "its root is a string, not a JSON object {...}"),
        ("12", "its root is a number, not a JSON object {...}"),
        ("1.5", "its root is a number, not a JSON object {...}"),
        ("true", "its root is a boolean, not a JSON object {...}"),
        ("null", "its root is null, not a JSON object {...}"),
        ('{"a": 1, "a": 2}', "the key 'a' is given twice"),
        ('{"x": {"b\\u001b": 1, "b\\u001b": 2}}', "the key 'b\\x1b' is given twice"),
        ('{"a": NaN}', "it holds NaN, which is not a JSON number"),
        ('{"a": [-Infinity]}', "it holds -Infinity, which is not a JSON number"),
        ('{"a": 1e999}', "it holds '1e999', a number too large to represent"),
        ('{"a": -1' + "0" * 5000 + "}", "it holds an integer of 5,001 digits (-1000000"),
        ('{"a": "\\ud83d"}', "it holds a broken Unicode escape in '\\ud83d'"),
        ('{"\\udc00": 1}', "it holds a broken Unicode escape in '\\udc00'"),
        (b'{"a": "\xff"}', "it is not UTF-8 text (byte 8)"),
        ('{"a": 1}'.encode("utf-16"), "it is not UTF-8 text (byte 1)"),
        ('{"a": ' + "[" * 100_000, "nested more than 64 levels deep"),
        ('{"a": ' + "[" * 64 + "]" * 64 + "}", "nested more than 64 levels deep"),
        ('{"a":' * 65 + "1" + "}" * 65, "nested more than 64 levels deep"),
    ],
)
def test_what_is_not_a_config(here: Path, content: str | bytes, reason: str) -> None:
    write(here / "config.json", content)
    message = problem("config.json")
    assert message.startswith("Could not read 'config.json': ")
    assert reason in message


def test_the_limits_themselves_are_allowed(here: Path) -> None:
    nested = "[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1)
    write(here / "config.json", f'{{"deep": {nested}, "long": {"9" * MAX_DIGITS}, "e": "é😀"}}')
    config = load_model("config.json").config
    assert float(config["long"]) > 0  # type: ignore[arg-type]
    assert config["e"] == "é😀"


def test_a_file_that_is_too_large(here: Path) -> None:
    path = write(here / "config.json", "{}")
    os.truncate(path, MAX_BYTES + 1)
    assert problem("config.json") == (
        "Could not read 'config.json': it is larger than 10 MB, which no config.json is."
    )


@given(st.recursive(st.none() | st.integers() | st.text() | st.booleans(), st.lists) | st.binary())
def test_any_content_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, x: object
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.json"
    path.write_bytes(x if isinstance(x, bytes) else json.dumps({"x": x}).encode())
    try:
        assert load_model(str(path)).config == {"x": x}
    except InputProblem as error:
        assert str(error).startswith("Could not read")


def test_a_folder_without_a_config(here: Path) -> None:
    (here / "out").mkdir()
    expected = (
        "The folder './out' holds no config.json; give the folder of a model, or the path of its "
        "config.json."
    )
    assert problem("./out") == expected
    assert problem("out", source="local") == expected.replace("./out", "out")


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ('{"base_model_name_or_path": "org/base"}', ", 'org/base',"),
        ('{"base_model_name_or_path": null}', ""),
        ("{", ""),
    ],
)
def test_an_adapter_names_its_base(here: Path, content: str, named: str) -> None:
    write(here / "lora" / "adapter_config.json", content)
    base = named.rstrip(",")
    ending = f", not a model; estimate its base model{base} instead."
    assert problem("lora") == "The folder 'lora' holds an adapter" + ending
    assert problem("lora/adapter_config.json") == (
        "'lora/adapter_config.json' describes an adapter" + ending
    )


def test_a_full_model_beside_an_adapter_wins(here: Path) -> None:
    write(here / "m" / "adapter_config.json", "{}")
    write(here / "m" / "config.json", json.dumps(CONFIG))
    assert load_model("m").config == CONFIG


@pytest.mark.parametrize(
    "name", ["model.safetensors", "m.GGUF", "pytorch_model.bin", "model.safetensors.index.json"]
)
@pytest.mark.parametrize("exists", [True, False])
def test_a_weights_file(here: Path, name: str, exists: bool) -> None:
    if exists:
        write(here / name, b"\0" * 100)
    if exists and name == "m.GGUF":  # which is read; test_weight_formats.py has good ones
        assert problem(name) == "Could not read 'm.GGUF' as a GGUF file: GGUF magic invalid."
        return
    assert problem(name) == (
        f"'{name}' is a tensor file; fitcheck reads the model's config.json instead, so give the "
        "path of that file or of its folder, or that of a .gguf file."
    )


@pytest.mark.parametrize(
    "typed",
    [
        "./none",
        "../none",
        "/none/none",
        "~/none",
        "none.json",
        "a\\b",
        "C:\\m",
        "d:/m",
        "a/b/c.json",
    ],
)
def test_a_path_that_does_not_exist(here: Path, typed: str) -> None:
    assert problem(typed) == (
        f"There is no file or folder '{typed}'; expected a config.json or the folder that holds "
        "one, a model id on the Hugging Face Hub (org/name), or a name of the bundled catalogue."
    )


def test_a_link_to_nothing(here: Path) -> None:
    (here / "config.json").symlink_to(here / "gone")
    inside = os.path.join(".", "config.json")
    expected = "it is a link to a file that does not exist."
    assert problem("config.json") == f"Could not read 'config.json': {expected}"
    assert problem(".") == f"Could not read '{inside}': {expected}"


@posix
def test_a_link_to_itself(here: Path) -> None:
    (here / "config.json").symlink_to(here / "config.json")
    assert "symbolic links" in problem("config.json")


def test_a_config_that_is_a_folder(here: Path) -> None:
    (here / "config.json").mkdir()
    assert "holds no config.json" in problem("config.json")
    inside = os.path.join(".", "config.json")
    assert problem(".") == f"Could not read '{inside}': it is a folder, not a file."


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes on this system")
def test_pipes_and_devices_are_not_waited_for(here: Path) -> None:
    os.mkfifo(here / "config.json")
    expected = "it is a pipe or a device, not a regular file."
    assert problem("config.json") == f"Could not read 'config.json': {expected}"
    assert problem("/dev/zero") == f"Could not read '/dev/zero': {expected}"


@pytest.mark.parametrize("call", ["stat", "open", "lstat"])
def test_permission_denied(here: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    write(here / "config.json", "{}")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    if call == "open":
        monkeypatch.setattr("builtins.open", refuse)
    else:  # the tests may run as a user who can read everything
        monkeypatch.setattr(os, "lstat", refuse)
        monkeypatch.setattr(os, "stat", refuse)
    message = problem("./config.json")
    monkeypatch.undo()
    assert message == "Could not read './config.json': permission denied."


@posix
def test_other_system_errors(here: Path) -> None:
    assert "too long" in problem("./" + "n" * 5000).lower()
    assert "There is no file or folder" in problem("./a\0b")
    assert "There is no file or folder" in problem("/dev/null/config.json")


def test_a_file_that_vanishes(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fitcheck.engine.sources.local._is_missing", lambda path: False)
    assert problem("./gone.json") == "Could not read './gone.json': there is no such file."
    assert problem("./a\0b") == "Could not read './a\\x00b': no file can have this name."


@pytest.mark.parametrize("typed", ["", "  ", "\t"])
def test_nothing_typed(typed: str) -> None:
    assert problem(typed) == "No model given: the name is empty."


@posix
def test_names_are_shown_safely(here: Path) -> None:
    assert "'./a\\x1b[31mb'" in problem("./a\x1b[31mb")
    folder = here / "x\x1b[2J"
    write(folder / "config.json", json.dumps(CONFIG))
    model = load_model(str(folder))
    assert model.name.isprintable() and model.source.isprintable()


def test_data_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Path(data_folder("engine/sources")).samefile(
        Path(load_model.__code__.co_filename).parent
    )
    with pytest.raises(FitcheckError, match="'none/such' is missing"):
        data_folder("none/such")


def test_a_local_model_needs_no_other_package(here: Path) -> None:
    write(here / "config.json", json.dumps(CONFIG))
    code = (
        "import sys; from fitcheck.engine.sources import load_model; load_model('config.json');"
        "print(sorted({'huggingface_hub', 'yaml', 'difflib', 'rich', 'sympy'} & set(sys.modules)))"
    )
    run: Callable[..., str] = subprocess.check_output
    assert run([sys.executable, "-c", code], text=True, cwd=here).strip() == "[]"
