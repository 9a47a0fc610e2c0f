"""Configurations of other programs: what each key becomes, what is not priced, what is refused."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings, strategies as st

from fitcheck.cli.annotations import annotation
from fitcheck.cli.main import run as run_click
from fitcheck.engine.api import rules_for
from fitcheck.engine.errors import FitcheckError, InputProblem, RuleFileError
from fitcheck.engine.importing.applying import apply, covered
from fitcheck.engine.importing.commands import command_document, is_script
from fitcheck.engine.importing.document import Document, Item, parse, read_document
from fitcheck.engine.importing.mapping import COMMAND, Importer, mappings
from fitcheck.engine.importing.reading import Configuration, read_configuration

ROOT = Path(__file__).parent / "importers"
LENGTH = "length"  # stands for the rule about a missing length, which no single key names


def cases() -> list[Path]:
    """Every file with its expectation beside it."""
    expected = sorted(ROOT.glob("*/*.expected.yaml"))
    found = []
    for path in expected:
        stem = path.name.removesuffix(".expected.yaml")
        (case,) = [p for p in path.parent.glob(f"{stem}.*") if p != path]
        found.append(case)
    return found


def expected(case: Path) -> dict[str, Any]:
    text = case.with_name(f"{case.stem}.expected.yaml").read_text(encoding="utf-8")
    data: dict[str, Any] = yaml.safe_load(text)
    return data


def document_of(path: Path) -> Document:
    if is_script(str(path)):
        return command_document(str(path), path.read_text(encoding="utf-8"), mappings())
    return read_document(str(path))


def read(path: Path, named: str | None = None) -> Configuration:
    return read_configuration(document_of(path), mappings(), rules_for().flags, named)


def checked(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Flags in their canonical form."""
    known = rules_for().flags
    return {name: known.check(known.flags[name], value) for name, value in flags.items()}


FORMATS = sorted(mappings())


