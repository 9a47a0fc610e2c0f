"""Training commands as people write them into shell scripts."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from fitcheck.engine.api import rules_for
from fitcheck.engine.errors import FitcheckError, InputProblem
from fitcheck.engine.importing.commands import command_document
from fitcheck.engine.importing.document import read_document
from fitcheck.engine.importing.mapping import COMMAND, mappings
from fitcheck.engine.importing.reading import read_configuration

TRAIN = "torchrun train.py --model_name_or_path Qwen/Qwen2.5-0.5B --max_length 512"


def keys(text: str) -> dict[str, object]:
    """What a script says, without its command."""
    items = command_document("run.sh", text, mappings()).items
    return {key: item.value for key, item in items.items() if key != COMMAND}


@pytest.mark.parametrize(
    ("before", "option", "value"),
    [
        ("B=4\n", "$B", 4),
        ("export B=4  # of each card\n", "${B}", 4),
        ("readonly B='4'\n", '"$B"', 4),
        ("B=3\nB=4\n", "$B", 4),
        ("A=4\nB=$A\n", "$B", 4),
        ("", "${B:-4}", 4),
        ("B=4\n", "${B:-2}", 4),
        ("", "$B", "${B}"),
        ("", "$(nproc)", "${command}"),
        ("", "`nvidia-smi -L | wc -l`", "${command}"),
    ],
)
def test_variables_of_a_script_are_filled_in(before: str, option: str, value: object) -> None:
    found = keys(f"{before}{TRAIN} --per_device_train_batch_size {option}\n")
    assert found["per_device_train_batch_size"] == value
    assert found["max_length"] == 512


def test_a_variable_may_hold_several_options() -> None:
    found = keys(f'ARGS="--bf16 True --optim sgd"\n{TRAIN} $ARGS\n')
    assert (found["bf16"], found["optim"], found["max_length"]) == (True, "sgd", 512)


@pytest.mark.parametrize(
    "end",
    [">log", "> log 2>&1 &", "2>&1 | tee log", "2>/dev/null", "&>log", ">>log", "&& ls", "; ls"],
)
def test_what_the_shell_does_with_a_command_is_no_option(end: str) -> None:
    assert keys(f"{TRAIN} --bf16 {end}\n") == keys(f"{TRAIN} --bf16\n")


@pytest.mark.parametrize(
    ("word", "key"), [('"$@"', "$@"), ("$*", "$@"), ("${ARGS[@]}", "${ARGS[@]}")]
)
def test_options_that_only_the_caller_knows_are_told(word: str, key: str) -> None:
    text = f"{TRAIN} {word}\n" if word.endswith('"') else f"torchrun train.py {word} {TRAIN[18:]}\n"
    document = command_document("run.sh", text, mappings())
    found = read_configuration(document, mappings(), rules_for().flags).imported
    assert [item.key for item in found.unknown] == [key]
    assert found.flags["seq_len"] == 512
    assert any("not known here" in told for told in found.told())


def test_what_is_filled_in_later_is_refused_where_it_costs_memory() -> None:
    document = command_document("run.sh", f"{TRAIN} --per_device_train_batch_size $B\n", mappings())
    with pytest.raises(InputProblem, match=r"run.sh:1:1: .*filled in when it runs.*--batch-size"):
        read_configuration(document, mappings(), rules_for().flags)


@pytest.mark.parametrize(
    ("cards", "rest", "told"),
    [
        ("1", "", False),
        ("2", "", True),
        ("16", "", True),
        ("gpu", "", True),
        ("$N", "", True),
        ("8", "--fsdp full_shard", False),
    ],
)
def test_buckets_of_ddp_are_told_where_there_are_several_cards(
    cards: str, rest: str, told: bool
) -> None:
    text = f"torchrun --nproc_per_node {cards} {TRAIN[9:]} {rest}\n"
    document = command_document("run.sh", text, mappings())
    found = read_configuration(document, mappings(), rules_for().flags).imported
    assert told == any("buckets" in u.says and u.direction == "under" for u in found.unpriced)


SFT = "trl/scripts/sft.py --model_name_or_path Qwen/Qwen2.5-0.5B --max_length 512"


def test_options_of_a_launcher_count_for_what_it_launches(tmp_path: Path) -> None:
    (tmp_path / "acc.yaml").write_text(
        "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nnum_processes: 2\n"
        "fsdp_config: {fsdp_offload_params: true}\n",
        encoding="utf-8",
    )
    text = f"accelerate launch --config_file acc.yaml --main_process_port 1 {SFT}\n"
    document = command_document(str(tmp_path / "run.sh"), text, mappings())
    found = read_configuration(document, mappings(), rules_for().flags).imported
    assert found.importer.id == "trl" and not found.unknown
    told = {u.item.key: u.direction for u in found.unpriced}
    assert told == {"distributed_type": "over", "fsdp_config.fsdp_offload_params": "over"}


@pytest.mark.parametrize(("rest", "told"), [("", True), ("--use_peft --dtype bfloat16", False)])
def test_buckets_matter_for_full_fine_tunes_alone(rest: str, told: bool) -> None:
    text = f"accelerate launch --num_processes 8 {SFT} {rest}\n"
    document = command_document("run.sh", text, mappings())
    found = read_configuration(document, mappings(), rules_for().flags).imported
    assert told == any("buckets" in u.says for u in found.unpriced)


def test_a_launcher_that_a_program_starts_itself_is_its_option(tmp_path: Path) -> None:
    (tmp_path / "run.yml").write_text("base_model: m\nsequence_len: 2048\n", encoding="utf-8")
    text = "axolotl train run.yml --micro-batch-size 3 --launcher torchrun -- --nproc_per_node=2\n"
    document = command_document(str(tmp_path / "run.sh"), text, mappings())
    found = read_configuration(document, mappings(), rules_for().flags).imported
    assert found.importer.id == "axolotl" and not found.unknown
    assert (found.flags["batch_size"], found.flags["seq_len"]) == (3, 2048)


PIECES = ["$", "{", "}", "B", "=", " ", "\n", "\\", '"', "'", "`", "(", ")", "|", "--optim", TRAIN]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=12))
def test_any_script_is_read_or_refused(pieces: list[str]) -> None:
    try:
        document = command_document("run.sh", "".join(pieces), mappings())
        read_configuration(document, mappings(), rules_for().flags)
    except FitcheckError as error:
        assert str(error).startswith("run.sh")


@pytest.mark.parametrize(("rest", "told"), [("", True), ("--use_peft --dtype bfloat16", False)])
def test_a_switch_for_several_cards_counts_for_full_fine_tunes(rest: str, told: bool) -> None:
    text = f"accelerate launch --multi_gpu {SFT} {rest}\n"
    document = command_document("run.sh", text, mappings())
    found = read_configuration(document, mappings(), rules_for().flags).imported
    assert told == any("buckets" in u.says for u in found.unpriced)


@pytest.mark.parametrize(
    "script", ["dpo.py", "train_dpo.py", "examples/scripts/orpo.py", "gkd.py", "reward_modeling.py"]
)
@pytest.mark.parametrize("launcher", ["accelerate launch", "python", "torchrun", "deepspeed"])
def test_scripts_that_hold_a_second_model_or_generate_are_refused(
    launcher: str, script: str
) -> None:
    text = f"{launcher} {script} --model_name_or_path Qwen/Qwen2.5-0.5B --bf16 True\n"
    document = command_document("run.sh", text, mappings())
    with pytest.raises(InputProblem, match="fitcheck models supervised fine-tuning"):
        read_configuration(document, mappings(), rules_for().flags)


@pytest.mark.parametrize("key", ["beta: 0.1", "num_generations: 8", "max_prompt_length: 512"])
def test_keys_of_other_trainings_are_refused_at_their_line(tmp_path: Path, key: str) -> None:
    path = tmp_path / "f.yaml"
    path.write_text(f"model_name_or_path: a/b\nuse_peft: true\n{key}\n", encoding="utf-8")
    with pytest.raises(InputProblem, match=r"f\.yaml:3:1: .*supervised fine-tuning"):
        read_configuration(read_document(str(path)), mappings(), rules_for().flags)


def test_a_folder_with_the_name_of_a_method_says_nothing() -> None:
    text = "python runs_dpo/sft.py --model_name_or_path Qwen/Qwen2.5-0.5B --max_length 512\n"
    document = command_document("run.sh", text, mappings())
    found = read_configuration(document, mappings(), rules_for().flags).imported
    assert found.importer.id == "trl"


@pytest.mark.parametrize(("typed", "told"), [({}, False), ({"batch_size": 1}, True)])
def test_evaluation_is_held_against_the_micro_batch_that_is_typed(
    typed: dict[str, int], told: bool
) -> None:
    text = f"accelerate launch {SFT} --per_device_train_batch_size 8 --per_device_eval_batch_size 8"
    document = command_document("run.sh", text, mappings())
    found = read_configuration(document, mappings(), rules_for().flags, typed=typed).imported
    assert told == any(u.item.key == "per_device_eval_batch_size" for u in found.unpriced)
