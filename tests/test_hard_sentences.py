"""Eighteen sentences that the formula language has to be able to say, said in it and evaluated.

Each sentence has a folder of rule files in `tests/sentences/`, which the tests lay over the bundled
rules like any overlay. What the folders state is invented where it says so; the tests are about
the language. The switches that later versions will have are in `tests/sentences/flags.yaml`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from fitcheck.engine.api import choose_card
from fitcheck.engine.architecture import Model, resolve
from fitcheck.engine.checks import check_roots
from fitcheck.engine.errors import FitcheckError, InputProblem, Refusal, RuleFileError
from fitcheck.engine.hints import price_hints
from fitcheck.engine.loading import Loader, bundled_root
from fitcheck.engine.report import Prepared, Report, build_report, find_caveats
from fitcheck.engine.rules import Rules
from fitcheck.engine.run import Facts, Run

SENTENCES = Path(__file__).parent / "sentences"
FOLDERS = sorted(p.name for p in SENTENCES.iterdir() if p.is_dir())
MIB, GIB = 1 << 20, 1 << 30

Said = Callable[[str], Rules]
Config = dict[str, Any]

SMALL: Config = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 128,
    "vocab_size": 1_000,
}
LARGE: Config = {  # the shape of Llama-3.1-8B
    "model_type": "llama",
    "hidden_size": 4_096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14_336,
    "vocab_size": 128_256,
}


@pytest.fixture(scope="module")
def flags_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An overlay whose flags.yaml is the bundled one with the switches of the sentences."""
    bundled = (Path(bundled_root()) / "formulas/flags.yaml").read_text(encoding="utf-8")
    added = (SENTENCES / "flags.yaml").read_text(encoding="utf-8").split("flags:\n")[1]
    folder = tmp_path_factory.mktemp("flags")
    text = bundled.replace("\nshorthands:\n", f"{added}\nshorthands:\n")
    (folder / "flags.yaml").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def said(flags_folder: Path) -> Said:
    """`said("07-phases")`: the bundled rules with the flags and one sentence on top."""
    known: dict[str, Rules] = {}

    def rules(name: str) -> Rules:
        if name not in known:
            known[name] = Loader(roots(flags_folder, SENTENCES / name)).load()
        return known[name]

    return rules


def roots(*folders: Path) -> list[tuple[str, bool]]:
    return [(bundled_root(), False), *((str(folder), True) for folder in folders)]


@pytest.mark.parametrize("name", FOLDERS)
def test_every_file_of_a_sentence_is_free_of_problems(name: str, flags_folder: Path) -> None:
    problems = check_roots(roots(flags_folder, SENTENCES / name))
    assert not problems, "\n\n".join(p.render() for p in problems)


def model_of(rules: Rules, config: Config) -> Model:
    return resolve(rules.architectures, "probe", config, "a test", None, stack=rules.stack)


def prepared(rules: Rules, config: Config = SMALL, gpu: str = "h100", **flags: Any) -> Prepared:
    card = choose_card(rules, gpu, flags.pop("vram_mib", None))
    return Prepared(rules, rules.flags.resolve(flags), card, model_of(rules, config))


def run_of(rules: Rules, config: Config = SMALL, gpu: str = "h100", **flags: Any) -> Run:
    return prepared(rules, config, gpu, **flags).run_with(())


def report_of(rules: Rules, config: Config = SMALL, gpu: str = "h100", **flags: Any) -> Report:
    return build_report(prepared(rules, config, gpu, **flags))


def by_hand(rules: Rules, groups: Sequence[Mapping[str, Any]], **flags: Any) -> Run:
    """A run over layer groups that no architecture file gives."""
    start = run_of(rules, **flags).facts
    without = {"outer_groups": (), "tower_groups": ()}
    layers = {name: groups for name in start.lists if name.endswith("_groups")}
    lists = {**start.lists, **layers, **without}
    return Run(rules, Facts(start.settings, start.records, lists))


def group(count: int, modules: Sequence[tuple[str, int, int]] = (), **fields: Any) -> Config:
    """A dense layer group; the fields are those of `SMALL` unless given."""
    dims = {
        "hidden_size": 64,
        "num_attention_heads": 4,
        "num_kv_heads": 2,
        "head_dim": 16,
        "intermediate_size": 128,
        **fields,
    }
    zeros = (
        "plain_mlp_width",
        "extra_width",
        "extra_residual",
        "routed_rows",
        "router_width",
        "expanded_width",
        "fallback_width",
        "gradient_width",
        "mixer_gradient_width",
        "capped_scores",
        "unmeasured",
    )
    module = {"kind": "linear", "role": "", "bias": 0, "copies": 1, "instances": 1}
    return {
        "count": count,
        "mixer": "full",
        "ffn": "dense",
        "window": 0,
        **dict.fromkeys(zeros, 0),
        "query_width": dims["num_attention_heads"] * dims["head_dim"],
        "key_width": dims["num_kv_heads"] * dims["head_dim"],
        "mlp_width": dims["intermediate_size"],
        "score_heads": dims["num_attention_heads"],
        "norm_count": 2,
        "fp32_width": 2 * dims["hidden_size"],
        **dims,
        "places": f"0-{count - 1}",
        "tower": "",
        "modules": [
            {"name": n, "path": n, "whole": n, "d_in": i, "d_out": o, **module}
            for n, i, o in modules
        ],
        "parameters": [{"name": "norms", "path": "norms", "part": "norm", "count": 128}],
        "caches": [],
    }


# ------------------------------------------------------------------------------------------------
# 1. "The transient layer peak under checkpointing is the max over groups of
#    A_layer(group); retained activations without it are the sum of count x A_layer(group);
#    weights and cache are sums."

TWO_GROUPS = [group(3), group(1, intermediate_size=1_024, num_kv_heads=4)]


def test_1_the_peak_is_the_max_over_groups(said: Said) -> None:
    run = by_hand(said("01-per-group"), TWO_GROUPS, grad_checkpoint=True)
    narrow, wide = (run.value_at("A_layer", g) for g in TWO_GROUPS)
    assert wide > narrow
    assert run.value("A_layer_peak") == wide