@pytest.mark.parametrize("case", cases(), ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_a_case_resolves_to_its_flags(case: Path) -> None:
    wanted, found = expected(case), read(case).imported
    assert found.importer.id == wanted.get("format", case.parent.name)
    assert found.model == wanted["model"]
    assert checked(found.flags) == checked(wanted["flags"])
    told = {LENGTH if " and " in u.item.key else u.item.key: u.direction for u in found.unpriced}
    assert told == wanted["unpriced"]
    assert sorted(item.key for item in found.unknown) == sorted(wanted["unknown"])


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_has_five_cases(name: str) -> None:
    assert len([case for case in cases() if case.parent.name == name]) >= 5


@pytest.mark.parametrize("name", [p.parent.name for p in sorted(ROOT.glob("*/keys.txt"))])
def test_every_key_of_the_program_has_a_meaning(name: str) -> None:
    importer = mappings()[name]
    keys = (ROOT / name / "keys.txt").read_text(encoding="utf-8").split()
    assert len(keys) > 60 and keys == sorted(set(keys))
    unknown = [
        key
        for key in keys
        if importer.entry(key) is None
        and key not in importer.model
        and not importer.is_free(key)
        and not covered(importer, key)
    ]
    assert not unknown


def keys_of(importer: Importer) -> list[str]:
    return [k for k in importer.keys if "*" not in k and k != COMMAND]


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_no_value_ends_in_anything_but_a_sentence(name: str, data: st.DataObject) -> None:
    importer = mappings()[name]
    keys = data.draw(st.lists(st.sampled_from(keys_of(importer)), max_size=8, unique=True))
    values = st.one_of(
        st.none(), st.booleans(), st.integers(-9, 10**7), st.text(max_size=12), st.just([]),
        st.lists(st.sampled_from(["q_proj", "v_proj", "all", 3]), max_size=3), st.floats(),
        st.sampled_from(["auto", "nf4", "adamw_torch", "lora", "qlora", "true", "4", "full"]),
    )  # fmt: skip
    items = {key: Item(key, data.draw(values), n + 1, 1) for n, key in enumerate(keys)}
    try:
        found = apply(Document("x.yaml", "\n" * 9, items), importer, rules_for().flags)
    except InputProblem as problem:
        assert str(problem).startswith("x.yaml:")
    else:
        checked(found.flags)


@pytest.mark.parametrize("name", FORMATS)
def test_what_may_be_too_low_caps_the_verdict(name: str) -> None:
    for case in cases():
        if case.parent.name == name:
            found = read(case).imported
            under = [u for u in found.unpriced if u.direction != "over"]
            assert len(found.told()) == len(under) + bool(found.unknown) + found.importer.part
            assert all(u.direction in ("under", "over", "either") for u in found.unpriced)


# the command


def call(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "fitcheck", "check", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize(
    "case", [c for c in cases() if expected(c)["model"]], ids=lambda p: f"{p.parent.name}-{p.stem}"
)
def test_the_printed_command_is_the_same_run(
    case: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_click(["check", str(case), "--gpu", "h100", "--source", "catalogue", "--json"])
    (found,) = json.loads(capsys.readouterr().out)["files"]
    assert found["error"] is None
    words = shlex.split(found["command"])[1:]
    assert run_click([*words, "--json"]) in (0, 1)
    alone = json.loads(capsys.readouterr().out)
    assert alone["memory_mib"] == found["estimate"]["memory_mib"]
    assert alone["training"] == found["estimate"]["training"]


def write(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


QLORA = (ROOT / "axolotl/qlora.yml").read_text(encoding="utf-8")


def test_exit_codes_and_a_summary_of_several_files(tmp_path: Path) -> None:
    good = write(tmp_path / "good.yml", QLORA.replace("micro_batch_size: 2", "micro_batch_size: 1"))
    bad = write(tmp_path / "bad.yml", QLORA.replace("sequence_len: 4096", "sequence_len: 65536"))
    broken = write(tmp_path / "broken.yml", "base_model: [x\n")
    assert call(good, "--gpu", "h100").returncode == 0
    assert call(good, bad, "--gpu", "h100").returncode == 1
    done = call(good, bad, broken, "--gpu", "h100")
    assert done.returncode == 2
    assert f"{good}  FITS: " in done.stdout.replace("   ", " ").replace("  ", "  ")
    assert "DOES NOT FIT" in done.stdout and "could not be estimated" in done.stdout
    assert done.stderr.count("broken.yml:2:1") == 1


def test_typed_options_win_over_the_file(tmp_path: Path) -> None:
    path = write(tmp_path / "run.yml", QLORA)
    done = call(
        path, "--quant", "none", "--seq-len", "512", "--model", "Qwen/Qwen2.5-0.5B", "--json"
    )
    (found,) = json.loads(done.stdout)["files"]
    assert found["estimate"]["model"]["name"] == "Qwen2.5-0.5B"
    training = found["estimate"]["training"]
    assert (training["quantization"], training["seq_len"]) == ("none", 512)
    assert training["lora_rank"] == 32


def test_what_a_flag_settles_is_told_no_more() -> None:
    case = str(ROOT / "torchtune/lora.yaml")
    (open_,) = json.loads(call(case, "--json").stdout)["files"]
    (settled,) = json.loads(call(case, "--json", "--seq-len", "1024").stdout)["files"]
    assert "tokenizer.max_seq_len" in {u["key"] for u in open_["unpriced"]}
    assert "tokenizer.max_seq_len" not in {u["key"] for u in settled["unpriced"]}


def test_a_saved_run_of_our_own_is_read_too(tmp_path: Path) -> None:
    text = "fitcheck: 1\nmodel: Qwen/Qwen2.5-0.5B\ngpu: t4\ntraining: {qlora: true}\n"
    (found,) = json.loads(call(write(tmp_path / "run.yaml", text), "--json").stdout)["files"]
    assert found["format"] == "fitcheck" and found["estimate"]["gpu"]["key"] == "t4"


def test_a_command_in_place_of_a_file() -> None:
    command = "trl sft --model_name_or_path Qwen/Qwen2.5-0.5B --use_peft --load_in_4bit"
    (found,) = json.loads(call("--from-command", command, "--json").stdout)["files"]
    assert found["estimate"]["training"]["quantization"] == "nf4"
    done = call("--from-command", "make coffee")
    assert done.returncode == 2 and "no command that starts a training" in done.stderr


BROKEN = [
    ("a.yml", "base_model: x\nadapter: [\n", "a.yml:3:1: not readable as YAML"),
    ("a.json", '{"optim": 1,}\n', "a.json:1:13: no JSON"),
    ("a.yml", "- a\n- b\n", "a.yml: no mapping of keys"),
    ("a.yml", "hello: 1\n", "a.yml: no training configuration of a program that is known"),
    ("a.yml", "base_model: m\nmicro_batch_size: many\n", "a.yml:2:1: micro_batch_size: "),
    (
        "a.yml",
        "base_model: m\nmicro_batch_size: ${BATCH}\n",
        "a.yml:2:1: `micro_batch_size` is",
    ),
    ("a.yml", "base_model: m\nadapter: lora\nrl: dpo\n", "a.yml:3:1: dpo holds a reference model"),
    ("a.yml", "base_model: m\nload_in_4bit: true\n", "a.yml:2:1: load_in_4bit needs an adapter"),
    ("a.yml", "base_model: m\nadapter: ia3\n", "a.yml:2:1: the adapter ia3 is not modelled"),
    ("a.yaml", "model_name_or_path: m\nstage: dpo\n", "a.yaml:2:1: stage dpo holds"),
    (
        "a.yaml",
        "model_name_or_path: m\nstage: sft\nquantization_bit: 3\n",
        "a.yaml:3:1: a base",
    ),
    ("a.yml", "base_model: ./nowhere\nadapter: lora\n", "a.yml:1:1: base_model: "),
    ("a.yaml", "output_dir: x\noptim: adamw_torch\n", "a.yaml: no key names the model"),
    ("a.sh", "echo hello\n", "a.sh: no command that starts a training"),
    ("a.sh", "trl dpo --model_name_or_path m\n", "a.sh:1:1: `trl dpo` holds a reference model"),
    ("a.sh", "axolotl train missing.yml\n", "missing.yml: there is no such file"),
]


@pytest.mark.parametrize(("name", "text", "says"), BROKEN, ids=[b[2][:40] for b in BROKEN])
def test_a_broken_file_names_its_line(tmp_path: Path, name: str, text: str, says: str) -> None:
    done = call(write(tmp_path / name, text), "--source", "local")
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert done.stderr.startswith("error: ") and says in done.stderr.splitlines()[0]


def test_a_caret_points_at_the_key(tmp_path: Path) -> None:
    done = call(write(tmp_path / "a.yml", "base_model: m\nadapter: lora\n\nlora_r: none of it\n"))
    lines = done.stderr.splitlines()
    place = next(n for n, line in enumerate(lines) if line.startswith(">"))
    assert lines[place].endswith("lora_r: none of it")
    assert lines[place + 1].index("^") == lines[place].index("lora_r")


def test_a_file_that_is_named_and_is_not_there_is_told(tmp_path: Path) -> None:
    path = write(tmp_path / "run.yml", QLORA + "deepspeed: nowhere.json\n")
    (found,) = json.loads(call(path, "--json").stdout)["files"]
    told = [u for u in found["unpriced"] if "is not there" in u["says"]]
    assert told and told[0]["direction"] == "either" and found["exit_code"] == 1


def test_formats_can_be_named_and_wrong_ones_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.yaml", "model_name_or_path: Qwen/Qwen2.5-0.5B\n")
    assert "no training configuration" in call(path).stderr
    (found,) = json.loads(call(path, "--format", "trl", "--json").stdout)["files"]
    assert found["format"] == "trl"
    wrong = call(path, "--format", "trll")
    assert wrong.returncode == 2 and "Did you mean `trl`" in wrong.stderr
    assert call().returncode == 2


def test_annotations_are_escaped_and_name_the_line(tmp_path: Path) -> None:
    assert (
        annotation("error", "a,b:c.yml", 3, "50%", "one\ntwo %")
        == "::error file=a%2Cb%3Ac.yml,line=3,title=50%25::one%0Atwo %25"
    )
    path = write(tmp_path / "run.yml", "# first\n" + QLORA)
    fails = call(path, "--gpu", "t4", "--github")
    line = next(text for text in fails.stdout.splitlines() if text.startswith("::"))
    assert line.startswith(f"::error file={path},line=2,title=fitcheck%3A DOES NOT FIT::")
    assert "MiB" in line and fails.returncode == 1
    fine = call(path, "--gpu", "h200", "--github")
    assert "::notice " in fine.stdout and fine.returncode == 0
    broken = call(write(tmp_path / "b.yml", "base_model: x\nadapter: ia3\n"), "--github")
    assert "::error file=" in broken.stdout and ",line=2," in broken.stdout


def test_a_mapping_of_ones_own(tmp_path: Path) -> None:
    folder = tmp_path / "rules/profiles/importers"
    folder.mkdir(parents=True)
    text = (
        "id: mine\ntitle: My trainer\nstatus: stable\nsources: [me]\n"
        "recognise: {all: [my_model]}\nmodel: {my_model: null}\n"
        "defaults: {lora: false, batch_size: 3}\nkeys:\n  length: {sets: seq_len}\n"
        "  trick: {unpriced: a trick, direction: under}\nfree: [name]\n"
    )
    (folder / "mine.yaml").write_text(text, encoding="utf-8")
    config = "my_model: Qwen/Qwen2.5-0.5B\nlength: 512\ntrick: true\nname: x\n"
    path = write(tmp_path / "run.yaml", config)
    (found,) = json.loads(call(path, "--rules", str(tmp_path / "rules"), "--json").stdout)["files"]
    assert found["format"] == "mine" and found["estimate"]["training"]["batch_size"] == 3
    assert found["estimate"]["verdict"]["status"] == "uncertain"
    wrong = text.replace("sets: seq_len", "sets: seq_lenn")
    (folder / "mine.yaml").write_text(wrong, encoding="utf-8")
    assert (
        "`seq_lenn` is no flag. Did you mean `seq_len`?"
        in call(path, "--rules", str(tmp_path / "rules")).stderr
    )


def test_extends_that_leads_nowhere_is_said(tmp_path: Path) -> None:
    folder = tmp_path / "rules/profiles/importers"
    folder.mkdir(parents=True)
    head = "title: T\nstatus: stable\nsources: [me]\nrecognise: {all: [a]}\nkeys: {}\n"
    (folder / "one.yaml").write_text(f"id: one\nextends: two\n{head}", encoding="utf-8")
    with pytest.raises(RuleFileError, match="`two` is no importer"):
        mappings([str(tmp_path / "rules")])
    (folder / "two.yaml").write_text(f"id: two\nextends: one\n{head}", encoding="utf-8")
    with pytest.raises(RuleFileError, match="extends itself"):
        mappings([str(tmp_path / "rules")])


@pytest.mark.parametrize("text", ["a: &x [1]\nb: *x\n", "a: {b: {c: 1}}\n", "<<: {a: 1}\nb: 2\n"])
def test_yaml_that_people_write(text: str) -> None:
    items = parse("a.yml", text).items
    assert items and all(item.line >= 1 for item in items.values())


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parse("a.yml", text)
    except FitcheckError as error:
        assert str(error).startswith("a.yml")
