"""The bundled catalogue: names, precedence over the Hub, and damaged files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fitcheck.engine.errors import FitcheckError, InputProblem
from fitcheck.engine.sources import Catalogue, catalogue as module, hub, load_model

LLAMA = """\
id: meta-llama--llama-3.1-8b
title: Llama 3.1 8B
hub_id: meta-llama/Llama-3.1-8B
aliases: [llama-3.1-8b, meta-llama/Meta-Llama-3.1-8B]
parameters: {value: 8030261248, evidence: [built]}
config:
  model_type: llama
  hidden_size: 4096
evidence:
  built: {kind: derivation, where: a test, says: a fixture}
"""
GPT2 = """\
id: gpt2
title: GPT-2
hub_id: gpt2
aliases:
  - openai-community/gpt2
  - GPT 2 small
parameters: {value: 124439808, evidence: [built]}
config: {model_type: gpt2, n_embd: 768}
"""


@pytest.fixture
def catalogue(tmp_path: Path) -> Catalogue:
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / "meta-llama--llama-3.1-8b.yaml").write_text(LLAMA, encoding="utf-8")
    (folder / "gpt2.yaml").write_text(GPT2, encoding="utf-8")
    (folder / "README.md").write_text("llama-3.1-8b is no alias here", encoding="utf-8")
    return Catalogue(str(folder))


@pytest.fixture(autouse=True)
def no_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unexpected(*_: object) -> None:
        raise AssertionError("the Hub was asked")

    monkeypatch.setattr(hub, "fetch_config", unexpected)
    monkeypatch.setattr(hub, "reported_params", unexpected)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    "typed",
    [
        "meta-llama/Llama-3.1-8B",
        "META-LLAMA/llama-3.1-8b",
        "meta-llama--llama-3.1-8b",
        "Llama-3.1-8B",
        "llama 3.1 8b",
        "  llama-3.1-8b ",
    ],
)
@pytest.mark.parametrize("source", ["auto", "catalogue"])
def test_names_of_one_model(catalogue: Catalogue, typed: str, source: str) -> None:
    model = load_model(typed, source=source, catalogue=catalogue)  # type: ignore[arg-type]
    assert model.name == "Llama-3.1-8B"
    assert model.config == {"model_type": "llama", "hidden_size": 4096}
    assert model.reported_params == 8030261248
    assert model.source == "bundled catalogue (profiles/models/meta-llama--llama-3.1-8b.yaml)"
    assert model.source_kind == "catalogue"


@pytest.mark.parametrize("typed", ["gpt2", "GPT2", "openai-community/gpt2"])
def test_a_model_without_an_organisation(catalogue: Catalogue, typed: str) -> None:
    assert load_model(typed, catalogue=catalogue).name == "gpt2"


@pytest.mark.parametrize(
    ("typed", "name", "hub_id"),
    [
        ("meta-llama/Meta-Llama-3.1-8B", "Meta-Llama-3.1-8B", "meta-llama/Llama-3.1-8B"),
        ("META-LLAMA/meta-llama-3.1-8b", "Meta-Llama-3.1-8B", "meta-llama/Llama-3.1-8B"),
        ("gpt-2 small", "GPT 2 small", "gpt2"),
    ],
)
def test_another_name_is_kept_and_the_source_says_whose_dimensions_it_has(
    catalogue: Catalogue, typed: str, name: str, hub_id: str
) -> None:
    model = load_model(typed, catalogue=catalogue)
    assert model.name == name
    assert model.source.startswith(f"bundled catalogue, with the dimensions of {hub_id} (profiles/")


def test_every_bundled_name_is_answered_under_itself() -> None:
    catalogue = Catalogue.bundled()
    for entry in catalogue.entries():
        for typed in (entry.hub_id, *entry.aliases):
            last = typed.split("/")[-1]
            model = entry.raw_model(typed.lower())
            assert model.name.lower() == last.lower()
            same = last.lower() == entry.hub_id.split("/")[-1].lower()
            assert ("with the dimensions of" in model.source) is not same


def test_the_check_sees_the_config(catalogue: Catalogue) -> None:
    seen: list[object] = []
    load_model("gpt2", catalogue=catalogue, check=seen.append)
    assert seen == [{"model_type": "gpt2", "n_embd": 768}]


def test_an_existing_path_comes_first(catalogue: Catalogue, tmp_path: Path) -> None:
    folder = tmp_path / "gpt2"
    folder.mkdir()
    assert load_model("gpt2", catalogue=catalogue).source_kind == "catalogue"  # an output folder
    (folder / "config.json").write_text(json.dumps({"local": 1}), encoding="utf-8")
    assert load_model("gpt2", catalogue=catalogue).config == {"local": 1}
    assert load_model("gpt2", source="catalogue", catalogue=catalogue).name == "gpt2"
    assert load_model("./gpt2", catalogue=catalogue).source_kind == "local"


@pytest.mark.parametrize("typed", ["qwen", "llama", "3.1", "built", "", "../gpt2", "x/../gpt2"])
def test_text_in_a_file_is_not_a_name(catalogue: Catalogue, typed: str) -> None:
    assert catalogue.find(typed) is None


def test_unknown_names_suggest_the_nearest(catalogue: Catalogue) -> None:
    with pytest.raises(InputProblem) as caught:
        load_model("meta-llama/Llama-3.1-8B-it", source="catalogue", catalogue=catalogue)
    assert str(caught.value) == (
        "'meta-llama/Llama-3.1-8B-it' is not in the bundled catalogue. The nearest name in the "
        "bundled catalogue is 'meta-llama/Llama-3.1-8B'; it needs no network."
    )
    with pytest.raises(InputProblem) as caught:
        load_model("mistral", source="catalogue", catalogue=catalogue)
    assert str(caught.value) == (
        "'mistral' is not in the bundled catalogue. Give a Hub id or a path instead."
    )


def test_a_hub_id_opens_one_file(catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []
    original = module._parse

    def parse(file: str, text: str) -> dict[object, object]:
        parsed.append(file)
        return original(file, text)

    monkeypatch.setattr(module, "_parse", parse)
    catalogue.find("openai-community/gpt2")
    assert parsed == ["gpt2.yaml"]  # an alias: the folder is searched, one file is parsed
    monkeypatch.setattr(Catalogue, "_files", lambda self: pytest.fail("the folder was listed"))
    catalogue.find("meta-llama/Llama-3.1-8B")
    assert parsed == ["gpt2.yaml", "meta-llama--llama-3.1-8b.yaml"]


def test_one_alias_in_two_files(catalogue: Catalogue) -> None:
    copy = LLAMA.replace("meta-llama/Llama-3.1-8B", "other/Llama-3.1-8B")
    Path(catalogue.folder, "other--llama-3.1-8b.yaml").write_text(copy, encoding="utf-8")
    with pytest.raises(FitcheckError) as caught:
        catalogue.find("Llama-3.1-8B")
    assert str(caught.value) == (
        "The name 'llama-3.1-8b' is an alias in meta-llama--llama-3.1-8b.yaml and "
        "other--llama-3.1-8b.yaml of profiles/models."
    )


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (GPT2, "a: [", "profiles/models/gpt2.yaml is not valid YAML"),
        (GPT2, "- a", "profiles/models/gpt2.yaml must be a mapping"),
        (GPT2, "!!python/object/apply:os.getcwd []", "is not valid YAML"),
        (GPT2, "\ufeff\x00", "gpt2.yaml is not valid YAML"),
        ("hub_id: gpt2", "hub_id: gpt3", "hub_id does not match the file's name"),
        ("hub_id: gpt2", "", "hub_id does not match the file's name"),
        ("- GPT 2 small", "- 2", "aliases must be a list of names"),
        ("124439808", "124.5", "parameters.value must be a positive integer"),
        ("124439808", "true", "parameters.value must be a positive integer"),
        ("124439808", "-1", "parameters.value must be a positive integer"),
        ("{model_type: gpt2, n_embd: 768}", "none", "config must be a mapping"),
        ("n_embd: 768", "1: 768", "config must be a mapping"),
    ],
)
def test_damaged_files(catalogue: Catalogue, old: str, new: str, reason: str) -> None:
    path = Path(catalogue.folder, "gpt2.yaml")
    path.write_text(GPT2.replace(old, new), encoding="utf-8")
    with pytest.raises(FitcheckError, match=reason):
        load_model("gpt2", catalogue=catalogue)


def test_a_file_that_cannot_be_read(catalogue: Catalogue) -> None:
    Path(catalogue.folder, "gpt2.yaml").write_bytes(b"\xff")
    with pytest.raises(FitcheckError, match=r"profiles/models/gpt2.yaml cannot be read"):
        load_model("gpt2", catalogue=catalogue)


def test_the_bundled_catalogue_is_the_default(
    catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "data_folder", lambda name: catalogue.folder)
    assert load_model("llama-3.1-8b").source_kind == "catalogue"
    assert [entry.hub_id for entry in Catalogue.bundled().entries()] == [
        "gpt2",
        "meta-llama/Llama-3.1-8B",
    ]


@pytest.mark.parametrize(
    ("typed", "file"),
    [
        ("gpt2", "openai-community--gpt2.yaml"),
        ("OPT-125m", "facebook--opt-125m.yaml"),
        ("qwen3-30b-a3b", "qwen--qwen3-30b-a3b.yaml"),
    ],
)
def test_a_name_without_its_owner_is_found_before_the_hub(typed: str, file: str) -> None:
    model = load_model(typed)
    assert model.source_kind == "catalogue" and file in model.source


def test_a_part_of_a_name_is_no_name() -> None:
    assert Catalogue.bundled().find("opt") is None
    assert Catalogue.bundled().find("a3b") is None


def test_a_name_that_several_owners_have_lists_them(catalogue: Catalogue) -> None:
    other = LLAMA.replace("meta-llama--llama-3.1-8b", "copy--llama-3.1-8b")
    other = other.replace("hub_id: meta-llama/", "hub_id: copy/").replace(
        "llama-3.1-8b, meta", "me"
    )
    other = other.replace("[me-llama/Meta-Llama-3.1-8B]", "[]")
    folder = Path(catalogue.folder)
    (folder / "copy--llama-3.1-8b.yaml").write_text(other, encoding="utf-8")
    assert load_model("llama-3.1-8b", catalogue=catalogue).config["hidden_size"] == 4096  # an alias
    first = folder / "meta-llama--llama-3.1-8b.yaml"
    first.write_text(
        LLAMA.replace("aliases: [llama-3.1-8b, meta-llama/Meta-Llama-3.1-8B]", "aliases: []")
    )
    with pytest.raises(InputProblem) as caught:
        load_model("Llama-3.1-8B", catalogue=catalogue)
    assert "copy/llama-3.1-8b, meta-llama/llama-3.1-8b" in str(caught.value)
    found = catalogue.find("copy/Llama-3.1-8B")
    assert found is not None and found.hub_id == "copy/Llama-3.1-8B"
