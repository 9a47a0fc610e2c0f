"""torchtune, Unsloth, DeepSpeed, accelerate: defaults by how they are started, and refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fitcheck.engine.api import rules_for
from fitcheck.engine.errors import InputProblem
from fitcheck.engine.importing.applying import Imported
from fitcheck.engine.importing.commands import command_document
from fitcheck.engine.importing.document import parse
from fitcheck.engine.importing.mapping import mappings
from fitcheck.engine.importing.reading import read_configuration


def of_command(command: str, path: str = "run.sh") -> Imported:
    document = command_document(path, command, mappings())
    return read_configuration(document, mappings(), rules_for().flags).imported


def of_text(text: str, path: str = "run.yaml") -> Imported:
    return read_configuration(parse(path, text), mappings(), rules_for().flags).imported


def directions(found: Imported) -> dict[str, str]:
    return {unpriced.item.key: unpriced.direction for unpriced in found.unpriced}


SCRIPT = "python unsloth-cli.py --model_name Qwen/Qwen2.5-7B"


@pytest.mark.parametrize(
    ("command", "flags"),
    [
        # the switch of the script is off unless it is given, other than the argument of the library
        (SCRIPT, {"quant": "none", "double_quant": False, "batch_size": 2, "lora_r": 16}),
        (f"{SCRIPT} --load_in_4bit", {"quant": "nf4", "batch_size": 2}),
        (
            "unsloth train --model Qwen/Qwen2.5-7B --num-epochs 1",
            {"quant": "nf4", "batch_size": 2, "lora_r": 64},
        ),
        (
            "unsloth train --model Qwen/Qwen2.5-7B --no-load-in-4bit --batch-size 8 --lora-r 8",
            {"quant": "none", "batch_size": 8, "lora_r": 8},
        ),
        (
            "unsloth train --model Qwen/Qwen2.5-7B --training-type full",
            {"quant": "none", "lora": False},
        ),
        (
            "unsloth train --model Qwen/Qwen2.5-7B --no-gradient-checkpointing",
            {"grad_checkpoint": False},
        ),
    ],
)
def test_defaults_of_unsloth_are_those_of_the_command(command: str, flags: dict[str, Any]) -> None:
    found = of_command(command)
    assert {name: found.flags[name] for name in flags} == flags
    assert not found.unknown


def test_defaults_of_unsloth_in_a_file() -> None:
    arguments = of_text("model_name: m\nmax_seq_length: 512\nrandom_state: 1\n")
    assert (arguments.flags["batch_size"], arguments.flags["lora_r"]) == (4, 16)
    settings = of_text("model: m\ntraining: {max_seq_length: 512}\n")
    assert (settings.flags["batch_size"], settings.flags["lora_r"]) == (2, 64)
    told = directions(of_text("model_name: m\nrandom_state: 1\neval_strategy: steps\n"))
    assert not told  # 4 sequences, which a step has too
    smaller = (
        "model_name: m\nrandom_state: 1\neval_strategy: steps\nper_device_train_batch_size: 1\n"
    )
    assert directions(of_text(smaller)) == {"eval_strategy": "under"}


TUNED = "model: {_component_: torchtune.models.llama3_1.%s}\ntokenizer: {max_seq_len: 512}\n"
COMPONENTS = "optimizer: {_component_: torch.optim.AdamW}\nbatch_size: 1\ndtype: bf16\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("model_name: m\nload_in_fp8: true\n", "run.yaml:2:1: a base in fp8 is not modelled"),
        (
            "model_name: m\nrandom_state: 1\ntarget_modules: [q_proj, lm_head]\n",
            "run.yaml:3:1: embed_tokens and lm_head are trained in full",
        ),
        ("policy_model: {_component_: x}\n", "run.yaml:1:1: reinforcement learning holds"),
        (f"{TUNED % 'llama3_1_8b'}max_new_tokens: 3\n", "run.yaml:3:1: this generates text"),
        (f"{TUNED % 'llama3_1_8b'}tasks: [hellaswag]\n", "run.yaml:3:1: this evaluates a model"),
        (f"{TUNED % 'llama3_1_8b'}ref_checkpointer: {{a: b}}\n", "run.yaml:3:1: preference"),
    ],
)
def test_what_is_not_modelled_is_refused_at_its_line(text: str, says: str) -> None:
    with pytest.raises(InputProblem) as problem:
        of_text(text)
    assert str(problem.value).startswith(says)


def test_a_configuration_that_comes_with_torchtune_is_said_to_be_one(tmp_path: Path) -> None:
    name = "llama3_1/8B_lora_single_device"
    command = f"# first\ntune run lora_finetune_single_device --config {name} batch_size=4\n"
    with pytest.raises(InputProblem) as problem:
        of_command(command, str(tmp_path / "run.sh"))
    assert str(problem.value) == (
        f"{tmp_path}/run.sh:2:1: {tmp_path}/{name}: there is no such file; a configuration that "
        f"comes with torchtune is written out by `tune cp {name} mine.yaml`."
    )


def test_adapters_of_torchtune_without_a_rank() -> None:
    assert of_text(f"{TUNED % 'lora_llama3_1_8b'}{COMPONENTS}").flags["lora_r"] == 8
    assert "lora_r" not in of_text(f"{TUNED % 'llama3_1_8b'}{COMPONENTS}").flags


def test_towers_of_torchtune() -> None:
    text = (
        "model:\n  _component_: torchtune.models.llama3_2_vision.lora_llama3_2_vision_11b\n"
        "  decoder_trainable: full\n  encoder_trainable: frozen\n  fusion_trainable: lora\n"
        f"tokenizer: {{max_seq_len: 512}}\n{COMPONENTS}"
    )
    found = of_text(text)
    assert found.flags["freeze_towers"] is True
    assert directions(found) == {"model.decoder_trainable": "under", "model._component_": "under"}
    assert "model._component_" not in directions(found.without({"images": 1}))


@pytest.mark.parametrize(
    ("zero", "told"),
    [
        ("stage: 0", {}),
        ("stage: 2", {"zero_optimization.stage": "over", "zero_optimization": "under"}),
        ("stage: 3, reduce_bucket_size: auto", {"zero_optimization.stage": "over"}),
        (
            "stage: 1, reduce_bucket_size: 200000000",
            {
                "zero_optimization.stage": "over",
                "zero_optimization.reduce_bucket_size": "under",
            },
        ),
    ],
)
def test_buckets_of_deepspeed(zero: str, told: dict[str, str]) -> None:
    assert directions(of_text(f"zero_optimization: {{{zero}}}\n")) == told


def test_a_global_batch_of_deepspeed_leaves_the_micro_batch_open() -> None:
    found = of_text("train_batch_size: 64\nzero_optimization: {stage: 0}\n")
    assert directions(found) == {"train_batch_size": "under"}
    assert not found.without({"batch_size": 1}).unpriced
    both = of_text("train_batch_size: 64\ntrain_micro_batch_size_per_gpu: 2\n")
    assert (directions(both), both.flags["batch_size"]) == ({}, 2)


@pytest.mark.parametrize("name", ["AdamW", "adamw", "ADAM"])
def test_names_of_deepspeed_optimizers_in_any_case(name: str) -> None:
    found = of_text(
        f"train_batch_size: auto\noptimizer: {{type: {name}}}\nzero_optimization: {{}}\n"
    )
    assert found.flags["optimizer"] == "adamw"
    assert "optimizer.type" not in directions(found)


@pytest.mark.parametrize(("adapters", "told"), [("--use_peft", False), ("", True)])
def test_buckets_of_ddp_count_without_adapters(tmp_path: Path, adapters: str, told: bool) -> None:
    part = "compute_environment: LOCAL_MACHINE\ndistributed_type: MULTI_GPU\nnum_processes: 4\n"
    (tmp_path / "acc.yaml").write_text(part, encoding="utf-8")
    command = (
        "accelerate launch --config_file acc.yaml trl/scripts/sft.py "
        f"--model_name_or_path Qwen/Qwen2.5-0.5B --max_length 512 {adapters}"
    )
    found = directions(of_command(command, str(tmp_path / "run.sh")))
    assert found == ({"distributed_type": "under"} if told else {})