def test_1_retained_activations_are_the_sum_of_count_times_layer(said: Said) -> None:
    run = by_hand(said("01-per-group"), TWO_GROUPS)
    narrow, wide = (run.value_at("A_retained", g) for g in TWO_GROUPS)
    exact = 3 * narrow + wide + run.value("A_logits")
    assert run.value("activations") == math.floor(exact + Fraction(1, 2))


def test_1_weights_and_cache_are_sums(said: Said) -> None:
    groups = [group(3, [("q_proj", 64, 64)]), group(1, [("q_proj", 64, 32)], num_kv_heads=4)]
    run = by_hand(said("01-per-group"), groups, seq_len=10)
    assert run.value("linear_parameters") == 3 * 64 * 64 + 64 * 32
    assert run.value("keys_and_values") == 3 * (2 * 2 * 16 * 2 * 10) + 2 * 4 * 16 * 2 * 10 == 6_400


# ------------------------------------------------------------------------------------------------
# 2. "LoRA parameters = sum over groups of count x sum over modules whose name is in the
#    targets of r x (in + out); quantised parameters = the same over modules that the
#    chosen library version quantises; an empty match is an error with the names that
#    exist."

EXPERTS = [
    group(2, [("q_proj", 64, 64), ("up_proj", 64, 128)]),
    group(1, [("q_proj", 64, 64), ("experts_down", 512, 64)]),
]


def test_2_lora_over_the_modules_in_the_targets(said: Said) -> None:
    run = by_hand(said("02-modules"), EXPERTS, lora_r=8, lora_targets="q_proj,up_proj")
    assert run.value("lora_parameters") == 8 * (2 * (64 + 64 + 64 + 128) + 64 + 64) == 6_144


@pytest.mark.parametrize(
    ("version", "expected"),
    [("0.49.2", 2 * (64 * 64 + 64 * 128) + 64 * 64), ("0.50", 61_440), ("0.9", 28_672)],
)
def test_2_the_modules_that_the_chosen_version_quantises(
    said: Said, version: str, expected: int
) -> None:
    run = by_hand(said("02-modules"), EXPERTS, bitsandbytes=version)
    assert run.value("quantised_parameters") == expected


def test_2_an_empty_match_is_an_error_with_the_names_that_exist(said: Said) -> None:
    run = by_hand(said("02-modules"), EXPERTS, lora_targets="q_proj,o_proj")
    (refused,) = (c for c in find_caveats(run) if c.level == "refuse")
    assert "o_proj" in refused.says
    assert "The modules are q_proj, up_proj, experts_down; `all-linear`" in refused.says


# ------------------------------------------------------------------------------------------------
# 3. "Tables: bytes per dtype; beta by (optimizer, state dtype); kappa, lambda, c by base
#    storage and checkpointing; GGUF bits per weight by (type, tensor class). A table names
#    its axes, and a missing cell is an error, not zero."


@pytest.mark.parametrize(
    ("quant", "checkpointing", "copies"),
    [("none", True, "7.4"), ("none", False, "2.9"), ("nf4", False, "3.1"), ("int8", False, "9")],
)
def test_3_a_table_by_storage_and_checkpointing(
    said: Said, quant: str, checkpointing: bool, copies: str
) -> None:
    run = run_of(said("03-tables"), quant=quant, grad_checkpoint=checkpointing)
    assert run.value("kept_copies") == Fraction(copies)


@pytest.mark.parametrize(
    ("optimizer", "dtype", "width"),
    [("adamw", "fp32", 8), ("adamw", "bf16", 4), ("adam8bit", "fp32", 2), ("sgd", "fp32", 0)],
)
def test_3_beta_by_optimizer_and_state_dtype(
    said: Said, optimizer: str, dtype: str, width: int
) -> None:
    settings: Config = {"optimizer": optimizer, "lora_r": 8}
    if dtype != "fp32":
        settings["optimizer_dtype"] = dtype
    run = run_of(said("03-tables"), **settings)
    assert run.value("optimizer") == width * run.value("lora_parameters")


def test_3_bits_by_file_type_and_tensor_class(said: Said) -> None:
    groups = [group(2, [("q_proj", 64, 64), ("v_proj", 64, 32), ("down_proj", 128, 64)])]
    weights = 2 * (64 * 64 + 64 * 32 + 128 * 64)
    run = by_hand(said("03-tables"), groups, gguf="q8_0")
    assert run.value("gguf_bits") == Fraction("8.5") * weights / 8
    run = by_hand(said("03-tables"), groups, gguf="q4_0")
    bits = Fraction("4.5") * 64 * 64 + Fraction("5.5") * 64 * 32 + Fraction("6.5625") * 128 * 64
    assert run.value("gguf_bits") == 2 * bits / 8


def test_3_a_missing_cell_is_an_error_and_not_zero(said: Said) -> None:
    run = by_hand(said("03-tables"), [group(2, [("gate_proj", 64, 64)])], gguf="q4_0")
    with pytest.raises(FitcheckError) as caught:
        run.value("gguf_bits")
    assert "03-tables/gguf_bits.yaml:" in str(caught.value)
    assert "the table `bits` has no cell for gguf=q4_0, name=gate_proj" in str(caught.value)


# ------------------------------------------------------------------------------------------------
# 4. "Overhead uses F_layer if A_layer > A_logits else F_logits, with a fall-back where
#    F_layer was never measured; it applies only under checkpointing; otherwise the default
#    form."


@pytest.mark.parametrize(("config", "case"), [(LARGE, "logits-win"), (SMALL, "layer-wins")])
def test_4_which_branch_won(said: Said, config: Config, case: str) -> None:
    run = run_of(
        said("04-branch"), config, "t4", quant="nf4", grad_checkpoint=True, precision="fp16"
    )
    logits, layer = run.value("A_logits"), run.value("A_layer_peak")
    profile = run.profile("overhead")[0]
    assert profile.id == "t4-eager-nf4"
    base, on_logits, on_layer = (profile.value(n, 1) for n in ("base", "F_logits", "F_layer"))
    exact = base + (on_layer * logits if layer > logits else on_logits * layer)
    assert run.value("overhead") == math.floor(exact + Fraction(1, 2))
    assert run.chosen["overhead", 0].id == case


