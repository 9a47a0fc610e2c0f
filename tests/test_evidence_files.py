"""The evidence files hold together: shapes, roles, and the arithmetic that ties the values.

Where the sibling folder ``shared`` is present, every value is also compared with the
transcription it was carried over from.
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

REPO = Path(__file__).resolve().parents[1]
EVIDENCE = REPO / "measurement" / "evidence"
SHARED = REPO.parent / "shared" / "evidence"
MIB = 1024 * 1024

Row = dict[str, Any]

ROWS_PER_FILE = {
    "t4_training": 79,
    "t4_verdicts": 12,
    "t4_serving": 4,
    "t4_notebook_training": 26,
}


def read(name: str) -> list[Row]:
    lines = (EVIDENCE / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


FILES: dict[str, list[Row]] = {name: read(name) for name in ROWS_PER_FILE}
ALL_ROWS = [row for rows in FILES.values() for row in rows]
TRAINING = FILES["t4_training"]
NOTEBOOK = FILES["t4_notebook_training"]
DETAILED = [row for row in TRAINING if "phases_mib" in row]  # all but the ten excluded rows


@pytest.fixture(scope="module")
def manifest() -> Row:
    loaded: Row = yaml.safe_load((EVIDENCE / "manifest.yaml").read_text(encoding="utf-8"))
    return loaded


def ids(rows: list[Row]) -> list[str]:
    return [row["id"] for row in rows]


# --- shape and roles ---------------------------------------------------------------------------


def test_row_counts_and_unique_ids(manifest: Row) -> None:
    assert {name: len(rows) for name, rows in FILES.items()} == ROWS_PER_FILE
    assert len(set(ids(ALL_ROWS))) == len(ALL_ROWS) == 121
    for name, count in ROWS_PER_FILE.items():
        assert manifest["files"][f"{name}.jsonl"]["rows"] == count


def test_simulated_rows_are_declared(manifest: Row) -> None:
    files = {path.name for path in EVIDENCE.glob("*.jsonl")}
    assert files == manifest["files"].keys() | manifest["simulated"].keys()
    for name, declared in manifest["simulated"].items():
        rows = read(name.removesuffix(".jsonl"))
        assert len(rows) == len(set(ids(rows))) == declared["rows"]
        assert (REPO / declared["made_by"]).is_file()
        for row in rows:
            assert any(row["stack"].items() <= stack.items() for stack in declared["stacks"])
            assert all(layer["kept"] >= 0 for layer in row.get("layers", ()))


def test_manifest_gives_every_row_one_known_role(manifest: Row) -> None:
    roles: dict[str, str] = manifest["rows"]
    assert set(roles) == set(ids(ALL_ROWS))
    assert set(roles.values()) == set(manifest["roles"])
    assert Counter(roles[i] for i in ids(TRAINING)) == {
        "calibration": 49,
        "repeat": 8,
        "holdout": 12,
        "excluded": 10,
    }
    for name, role in [
        ("t4_verdicts", "verdict"),
        ("t4_serving", "serving"),
        ("t4_notebook_training", "extra"),
    ]:
        assert {roles[i] for i in ids(FILES[name])} == {role}
    assert set(manifest["caveats"]) <= set(roles)


def test_calibration_groups(manifest: Row) -> None:
    groups = Counter(
        ("flash" if row["run"]["flash_attn"] else "eager", row["run"]["quant"])
        for row in TRAINING
        if manifest["rows"][row["id"]] == "calibration"
    )
    assert groups == {
        ("eager", "nf4"): 14,
        ("eager", "none"): 10,
        ("flash", "nf4"): 15,
        ("flash", "none"): 10,
    }


def test_rows_agree_with_their_session_and_card(manifest: Row) -> None:
    for row in ALL_ROWS:
        session = manifest["sessions"][row["source"]["session"]]
        assert row["stack"].items() <= session["stack"].items(), row["id"]
        assert row["card"].items() <= manifest["card"].items(), row["id"]


def test_lower_precision_is_declared(manifest: Row) -> None:
    for row in ALL_ROWS:
        coarse = manifest["rows"][row["id"]] in ("excluded", "extra", "serving")
        assert row["source"]["resolution"] == ("whole_mib" if coarse else "byte"), row["id"]
        if coarse:
            assert all(value == int(value) for value in row["measured_mib"].values())


def test_licence_notice_is_kept() -> None:
    notice = (EVIDENCE / "LICENSE.t4").read_text(encoding="utf-8")
    assert notice.startswith("MIT License\n\nCopyright (c) 2026 Anas Bouzid\n")


# --- arithmetic --------------------------------------------------------------------------------


def test_reserved_plus_context_is_process() -> None:
    for row in TRAINING + NOTEBOOK + FILES["t4_serving"]:
        measured = row["measured_mib"]
        assert measured["peak_reserved"] + measured["cuda_context"] == measured["process"], row


def test_activations_are_what_is_left_of_the_peak() -> None:
    assert len(DETAILED) == 69
    for row in DETAILED + NOTEBOOK:
        m = row["measured_mib"]
        resident = m.get("resident_before_step", m["after_load_allocated"])
        rest = m["peak_allocated"] - resident - m["optimizer_state"] - m["gradients"]
        # Four whole-MiB values are up to 2 MiB away from their exact difference.
        slack = 2 if row["source"]["resolution"] == "whole_mib" else 0
        assert abs(rest - m["activations"]) <= slack, row["id"]
    for row in DETAILED:
        m = row["measured_mib"]
        assert m["resident_before_step"] == m["after_load_allocated"], row["id"]


def test_peak_is_the_largest_phase() -> None:
    for row in DETAILED + NOTEBOOK + FILES["t4_serving"]:
        assert row["measured_mib"]["peak_allocated"] == max(row["phases_mib"].values()), row["id"]
    for row in DETAILED:
        assert row["phases_mib"]["backward"] == max(row["phases_mib"].values()), row["id"]


def test_bytes_per_trainable_parameter() -> None:
    for row in DETAILED + NOTEBOOK:
        trainable = row["counts"]["trainable_parameters"]
        half_a_step = 0.5 if row["source"]["resolution"] == "whole_mib" else 0
        measured = row["measured_mib"]
        assert abs(measured["optimizer_state"] - trainable * 8 / MIB) <= half_a_step, row["id"]
        assert abs(measured["gradients"] - trainable * 4 / MIB) <= half_a_step, row["id"]


def lora_parameters(row: Row) -> int:
    """Adapter parameters from the dimensions: rank x (inputs + outputs) per target and layer."""
    config, run = row["model"]["config"], row["run"]
    hidden, ffn = config["hidden_size"], config["intermediate_size"]
    queries = config["num_attention_heads"] * config["head_dim"]
    keys = config["num_key_value_heads"] * config["head_dim"]
    widths = {
        "q_proj": hidden + queries,
        "k_proj": hidden + keys,
        "v_proj": hidden + keys,
        "o_proj": queries + hidden,
        "gate_proj": hidden + ffn,
        "up_proj": hidden + ffn,
        "down_proj": ffn + hidden,
    }
    per_layer = sum(widths[target] for target in run["lora_targets"])
    return int(config["num_hidden_layers"] * run["lora_r"] * per_layer)


def test_counts_follow_from_the_dimensions() -> None:
    for row in DETAILED + NOTEBOOK:
        counts, parameters = row["counts"], row["model"]["parameters"]
        if row["run"]["lora_r"] is None:
            assert counts["trainable_parameters"] == counts["total_parameters"] == parameters
        else:
            assert counts["trainable_parameters"] == lora_parameters(row), row["id"]
            assert parameters + counts["trainable_parameters"] == counts["total_parameters"]
    for row in FILES["t4_serving"]:
        assert row["counts"]["total_parameters"] == row["model"]["parameters"]


def linear_parameters(config: Row) -> int:
    """Weights of the projections that a quantized base stores packed: no embeddings, no norms."""
    hidden, head = config["hidden_size"], config["head_dim"]
    attention = 2 * hidden * head * (config["num_attention_heads"] + config["num_key_value_heads"])
    return int(config["num_hidden_layers"] * (attention + 3 * hidden * config["intermediate_size"]))


def test_stored_base_weights_follow_from_the_dimensions() -> None:
    for row in DETAILED:
        stored, model = row["weight_storage_mib"], row["model"]
        if row["run"]["quant"] == "nf4":
            packed = linear_parameters(model["config"]) / 2
            assert stored["nf4_packed"] * MIB == packed, row["id"]
        else:
            assert stored["other"] * MIB == 2 * model["parameters"], row["id"]


def derived_parameters(config: Row) -> int:
    """Parameters of the same dimensions without biases."""
    hidden, layers = config["hidden_size"], config["num_hidden_layers"]
    tables = 1 if config["tie_word_embeddings"] else 2
    norms = hidden * (2 * layers + 1)
    return int(linear_parameters(config) + norms + tables * config["vocab_size"] * hidden)


def test_every_row_has_a_consistent_model() -> None:
    seen: dict[str, Row] = {}
    for row in ALL_ROWS:
        model = row["model"]
        facts = {"parameters": model["parameters"], "config": model["config"]}
        assert seen.setdefault(model["hub_id"], facts) == facts, row["id"]
    for hub_id, model in seen.items():
        # Qwen2 has q, k and v biases, which the plain formula leaves out.
        gap = model["parameters"] - derived_parameters(model["config"])
        biased = model["config"]["model_type"] == "qwen2"
        assert gap == (model_biases(model["config"]) if biased else 0), hub_id


def model_biases(config: Row) -> int:
    heads = config["num_attention_heads"] + 2 * config["num_key_value_heads"]
    return int(config["num_hidden_layers"] * heads * config["head_dim"])


def test_peer_config_hash() -> None:
    for row in DETAILED:
        model, config = row["model"], row["model"]["config"]
        block = {
            "name": model["hub_id"].split("/")[-1],
            "num_params": model["parameters"],
            "num_layers": config["num_hidden_layers"],
            "num_kv_heads": config["num_key_value_heads"],
            **{
                key: config[key]
                for key in (
                    "hidden_size",
                    "num_attention_heads",
                    "head_dim",
                    "intermediate_size",
                    "vocab_size",
                    "tie_word_embeddings",
                )
            },
        }
        text = json.dumps(block, sort_keys=True, separators=(",", ":"))
        assert hashlib.sha256(text.encode()).hexdigest() == model["peer_config_sha256"], row["id"]


def test_peer_prediction_parts_sum_to_the_total() -> None:
    parts = ("weights", "lora", "optimizer", "gradients", "activations", "overhead")
    for row in TRAINING:
        predicted = row["peer_prediction_mib"]
        assert sum(predicted[part] for part in parts) == pytest.approx(
            predicted["total"], abs=1e-6
        ), row["id"]


def test_verdict_rows() -> None:
    rows = FILES["t4_verdicts"]
    assert Counter(row["verdict"]["boundary"] for row in rows) == {
        "largest_predicted_to_fit": 6,
        "one_more": 6,
    }
    assert Counter(row["verdict"]["outcome"] for row in rows) == {"completed": 8, "oom": 4}
    for row in rows:
        verdict, best = row["verdict"], row["peer_verdict"]["max_batch_size"]
        fits = verdict["boundary"] == "largest_predicted_to_fit"
        assert row["run"]["batch_size"] == (best if fits else best + 1)
        assert row["peer_verdict"]["fits"] == fits
        if verdict["outcome"] == "oom":
            assert "measured_mib" not in row
            assert not verdict["within_budget"]
        else:
            within = row["measured_mib"]["process"] <= verdict["budget_mib"]
            assert verdict["within_budget"] == within


def test_key_value_cache_bytes() -> None:
    for row in FILES["t4_serving"]:
        config, run = row["model"]["config"], row["run"]
        per_token = 2 * 2 * config["num_key_value_heads"] * config["head_dim"]
        elements = per_token * config["num_hidden_layers"] * run["seq_len"] * run["concurrent"]
        assert row["measured_mib"]["kv_cache"] == elements / MIB
        assert row["counts"]["cached_tokens_per_sequence"] == run["seq_len"]


def test_notebook_rows_repeat_the_excluded_rows(manifest: Row) -> None:
    by_id = {row["id"]: row for row in TRAINING}
    pairs = [
        (row, by_id[row["source"]["same_run_as"]])
        for row in NOTEBOOK
        if "same_run_as" in row["source"]
    ]
    assert {twin["id"] for _, twin in pairs} == {
        i for i, role in manifest["rows"].items() if role == "excluded"
    }
    for row, twin in pairs:
        assert twin["measured_mib"].items() <= row["measured_mib"].items(), row["id"]
        assert twin["model"] == row["model"]
        assert twin["run"] == row["run"]


# --- against the transcription ------------------------------------------------------------------

MODEL_COLUMNS = {
    "hidden_size": "hidden_size",
    "num_layers": "num_hidden_layers",
    "num_attention_heads": "num_attention_heads",
    "num_kv_heads": "num_key_value_heads",
    "head_dim": "head_dim",
    "intermediate_size": "intermediate_size",
    "vocab_size": "vocab_size",
    "tie_word_embeddings": "tie_word_embeddings",
}
# csv column -> where it stands in our row, as block.key
COMMON_COLUMNS = {
    "model_id": "model.hub_id",
    "gpu": "card.name",
    "gpu_key": "card.key",
    "gpu_total_mib": "card.total_mib",
    "torch": "stack.torch",
    "transformers": "stack.transformers",
    "peft": "stack.peft",
    "bitsandbytes": "stack.bitsandbytes",
    "precision": "run.precision",
    "quant": "run.quant",
    "quantization": "run.quant",
    "double_quant": "run.double_quant",
    "optimizer": "run.optimizer",
    "lora_rank": "run.lora_r",
    "batch_size": "run.batch_size",
    "seq_len": "run.seq_len",
    "num_concurrent": "run.concurrent",
    "grad_checkpoint": "run.grad_checkpoint",
    "flash_attn": "run.flash_attn",
    "attn_impl": "run.attention_implementation",
    "after_load_allocated_mib": "measured_mib.after_load_allocated",
    "resident_before_step_mib": "measured_mib.resident_before_step",
    "measured_weights_lora_mib": "measured_mib.resident_before_step",
    "measured_optimizer_mib": "measured_mib.optimizer_state",
    "optimizer_state_mib": "measured_mib.optimizer_state",
    "measured_gradient_mib": "measured_mib.gradients",
    "gradient_mib": "measured_mib.gradients",
    "measured_activation_mib": "measured_mib.activations",
    "activation_mib": "measured_mib.activations",
    "master_weight_mib": "measured_mib.master_weights",
    "measured_peak_allocated_mib": "measured_mib.peak_allocated",
    "peak_allocated_mib": "measured_mib.peak_allocated",
    "measured_peak_reserved_mib": "measured_mib.peak_reserved",
    "peak_reserved_mib": "measured_mib.peak_reserved",
    "cuda_context_mib": "measured_mib.cuda_context",
    "cuda_context_init_mib": "measured_mib.cuda_context_init",
    "process_mib": "measured_mib.process",
    "measured_process_mib": "measured_mib.process",
    "kv_cache_direct_mib": "measured_mib.kv_cache",
    "kv_cache_by_subtraction_mib": "measured_mib.kv_cache_by_subtraction",
    "resident_after_fill_mib": "measured_mib.resident_after_fill",
    "peak_forward_mib": "phases_mib.forward",
    "peak_backward_mib": "phases_mib.backward",
    "peak_optimizer_mib": "phases_mib.optimizer_step",
    "peak_prefill_mib": "phases_mib.prefill",
    "peak_decode_mib": "phases_mib.decode",
    "weight_breakdown_nf4_packed": "weight_storage_mib.nf4_packed",
    "weight_breakdown_quant_scales": "weight_storage_mib.quantization_scales",
    "weight_breakdown_unquantized_fp32": "weight_storage_mib.unquantized_fp32",
    "weight_breakdown_other": "weight_storage_mib.other",
    "trainable_params": "counts.trainable_parameters",
    "total_params": "counts.total_parameters",
    "cached_tokens_per_sequence": "counts.cached_tokens_per_sequence",
    "num_params": "model.parameters",
    "step_seconds": "timing.step_s",
    "prefill_seconds": "timing.prefill_s",
    "decode_ms_per_token": "timing.decode_per_token_ms",
    "predicted_weight_mib": "peer_prediction_mib.weights",
    "predicted_lora_mib": "peer_prediction_mib.lora",
    "predicted_optimizer_mib": "peer_prediction_mib.optimizer",
    "predicted_gradient_mib": "peer_prediction_mib.gradients",
    "predicted_activation_mib": "peer_prediction_mib.activations",
    "predicted_overhead_mib": "peer_prediction_mib.overhead",
    "predicted_total_mib": "peer_prediction_mib.total",
    "predicted_activation_logits_mib": "peer_prediction_mib.logits",
    "predicted_activation_layer_mib": "peer_prediction_mib.layer",
    "predicted_kv_cache_mib": "peer_prediction_mib.kv_cache",
    "predicted_kv_mib_per_request": "peer_prediction_mib.kv_cache_per_request",
    "predicted_kv_mib_per_token": "peer_prediction_mib.kv_cache_per_token",
    "fitcheck_num_params": "peer_prediction_counts.parameters",
    "registered_predicted_total_mib": "peer_registered_mib.total",
    "registered_predicted_tensors_mib": "peer_registered_mib.tensors",
    "registered_predicted_overhead_mib": "peer_registered_mib.overhead",
    "registered_predicted_max_batch_size": "peer_verdict.max_batch_size",
    "registered_predicted_fits": "peer_verdict.fits",
    "predicted_max_batch_size": "peer_verdict.max_batch_size",
    "predicted_fits": "peer_verdict.fits",
    "outcome": "verdict.outcome",
    "safety_budget_mib": "verdict.budget_mib",
    "within_safety_budget": "verdict.within_budget",
    "source_index": "source.index",
    "source_row_file": "source.row_file",
    "registered_row_id": "source.registered_row_id",
    "session": "source.session",
    "executed_on": "source.executed_on",
    "fitcheck_version": "source.peer_version",
}
# Compared by the dedicated lines of the test below, or (error_pct_*) derived and not carried.
SPECIAL_COLUMNS = {
    "row_id",
    "role",
    "source_file",
    "run_id",
    "session_date",
    "gpu_capability",
    "model_config_sha256",
    "optimizer_dtype",
    "lora_targets",
    "kernel",
    "sdpa_backend",
    "kv_dtype",
    *(f"{name}_dtype" for name in ("optimizer_state", "gradient", "base_param")),
    *(f"{name}_dtype" for name in ("trainable_param", "activation", "master_weight")),
    *(f"error_pct_{name}" for name in ("tensors", "allocator", "process", "activation")),
}
DTYPE_COLUMNS = {
    "optimizer_state_dtype": "optimizer_state",
    "gradient_dtype": "gradients",
    "base_param_dtype": "base_parameters",
    "trainable_param_dtype": "trainable_parameters",
    "activation_dtype": "activations",
    "master_weight_dtype": "master_weights",
    "kv_dtype": "kv_cache",
}


def cell(text: str) -> Any:
    """A csv cell as the JSON value it stands for; None for an empty cell."""
    if text in ("true", "false"):
        return text == "true"
    try:
        return json.loads(text)
    except ValueError:
        return text or None


def at(row: Row, path: str) -> Any:
    block, key = path.split(".")
    return row.get(block, {}).get(key)


def exact(name: str) -> list[Row]:
    """The rows with number text instead of numbers, to compare the text itself."""
    lines = (EVIDENCE / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line, parse_float=str, parse_int=str) for line in lines]


@pytest.mark.parametrize("name", list(ROWS_PER_FILE))
def test_every_value_equals_the_transcription(name: str, manifest: Row) -> None:
    path = SHARED / f"{name}.csv"
    if not path.is_file():
        pytest.skip(f"{path} is not there: the transcription is kept outside the repository")
    with path.open(encoding="utf-8", newline="") as stream:
        records = list(csv.DictReader(stream))
    assert len(records) == len(FILES[name])
    texts = exact(name)
    for record, row, text in zip(records, FILES[name], texts, strict=True):
        if name == "t4_training":
            assert record["row_id"] == row["id"]
            assert record["role"] == manifest["rows"][row["id"]]
        else:
            assert record["row_id"] == row["source"]["row_id"]
        for column, value in record.items():
            if column in MODEL_COLUMNS:
                if value:
                    assert cell(value) == row["model"]["config"][MODEL_COLUMNS[column]]
            elif column in DTYPE_COLUMNS:
                known = {"": None, "none": None, "float32": "fp32", "float16": "fp16"}
                expected = known.get(value, value)
                assert row.get("dtypes", {}).get(DTYPE_COLUMNS[column]) == expected
            elif column == "num_params" and not value:
                assert row["model"]["config_from"] == "same_model"
            elif column in SPECIAL_COLUMNS:
                continue
            else:
                where = COMMON_COLUMNS[column]  # a KeyError here is a column nobody carried
                assert at(row, where) == cell(value), (row["id"], column)
                if value and at(text, where) not in (True, False):
                    assert at(text, where) == value, (row["id"], column)
        assert record["source_file"].split("@")[0] == row["source"]["file"]
        if record.get("session_date"):
            session = manifest["sessions"][row["source"]["session"]]
            assert record["session_date"] == session["date"]
        if record.get("gpu_capability"):
            assert record["gpu_capability"] == "sm_" + row["card"]["compute_capability"].replace(
                ".", ""
            )
        if record.get("run_id"):
            assert record["run_id"] == row["source"]["peer_run"]
        if record.get("model_config_sha256"):
            digest = "sha256:" + row["model"]["peer_config_sha256"]
            assert record["model_config_sha256"] == digest
        if "kernel" in record:
            assert row["run"]["flash_attn"] == (record["kernel"] == "flash")
            assert "+".join(row["run"]["lora_targets"]) == record["lora_targets"]
        if record.get("sdpa_backend"):
            flash = record["sdpa_backend"] == "EFFICIENT_ATTENTION (+ GQA expand shim)"
            assert row["run"]["sdpa_backend"] == ("efficient_attention" if flash else None)
            assert row["run"].get("kv_heads_expanded", False) == flash
        if name == "t4_verdicts":
            kind = {"ceiling-fit": "largest_predicted_to_fit", "ceiling-oom": "one_more"}
            assert row["verdict"]["boundary"] == kind[record["role"]]