def test_4_a_fall_back_where_the_other_share_was_never_measured(said: Said) -> None:
    flags = {"quant": "int8", "flash_attn": True, "grad_checkpoint": True}
    run = run_of(said("04-branch"), {**SMALL, "vocab_size": 10}, "t4", **flags)
    assert run.chosen.get(("overhead", 0)) is None
    assert run.value("overhead") == 100 * MIB + Fraction("1.5") * run.value("A_logits")
    assert run.chosen["overhead", 0].id == "layer-wins"
    assert run.profile("overhead")[0].values["F_layer"].evidence == ("unmeasured",)  # type: ignore[union-attr]


def test_4_without_checkpointing_the_default_form(said: Said) -> None:
    run = run_of(said("04-branch"), gpu="t4", quant="int8", flash_attn=True)
    assert run.profile("overhead")[0].id == "default"
    run.value("overhead")
    assert run.chosen["overhead", 0].id == "share"


# ------------------------------------------------------------------------------------------------
# 5. "Key (card or class, kernel, storage, optimizer form, library versions) with
#    wildcards: the most specific file wins, ties are an error, the chosen one and the ones
#    passed over are shown."

ONE_CARD = {"gpu": "h100", "quant": "nf4", "optimizer": "adam8bit"}


@pytest.mark.parametrize(
    ("flags", "file", "workspace"),
    [
        ({"gpu": "4090", "flash_attn": True}, "default", 100),
        ({"gpu": "h100"}, "class", 200),
        ({"gpu": "a100-80", "flash_attn": True, "transformers": "4.57.1"}, "tiled", 300),
        ({"gpu": "a100-80", "flash_attn": True, "transformers": "5.0"}, "tiled-new", 400),
        ({"gpu": "a100-80", "flash_attn": True}, "tiled-new", 400),  # the default is a 5
        ({**ONE_CARD, "flash_attn": True, "transformers": "5.23.9"}, "one-card", 500),
        ({**ONE_CARD, "flash_attn": True, "transformers": "5.24"}, "tiled-new", 400),
        (
            {**ONE_CARD, "flash_attn": True, "transformers": "5.1", "quant": "none"},
            "tiled-new",
            400,
        ),
        ({**ONE_CARD, "flash_attn": False, "transformers": "5.1"}, "class", 200),
    ],
)
def test_5_the_most_specific_file_wins(
    said: Said, flags: Config, file: str, workspace: int
) -> None:
    run = run_of(said("05-best-match"), **flags)
    assert run.value("workspace") == workspace * MIB
    assert run.profile("kernel")[0].id == file


def test_5_those_passed_over_are_shown_with_the_reason(said: Said) -> None:
    run = run_of(said("05-best-match"), gpu="a100-80", flash_attn=True, transformers="4.57")
    chosen, passed = run.profile("kernel")
    assert chosen.id == "tiled"
    reasons = {p.profile.id: (p.key, str(p.found)) for p in passed}
    assert reasons == {
        "one-card": ("card", "a100-80"),
        "tiled-new": ("transformers", "4.57"),
        "class": ("", "None"),  # it fits too, and says less
        "default": ("", "None"),
    }


def test_5_a_tie_is_an_error(said: Said, flags_folder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "profiles/kernel"
    folder.mkdir(parents=True)
    text = (SENTENCES / "05-best-match/profiles/kernel/tiled.yaml").read_text(encoding="utf-8")
    text = text.replace("id: tiled", "id: quick").replace("flash_attn: true", "quant: nf4")
    (folder / "quick.yaml").write_text(text, encoding="utf-8")
    rules = Loader(roots(flags_folder, SENTENCES / "05-best-match", tmp_path)).load()
    assert run_of(rules, quant="nf4").value("workspace") == 300 * MIB
    with pytest.raises(RuleFileError) as caught:
        run_of(rules, quant="nf4", flash_attn=True, transformers="4.57").value("workspace")
    (problem,) = caught.value.problems
    assert (problem.code, problem.name) == ("F305", "profile-tie")
    assert "`tiled`" in problem.message
    assert "`quick`" in problem.message


# ------------------------------------------------------------------------------------------------
# 6. "The reserve holds only for an exact scope (fp16, nf4, no double quant, AdamW fp32, r
#    = 16, exactly q/k/v/o, checkpointing, 1,024 tokens); outside it another rule decides."

SCOPE: Config = {
    "gpu": "t4",
    "precision": "fp16",
    "quant": "nf4",
    "grad_checkpoint": True,
    "seq_len": 1_024,
    "lora_r": 16,
    "lora_targets": "q_proj,k_proj,v_proj,o_proj",
}


def test_6_inside_the_scope_the_reserve_decides(said: Said) -> None:
    report = report_of(said("01-per-group"), LARGE, **SCOPE)
    reserve = report["safe_total"] - report["total"]
    assert reserve == report.run.profile("reserve")[0].value("amount", 1) > 0
    assert report["recommendation_basis"] == "validated_reserve"


def test_6_the_order_of_the_targets_does_not_matter(said: Said) -> None:
    report = report_of(said("01-per-group"), LARGE, **{**SCOPE, "lora_targets": "o,v,k,q"})
    assert report["recommendation_basis"] == "validated_reserve"


@pytest.mark.parametrize(
    "change",
    [
        {"precision": "bf16"},
        {"quant": "int8"},
        {"double_quant": True},
        {"optimizer": "adam8bit"},
        {"optimizer_dtype": "bf16"},
        {"lora_r": 15},
        {"lora_targets": "q_proj,k_proj,v_proj"},
        {"lora_targets": "full"},
        {"grad_checkpoint": False},
        {"seq_len": 1_023},
        {"seq_len": 1_025},
        {"gpu": "a10"},
    ],
    ids=str,
)
def test_6_outside_the_exact_scope_another_rule_decides(said: Said, change: Config) -> None:
    report = report_of(said("01-per-group"), LARGE, **{**SCOPE, **change})
    assert report["safe_total"] == report["total"]
    assert report["recommendation_basis"] == "point_estimate_margin"


# ------------------------------------------------------------------------------------------------
# 7. "A component is live in some phases of load / forward / backward / step (prefill /
#    decode); the total is the largest phase plus what lies outside the phases; the
#    optimizer's transient lives only in `step`."


def test_7_the_transient_lives_only_in_the_step(said: Said) -> None:
    without = report_of(said("01-per-group"), LARGE, lora=False, batch_size=1, seq_len=8)
    report = report_of(said("07-phases"), LARGE, lora=False, batch_size=1, seq_len=8)
    copy = 4 * report["trainable_parameters"]
    assert report["step_transient"] == copy
    grown = {p: report.phases[p] - without.phases[p] for p in report.phases}
    always = 7 * MIB
    assert {p: n - always for p, n in grown.items()} == {
        "load": 0,
        "forward": 0,
        "backward": 0,
        "step": copy,
    }


def test_7_the_total_is_the_largest_phase_and_what_lies_outside(said: Said) -> None:
    report = report_of(said("07-phases"), LARGE, lora=False, batch_size=1, seq_len=8)
    in_step = ("weights", "gradients", "optimizer", "step_transient", "lora", "overhead")
    assert report["total"] == sum(report[c] for c in in_step) + report["lasting"]
    assert report["total"] == report.phases["step"] == max(report.phases.values())
    assert report.phases["load"] == report["weights"] + report["lora"] + 7 * MIB
    busy = report_of(said("07-phases"), LARGE, lora=False, batch_size=64)
    assert busy["total"] == busy.phases["backward"] > busy.phases["step"]


def test_7_phases_of_serving(said: Said) -> None:
    phases = report_of(said("07-serving-phases")).phases
    assert list(phases)[-2:] == ["prefill", "decode"]
    assert (phases["prefill"], phases["decode"]) == (4 * GIB, GIB)


# ------------------------------------------------------------------------------------------------
# 8. "MoE if i >= first_k_dense_replace and i % moe_layer_freq == 0; full attention every
#    sixth layer; a pattern string M-M*E; 1-based index lists; a list of per-layer dims;
#    counts by kind; a pattern longer than the layers."


def kinds(
    said: Said, field: str, config: Config, name: str = "08-layer-patterns"
) -> dict[Any, int]:
    """Layers by the value of a field."""
    found: dict[Any, int] = {}
    for item in model_of(said(name), config).lists["layer_groups"]:
        found[item[field]] = found.get(item[field], 0) + item["count"]
    return found


def test_8_experts_from_a_layer_on_and_in_every_second(said: Said) -> None:
    config = {
        "model_type": "patterned_moe",
        "hidden_size": 8,
        "num_hidden_layers": 10,
        "intermediate_size": 32,
        "moe_intermediate_size": 4,
        "n_routed_experts": 6,
        "first_k_dense_replace": 3,
        "moe_layer_freq": 2,
    }
    assert kinds(said, "moe", config) == {False: 7, True: 3}  # layers 4, 6 and 8
    dense, sparse = model_of(said("08-layer-patterns"), config).lists["layer_groups"]
    assert [m["name"] for m in dense["modules"]] == ["up_proj"]
    shown = ("name", "d_in", "d_out", "copies", "instances")
    assert [tuple(m[key] for key in shown) for m in sparse["modules"]] == [
        ("router", 8, 6, 1, 1),
        ("expert_up", 8, 4, 6, 6),
    ]


def test_8_full_attention_in_every_sixth_layer(said: Said) -> None:
    config = {"model_type": "every_nth", "num_hidden_layers": 26, "sliding_window_pattern": 6}
    assert kinds(said, "mixer", config) == {"sliding": 22, "full": 4}


def test_8_a_pattern_string_and_counts_by_kind(said: Said) -> None:
    config = {"model_type": "pattern_string", "layer_pattern": "M-M*EM-M*"}
    assert kinds(said, "kind", config) == {"state": 4, "mlp": 2, "attention": 2, "experts": 1}
    groups = model_of(said("08-layer-patterns"), config).lists["layer_groups"]
    assert {g["kind"]: len(g["modules"]) for g in groups}["attention"] == 1


def test_8_a_pattern_longer_than_the_layers_is_cut(said: Said) -> None:
    config = {"model_type": "pattern_string", "layer_pattern": "M-M*E", "num_hidden_layers": 3}
    assert kinds(said, "kind", config) == {"state": 2, "mlp": 1}


def test_8_a_pattern_shorter_than_the_layers_is_an_error(said: Said) -> None:
    config = {"model_type": "pattern_string", "layer_pattern": "M-", "num_hidden_layers": 3}
    with pytest.raises(InputProblem, match="`pattern` has 2 entries and no entry 2"):
        model_of(said("08-layer-patterns"), config)


def test_8_a_pattern_that_repeats(said: Said) -> None:
    config = {"model_type": "repeated_pattern", "layer_pattern": "LLLG", "num_hidden_layers": 10}
    assert kinds(said, "kind", config) == {"L": 8, "G": 2}


def test_8_an_index_list_that_counts_from_one(said: Said) -> None:
    config = {"model_type": "one_based", "num_hidden_layers": 8, "full_attn_layers": [1, 4, 8]}
    assert kinds(said, "mixer", config) == {"full": 3, "kda": 5}
    with pytest.raises(InputProblem, match="names a layer outside 1 to 8"):
        model_of(said("08-layer-patterns"), {**config, "full_attn_layers": [4, 9]})


def test_8_a_list_of_per_layer_dims(said: Said) -> None:
    config = {"model_type": "per_layer_dims", "num_hidden_layers": 4, "hidden_size": 8}
    widths = {**config, "ffn_widths": [16, 32, 16, 64]}
    assert kinds(said, "intermediate_size", widths) == {16: 2, 32: 1, 64: 1}
    groups = model_of(said("08-layer-patterns"), widths).lists["layer_groups"]
    assert sum(g["count"] * m["d_in"] * m["d_out"] for g in groups for m in g["modules"]) == 1_024
    wrong: Any
    for wrong in ([16, 32], [16, 32, 16, 64, 8]):
        with pytest.raises(InputProblem, match="'ffn_widths' needs 4 entries"):
            model_of(said("08-layer-patterns"), {**config, "ffn_widths": wrong})
    for wrong in ([16, None, 16, 64], [16, "32", 16, 64], [16, 32.5, 16, 64], 16, [True] * 4):
        with pytest.raises(InputProblem, match="'ffn_widths' is"):
            model_of(said("08-layer-patterns"), {**config, "ffn_widths": wrong})


# ------------------------------------------------------------------------------------------------
# 9. "`q_lora_rank: null` differs from absent; head_dim falls back to hidden / heads only
#    when absent, and only then must it divide; tie flag by model type; d_ff rounded up to
#    a multiple."

NULLS: Config = {"model_type": "absent_null", "hidden_size": 100, "num_attention_heads": 4}


def fields_9(said: Said, **changes: Any) -> Mapping[str, Any]:
    return model_of(said("09-absent-and-null"), {**NULLS, **changes}).fields


def test_9_null_differs_from_absent(said: Said) -> None:
    rules = said("09-absent-and-null")
    given, null, absent = (
        model_of(rules, {**NULLS, **change})
        for change in ({"q_lora_rank": 48}, {"q_lora_rank": None}, {})
    )
    assert [m.fields["query_rank"] for m in (given, null, absent)] == [48, 0, 1_536]
    assert [
        [module["name"] for module in m.lists["layer_groups"][0]["modules"]]
        for m in (given, null, absent)
    ] == [["q_a_proj"], ["q_proj"], ["q_a_proj"]]
    assert given.origin["query_rank"] == "config.json, q_lora_rank"
    assert null.origin["query_rank"] == "config.json, q_lora_rank is null"
    assert absent.origin["query_rank"] == "1536 (config.json has no q_lora_rank)"


def test_9_head_dim_falls_back_only_when_absent_and_must_divide_only_then(said: Said) -> None:
    assert fields_9(said)["head_dim"] == 25
    assert fields_9(said, head_dim=128, num_attention_heads=3)["head_dim"] == 128
    with pytest.raises(InputProblem, match=r"hidden_size / num_attention_heads = 33\.3333"):
        fields_9(said, num_attention_heads=3)


def test_9_the_tie_flag_by_model_type(said: Said) -> None:
    assert fields_9(said)["tie_word_embeddings"] is False
    assert fields_9(said, model_type="absent_null_tied")["tie_word_embeddings"] is True
    assert (
        fields_9(said, model_type="absent_null_tied", tie_word_embeddings=False)[
            "tie_word_embeddings"
        ]
        is False
    )


@pytest.mark.parametrize(("multiple", "width"), [(None, 267), (1, 267), (32, 288), (256, 512)])
def test_9_the_mlp_width_is_rounded_up_to_a_multiple(
    said: Said, multiple: int | None, width: int
) -> None:
    assert fields_9(said, multiple_of=multiple)["intermediate_size"] == width
    assert fields_9(said, multiple_of=multiple, intermediate_size=7)["intermediate_size"] == 7


# ------------------------------------------------------------------------------------------------
# 10. "ceil(C / block) blocks; padded to 256; block scales ceil(n / 64); shards ceil(n /
#     ranks) per tensor; allocator granularity."


@pytest.mark.parametrize(
    ("tokens", "blocks"), [(1, 16), (255, 16), (256, 16), (257, 32), (4_096, 256), (4_097, 272)]
)
def test_10_blocks_of_a_padded_context(said: Said, tokens: int, blocks: int) -> None:
    assert run_of(said("10-rounding"), context=tokens).value("padded_blocks") == blocks


@pytest.mark.parametrize("ranks", [1, 2, 3, 7, 64, 4_096])
def test_10_shards_scales_and_the_allocator_round_up_one_after_the_other(
    said: Said, ranks: int
) -> None:
    modules = [("q_proj", 100, 30), ("up_proj", 64, 129), ("norm", 1, 1)]
    run = by_hand(said("10-rounding"), [group(3, modules)], ranks=ranks)
    expected = 0
    for _, d_in, d_out in modules:
        share = -(-d_in * d_out // ranks)
        scales = -(-d_in * d_out // (ranks * 64))
        expected += 3 * 512 * math.ceil((Fraction(share, 2) + 4 * scales) / 512)
    assert run.value("rounded_bytes") == expected


# ------------------------------------------------------------------------------------------------
# 11. "min(T, W - 1); min(W - 1 + batched_tokens, max_len) plus one block; fixed state per
#     sequence; owners only; replicated over tensor-parallel ranks, divided over context-
#     parallel ones." ---

BOUNDED: Config = {
    "model_type": "bounded",
    "hidden_size": 64,
    "num_hidden_layers": 8,  # 0 full, 1 window, 2 full, 3 state, and again
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 16,
    "intermediate_size": 128,
    "vocab_size": 1_000,
    "sliding_window": 128,
    "state_elements": 1_000,
}


def cache_11(
    tokens: int, batched: int, tp: int = 1, cp: int = 1, *, full: int = 4, window: int = 2
) -> int:
    """The cache by hand, with two layers that keep a state."""
    token = 2 * max(1, -(-4 // tp)) * 16 * 2
    rows = -(-min(127 + batched, tokens) // 16) + 1
    blocks = math.ceil(math.ceil(tokens / cp) / 16)
    return full * token * 16 * blocks + window * token * 16 * rows + 2 * 4_000


@pytest.mark.parametrize(
    ("tokens", "batched", "tp", "cp"),
    [
        (4_096, 512, 1, 1),
        (300, 512, 1, 1),  # the window is bounded by the request
        (4_097, 1, 2, 1),
        (4_096, 512, 4, 1),
        (4_096, 512, 16, 1),  # four heads are repeated on sixteen ranks
        (4_096, 512, 1, 3),
    ],
)
def test_11_bounded_caches(said: Said, tokens: int, batched: int, tp: int, cp: int) -> None:
    flags: Config = {"context": tokens, "batched_tokens": batched}
    flags |= {"tensor_parallel": tp, "context_parallel": cp}
    run = run_of(said("11-bounded-caches"), BOUNDED, **flags)
    assert run.value("request_cache_bytes") == cache_11(tokens, batched, tp, cp)


def test_11_only_layers_that_own_a_cache_count(said: Said) -> None:
    run = run_of(said("11-bounded-caches"), {**BOUNDED, "layers_without_cache": 3}, context=4_096)
    # The last three layers (window, full, state) read the caches of earlier ones.
    assert run.value("request_cache_bytes") == cache_11(4_096, 2_048, full=3, window=1) - 4_000


def test_11_a_state_does_not_grow_with_the_request(said: Said) -> None:
    rules = said("11-bounded-caches")
    short, long = (run_of(rules, BOUNDED, context=n, batched_tokens=1) for n in (16, 65_536))
    for run in (short, long):
        state = next(g for g in run.items("layer_groups") if g["mixer"] == "mamba2")
        assert run.value_at("layer_cache", state) == 4_000


# ------------------------------------------------------------------------------------------------
# 12. "All groups padded to whole groups of equal size sharing the largest page: a max over
#     groups of a ceil of a product, then a floor division of the pool."


def test_12_a_hybrid_manager(said: Said) -> None:
    config = {**BOUNDED, "model_type": "two_kinds", "num_hidden_layers": 51, "sliding_layers": 43}
    run = run_of(said("12-hybrid-manager"), config, context=1_000, concurrency=3)
    assert run.value("group_size") == 8
    page = max(2 * 4 * 16 * 2 * 16, 2 * 16 * 16 * 2 * 16)
    assert run.value("largest_page") == page == 16_384
    blocks = math.ceil(43 / 8) * (math.ceil(128 / 16) + 1) + 1 * math.ceil(1_000 / 16)
    assert run.value("request_blocks") == blocks == 117
    assert run.value("requests_at_once") == 4 * GIB // (8 * page) // blocks == 280
    assert run.value("largest_demand") == math.ceil(3 * 1_000 * 43 / (16 * 8)) == 1_008


# ------------------------------------------------------------------------------------------------
# 13. "ZeRO stages divide different components; gathered windows hold the two largest
#     groups; in pipelines a stage holds a slice of the layers and p - s micro-batches in
#     flight; the answer is the max over stages, and the worst rank is named."

TWO_WIDTHS: Config = {
    "model_type": "two_widths",
    "hidden_size": 10,
    "num_hidden_layers": 7,
    "narrow_layers": 5,
}
NARROW, WIDE = 100, 800  # parameters of a layer


@pytest.mark.parametrize(
    ("zero", "expected"),
    [
        ("none", lambda n, shard: 16 * n),
        ("optimizer", lambda n, shard: 4 * n + 12 * shard),
        ("gradients", lambda n, shard: 2 * n + 14 * shard),
        ("parameters", lambda n, shard: 16 * shard + 2 * 2 * WIDE),
    ],
)
def test_13_zero_stages_divide_different_components(
    said: Said, zero: str, expected: Callable[[int, int], int]
) -> None:
    run = run_of(said("13-ranks-and-stages"), TWO_WIDTHS, zero=zero, ranks=3)
    shard = 5 * 34 + 2 * (134 + 134)  # 100 and 400 over 3, each matrix rounded up by itself
    assert run.value("shard_parameters") == shard
    assert run.value("rank_bytes") == expected(5 * NARROW + 2 * WIDE, shard)


def test_13_the_gathered_window_holds_the_two_largest(said: Said) -> None:
    rules = said("13-ranks-and-stages")
    for narrow, expected in ((5, 2 * WIDE), (6, WIDE + NARROW), (1, 2 * WIDE)):
        run = run_of(rules, {**TWO_WIDTHS, "narrow_layers": narrow})
        assert run.value("gathered_parameters") == expected


@pytest.mark.parametrize("stages", [1, 2, 3, 7])
@pytest.mark.parametrize("micro", [1, 8])
def test_13_a_stage_holds_a_slice_and_what_is_in_flight(
    said: Said, stages: int, micro: int
) -> None:
    run = run_of(said("13-ranks-and-stages"), TWO_WIDTHS, pipeline=stages, micro_batches=micro)
    layers = [NARROW] * 5 + [WIDE] * 2
    size = -(-len(layers) // stages)
    expected = []
    for stage in range(stages):
        flight = min(micro, stages - stage)
        mine = layers[stage * size : (stage + 1) * size]
        expected.append(sum(2 * n + 100 * flight for n in mine))
    assert [run.value_at("stage_bytes", s) for s in run.items("stages")] == expected
    assert run.value("worst_stage_bytes") == max(expected)
    assert run.value("worst_stage") == expected.index(max(expected))


def test_13_the_worst_stage_is_named(said: Said) -> None:
    rules = said("13-ranks-and-stages")
    run = run_of(rules, TWO_WIDTHS, pipeline=3)
    assert run.value("worst_stage") == 1
    case = run.chosen["worst_stage", 0]
    from fitcheck.engine.report import sentence

    assert sentence(run, rules.formula("worst_stage"), case.says).endswith("stage 1")


# ------------------------------------------------------------------------------------------------
# 14. "`transformers >= 5`, `bitsandbytes < 0.50`, `vllm 0.9..0.12` as conditions; an
#     unknown version refuses or widens the band."


@pytest.mark.parametrize(
    ("version", "case"),
    [
        ("4.57.1", "expanded"),
        ("4.9", "expanded"),
        ("5", "latent"),
        ("5.0.0", "latent"),
        ("10.1", "latent"),
        ("5.0.0rc1", "expanded"),
        ("5.0.0.post1", "latent"),
        ("5.0.0+cu128", "latent"),
        ("unknown", "expanded"),
    ],
)
def test_14_a_version_as_condition(said: Said, version: str, case: str) -> None:
    run = run_of(said("14-versions"), transformers=version)
    expected = {"latent": 61 * 576 * 2, "expanded": 61 * 128 * 320 * 2}
    assert run.value("latent_cache") == expected[case]
    assert run.chosen["latent_cache", 0].id == case


@pytest.mark.parametrize("version", ["0.9", "0.9.1", "0.10", "0.12.4", "0.12.9.post2"])
def test_14_inside_a_range_of_versions(said: Said, version: str) -> None:
    report_of(said("14-versions"), vllm=version)


@pytest.mark.parametrize("version", ["0.8.5", "0.13", "1.0", "0.9.0rc1", "unknown"])
def test_14_outside_a_range_an_unread_or_unknown_version_refuses(said: Said, version: str) -> None:
    with pytest.raises(Refusal, match=f"vLLM {version} was never read; 0.9 to 0.12 were."):
        report_of(said("14-versions"), vllm=version)


@pytest.mark.parametrize(
    ("version", "low", "high"),
    [("4.57.1", 90, 110), ("5.1", 190, 210), ("5.24", 50, 400), ("unknown", 50, 400)],
)
def test_14_an_unknown_version_widens_the_band(
    said: Said, version: str, low: int, high: int
) -> None:
    run = run_of(said("14-versions"), transformers=version)
    assert [run.at_band(end).value("library_buffers") for end in (0, 2)] == [low * MIB, high * MIB]


def test_14_what_is_no_version(said: Said) -> None:
    for wrong in ("five", "5.x", "", "5..1", ">=5", "5 5"):
        with pytest.raises(InputProblem, match="is not a version"):
            run_of(said("14-versions"), transformers=wrong)


# ------------------------------------------------------------------------------------------------
# 15. "A constant with low, value and high; a limit that bounds the error in one direction;
#     the report carries low, expected, high and the grade of the weakest part that
#     matters."


def test_15_a_band_is_carried_to_the_total(said: Said) -> None:
    plain, banded = report_of(said("01-per-group")), report_of(said("15-bands"))
    grown = [banded[n] - plain[n] for n in ("total_low", "total", "total_high")]
    assert grown == [100 * MIB, 150 * MIB, math.ceil(Fraction("250.3") * MIB)]


def test_15_bands_add_up(said: Said) -> None:
    flags: Config = {"gpu": "t4", "quant": "nf4", "grad_checkpoint": True, "precision": "fp16"}
    plain, banded = (report_of(said(n), LARGE, **flags) for n in ("01-per-group", "15-bands"))
    assert plain["total_low"] < plain["total"] < plain["total_high"]
    assert banded["total_low"] == plain["total_low"] + 100 * MIB
    assert banded["total_high"] == plain["total_high"] + math.ceil(Fraction("250.3") * MIB)


def test_15_a_limit_bounds_the_error_in_one_direction(said: Said) -> None:
    (found,) = (c for c in report_of(said("15-bands")).caveats if c.formula == "context_memory")
    assert (found.level, found.direction) == ("note", "under")
    assert found.says == "with peers the context grows, by at most 300 MiB here"


def test_15_the_grade_is_that_of_the_weakest_part(said: Said) -> None:
    flags: Config = {**SCOPE, "batch_size": 1}
    plain, banded = (report_of(said(n), LARGE, **flags) for n in ("01-per-group", "15-bands"))
    assert plain.grade("lora").grade == banded.grade("lora").grade == "measured"
    assert banded.grade("context_memory").grade == "assumed"
    assert plain.grade("total").grade == "derived"
    assert banded.grade("total").grade == "assumed"


# ------------------------------------------------------------------------------------------------
# 16. "`A quantised base under full fine-tuning is not modelled`; `nf4 layers above 163.8
#     MiB with recycled buffers on this version`: conditions over derived quantities, with
#     the message beside them and the direction of the error."


def test_16_refused_before_anything_is_computed(said: Said) -> None:
    with pytest.raises(InputProblem, match="--quant nf4 with --no-lora is not modelled"):
        run_of(said("16-refuse-and-warn"), quant="nf4", lora=False)


def test_16_refused_by_a_limit(said: Said) -> None:
    start = prepared(said("16-refuse-and-warn"), quant="nf4")
    with pytest.raises(
        Refusal, match=r"^A quantized base under full fine-tuning is not modelled\.$"
    ):
        build_report(start.changed(lora=False))


LIMIT = Fraction("163.8") * MIB


@pytest.mark.parametrize(
    ("columns", "flags", "warns"),
    [
        (math.floor(2 * LIMIT / 1_024), {"quant": "nf4"}, False),
        (math.floor(2 * LIMIT / 1_024) + 1, {"quant": "nf4"}, True),
        (math.floor(2 * LIMIT / 1_024) + 1, {"quant": "nf4", "bitsandbytes": "0.50"}, False),
        (math.floor(2 * LIMIT / 1_024) + 1, {"quant": "int8"}, False),
    ],
)
def test_16_a_warning_over_a_derived_quantity(
    said: Said, columns: int, flags: Config, warns: bool
) -> None:
    groups = [group(2, [("q_proj", 8, 8)]), group(1, [("up_proj", 1_024, columns)])]
    run = by_hand(said("16-refuse-and-warn"), groups, **flags)
    found = [c for c in find_caveats(run) if c.id == "recycled-buffers"]
    assert bool(found) == warns
    if warns:
        assert (found[0].level, found[0].direction) == ("warn", "under")
        assert "above the 164 MiB up to which bitsandbytes 0.48.2 recycles" in found[0].says


# ------------------------------------------------------------------------------------------------
# 17. "The largest integer b, s, r, concurrency or context that fits; the total is affine in
#     b (provable), piecewise quadratic in s, monotone in all: exact search with a
#     certificate (fits at n, does not at n + 1)."

SEARCHES = [
    ("max_batch_size", "batch_size", "total"),
    ("safe_max_batch_size", "batch_size", "safe_total"),
    ("max_seq_len", "seq_len", "total"),
    ("max_lora_r", "lora_r", "total"),
    ("max_concurrency", "concurrency", "serving_bytes"),
    ("longest_context", "context", "serving_bytes"),
]


def fits(rules: Rules, config: Config, flags: Config, needed: str) -> bool:
    """From nothing: no value of another run is used."""
    run = run_of(rules, config, **flags)
    return bool(run.value(needed) <= run.value("usable"))


@pytest.mark.parametrize(("search", "flag", "needed"), SEARCHES)
@pytest.mark.parametrize(
    "flags",
    [
        {"gpu": "h100"},
        {"gpu": "4090", "quant": "nf4", "grad_checkpoint": True},
        {"gpu": "t4", "quant": "nf4", "grad_checkpoint": True, "precision": "fp16", "seq_len": 256},
        {"gpu": "b200", "flash_attn": True, "lora_targets": "full", "concurrency": 9},
        {"vram_mib": 40_000, "optimizer": "sgd-momentum", "context": 33, "seq_len": 77},
    ],
    ids=str,
)
def test_17_the_certificate_holds(
    said: Said, search: str, flag: str, needed: str, flags: Config
) -> None:
    rules = said("17-inverse")
    run = run_of(rules, LARGE, **flags)
    largest = run.value(search)
    assert largest >= 1
    assert run.searches[search].value == largest
    assert not run.searches[search].capped
    assert fits(rules, LARGE, {**flags, flag: largest}, needed)
    assert not fits(rules, LARGE, {**flags, flag: largest + 1}, needed)


@pytest.mark.parametrize(("search", "flag", "needed"), SEARCHES)
@pytest.mark.parametrize("vram", [544, 550, 580])
def test_17_as_found_by_trying_every_value(
    said: Said, search: str, flag: str, needed: str, vram: int
) -> None:
    rules = said("17-inverse")
    config = {**SMALL, "vocab_size": 32_000}
    flags: Config = {"vram_mib": vram, "seq_len": 16, "context": 50_000}
    if needed == "serving_bytes":
        flags["concurrency"] = 30_000
    run = run_of(rules, config, **flags)
    largest, step = run.value(search), 1
    while step <= 100 and fits(rules, config, {**flags, flag: step}, needed):
        step += 1
    assert min(largest, 100) == step - 1


def test_17_nothing_fits_and_everything_fits(said: Said) -> None:
    rules = said("17-inverse")
    assert run_of(rules, LARGE, gpu="t4").value("max_batch_size") == 0
    run = run_of(rules, gpu="b200")
    assert run.value("max_concurrency") == 65_536 == rules.flags.flags["concurrency"].high
    assert run.searches["max_concurrency"].capped


FORMS: list[Config] = [{}, {"grad_checkpoint": True}, {"quant": "nf4", "flash_attn": True}]


def totals(said: Said, flag: str, values: Sequence[int], flags: Config) -> list[int]:
    return [run_of(said("17-inverse"), **{**flags, flag: v}).value("total") for v in values]


def differences(values: Sequence[int]) -> list[int]:
    return [b - a for a, b in itertools.pairwise(values)]


ROUNDING = 8  # bytes: six components, each rounded to a whole byte


@pytest.mark.parametrize("flags", FORMS, ids=str)
def test_17_the_total_is_affine_in_the_batch(said: Said, flags: Config) -> None:
    second = differences(differences(totals(said, "batch_size", range(1, 9), flags)))
    assert max(map(abs, second)) <= ROUNDING


@pytest.mark.parametrize("flags", FORMS, ids=str)
def test_17_the_total_is_quadratic_in_the_length_within_one_branch(
    said: Said, flags: Config
) -> None:
    values = totals(said, "seq_len", range(2_000, 2_800, 100), flags)
    third = differences(differences(differences(values)))
    assert max(map(abs, third)) <= 2 * ROUNDING


@pytest.mark.parametrize("flag", ["batch_size", "seq_len", "lora_r"])
@pytest.mark.parametrize("flags", FORMS, ids=str)
def test_17_the_total_is_monotone(said: Said, flag: str, flags: Config) -> None:
    values = totals(said, flag, [1, 2, 3, 5, 8, 64, 65, 1_000, 4_096], flags)
    assert min(differences(values)) > 0


# ------------------------------------------------------------------------------------------------
# 18. "A hint is the difference of two full evaluations; an advisor is a million of them
#     over axes; a plan is a search over layouts."


@pytest.mark.parametrize(
    "flags",
    [{"batch_size": 4}, {"optimizer": "sgd"}, {"quant": "nf4", "grad_checkpoint": True}],
    ids=str,
)
@pytest.mark.parametrize("name", ["01-per-group", "18-one-flag"])
def test_18_a_hint_is_the_difference_of_two_full_evaluations(
    said: Said, name: str, flags: Config
) -> None:
    rules = said(name)
    start = prepared(rules, LARGE, transformers="4.57.1", **flags)
    hints = price_hints(start)
    assert hints
    for hint in hints:
        known = rules.flags.flags
        change = {n: rules.flags.check(known[n], value) for n, value in hint.change.items()}
        after = build_report(start.changed(**change))
        difference = build_report(start)["total"] - after["total"]
        assert hint.saved == difference, hint.label


def test_18_the_changes_that_a_file_of_hints_states(said: Said) -> None:
    rules = said("18-one-flag")
    hints = price_hints(prepared(rules, LARGE, batch_size=6, transformers="4.57.1"))
    assert {h.label: {n: str(v) for n, v in h.change.items()} for h in hints} == {
        "adamw -> adam8bit": {"optimizer": "adam8bit"},
        "transformers 5.10": {"transformers": "5.10"},
        "half the batch": {"batch_size": "3", "grad_accum": "2"},
    }
    assert {h.label: h.saved for h in hints}["transformers 5.10"] == 200 * MIB
    hints = price_hints(prepared(rules, LARGE, transformers="5.9"))
    assert [h.label for h in hints] == ["adamw -> adam8bit"]


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("quant", "nf4"),
        ("optimizer", "sgd"),
        ("seq_len", 99),
        ("flash_attn", True),
        ("lora", False),
    ],
)
def test_18_a_changed_run_equals_a_fresh_one(said: Said, flag: str, value: Any) -> None:
    rules = said("18-one-flag")
    run = run_of(rules, LARGE, gpu="t4", grad_checkpoint=True)
    names = [n for n, f in rules.formulas.items() if f.per is None and f.search is None]
    for name in names:
        run.value(name)
    changed = run.with_flag(flag, value)
    fresh = run_of(rules, LARGE, gpu="t4", grad_checkpoint=True, **{flag: value})
    assert {n: changed.value(n) for n in names} == {n: fresh.value(n) for n in names}


def test_18_a_plan_is_a_search_over_layouts(said: Said) -> None:
    rules = said("13-ranks-and-stages")
    layouts = {
        (stages, micro): run_of(rules, TWO_WIDTHS, pipeline=stages, micro_batches=micro).value(
            "worst_stage_bytes"
        )
        for stages in (1, 2, 4, 7)
        for micro in (1, 4)
    }
    assert min(layouts, key=lambda layout: layouts[layout]) == (7, 1)
    assert layouts[7, 1] == 2 * WIDE + 100
