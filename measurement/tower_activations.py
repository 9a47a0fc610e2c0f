"""What one layer of a vision or audio tower keeps, read from real tensors on the CPU.

    python -m fitcheck.measurement.tower_activations clip pixtral > rows.jsonl

Builds the tower class of transformers with few layers and random weights in bf16, runs it forward
and backward, and follows every storage from birth to death. One JSON row a tower and shape; every
figure is in 16-bit elements a position of one image or clip. Sizes of tensors do not depend on the
device; what kernels take as scratch is not seen.
"""

from __future__ import annotations

import json
import sys
import weakref
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any

import torch
import transformers
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

SHAPES = ((128, 256), (128, 512), (256, 512))  # width, MLP width
HEADS = 4
SIDE, FRAMES = 16, 1024  # patches along each side; frames of audio, four to a position
LAYERS = (2, 4)  # the difference is two layers; what stands around them drops out
ADAPTED = ("q_proj", "k_proj", "v_proj", "o_proj", "out_proj", "projection_layer", "qkv", "proj")
Inputs = dict[str, Any]
Built = tuple[Any, Any, Inputs, int]  # class, config, inputs, positions


class Live(TorchDispatchMode):  # type: ignore[misc, unused-ignore]
    """Bytes of all storages that operations have made and nothing has dropped yet."""

    def __init__(self, known: list[torch.Tensor]) -> None:
        super().__init__()
        self.now = self.peak = 0
        self.seen: dict[int, Any] = {t.untyped_storage()._cdata: None for t in known}

    def follow(self, tensor: torch.Tensor) -> None:
        storage = tensor.untyped_storage()
        key, size = storage._cdata, storage.nbytes()
        if key in self.seen:
            return
        self.now += size
        self.peak = max(self.peak, self.now)

        def dropped(_: Any) -> None:
            self.seen.pop(key, None)
            self.now -= size

        self.seen[key] = weakref.ref(storage, dropped)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, torch.Tensor):
                self.follow(leaf)
        return result


class Adapter(nn.Module):  # type: ignore[misc, unused-ignore]
    """A linear module with a low-rank one beside it."""

    def __init__(self, base: nn.Linear) -> None:
        super().__init__()
        self.base, self.in_features = base, base.in_features
        self.down = nn.Linear(base.in_features, 4, bias=False, dtype=torch.bfloat16)
        self.up = nn.Linear(4, base.out_features, bias=False, dtype=torch.bfloat16)

    @property
    def weight(self) -> Any:
        return self.base.weight

    def forward(self, x: torch.Tensor) -> Any:
        return self.base(x) + self.up(self.down(x))


def half(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.bfloat16)


def classes(family: str, config: str, model: str) -> tuple[Any, Any]:
    """A config class and a model class of a family."""
    configs = import_module(f"transformers.models.{family}.configuration_{family}")
    models = import_module(f"transformers.models.{family}.modeling_{family}")
    return getattr(configs, config), getattr(models, model)


def sizes(layers: int, h: int, f: int) -> dict[str, int]:
    return {
        "hidden_size": h,
        "intermediate_size": f,
        "num_hidden_layers": layers,
        "num_attention_heads": HEADS,
    }


def patched(
    family: str, config: str, model: str, extra: Mapping[str, Any], own: int = 0
) -> Callable[..., Built]:
    """A tower that takes square images; `own` positions of an image are no patches."""

    def build(layers: int, h: int, f: int) -> Built:
        make, cls = classes(family, config, model)
        pixels = 14 * SIDE
        made = make(**sizes(layers, h, f), image_size=pixels, patch_size=14, **extra)
        inputs: Inputs = {"pixel_values": half(1, 3, pixels, pixels)}
        if family == "pixtral":
            inputs["image_sizes"] = torch.tensor([[pixels, pixels]])
        return cls, made, inputs, SIDE**2 + own

    return build


def packed(
    family: str, config: str, model: str, patch: int, extra: Mapping[str, Any]
) -> Callable[..., Built]:
    """A tower that takes the patches of all images in one row."""

    def build(layers: int, h: int, f: int) -> Built:
        make, cls = classes(family, config, model)
        inputs: Inputs = {"grid_thw": torch.tensor([[1, SIDE, SIDE]])}
        if family == "kimi_k25":
            inputs["pixel_values"] = half(SIDE**2, 3, patch, patch)
            return cls, make(**sizes(layers, h, f)), inputs, SIDE**2
        given = {"depth": layers, "num_heads": HEADS, "hidden_size": h, "intermediate_size": f}
        if family == "qwen2_vl":
            del given["intermediate_size"]
        given |= {n: v(layers, h, f) if callable(v) else v for n, v in extra.items()}
        inputs["hidden_states"] = half(SIDE**2, 6 * patch**2)
        return cls, make(**given), inputs, SIDE**2

    return build


def gemma4_vision(layers: int, h: int, f: int) -> Built:
    make, cls = classes("gemma4", "Gemma4VisionConfig", "Gemma4VisionModel")
    made = make(**sizes(layers, h, f), num_key_value_heads=HEADS, head_dim=h // HEADS)
    side = torch.arange(18)  # a multiple of the pooling
    places = torch.stack(torch.meshgrid(side, side, indexing="xy"), -1).reshape(1, -1, 2)
    inputs = {"pixel_values": half(1, 18**2, 768), "pixel_position_ids": places}
    return cls, made, inputs, 18**2


def gemma4_audio(layers: int, h: int, f: int) -> Built:
    make, cls = classes("gemma4", "Gemma4AudioConfig", "Gemma4AudioModel")
    made = make(hidden_size=h, num_hidden_layers=layers, num_attention_heads=HEADS)
    there = torch.ones(1, FRAMES, dtype=torch.bool)
    return cls, made, {"input_features": half(1, FRAMES, 128), "attention_mask": there}, FRAMES // 4


def gemma3n_audio(layers: int, h: int, f: int) -> Built:
    make, cls = classes("gemma3n", "Gemma3nAudioConfig", "Gemma3nAudioEncoder")
    made = make(hidden_size=h, conf_num_hidden_layers=layers, conf_num_attention_heads=HEADS)
    absent = torch.zeros(1, FRAMES, dtype=torch.bool)
    return cls, made, {"audio_mel": half(1, FRAMES, 128), "audio_mel_mask": absent}, FRAMES // 4


def voxtral(layers: int, h: int, f: int) -> Built:
    make, cls = classes("voxtral", "VoxtralEncoderConfig", "VoxtralEncoder")
    made = make(**sizes(layers, h, f), max_source_positions=SIDE**2)
    return cls, made, {"input_features": half(1, 128, 2 * SIDE**2)}, SIDE**2


def mllama(layers: int, h: int, f: int) -> Built:
    make, cls = classes("mllama", "MllamaVisionConfig", "MllamaVisionModel")
    counts = {"num_hidden_layers": layers, "num_global_layers": 2, "attention_heads": HEADS}
    made = make(
        hidden_size=h,
        intermediate_size=f,
        image_size=112,
        intermediate_layers_indices=[0],
        **counts,
    )
    inputs = {
        "pixel_values": half(1, 1, 4, 3, 112, 112),
        "aspect_ratio_ids": torch.full((1, 1), 6),
        "aspect_ratio_mask": torch.ones(1, 1, 4, dtype=torch.long),
    }
    return cls, made, inputs, 4 * 72  # 65 positions a tile, filled up to a multiple of eight


def siglip2(layers: int, h: int, f: int) -> Built:
    make, cls = classes("siglip2", "Siglip2VisionConfig", "Siglip2VisionModel")
    made = make(**sizes(layers, h, f), num_patches=SIDE**2, vision_use_head=False)
    inputs = {
        "pixel_values": half(1, SIDE**2, 768),
        "pixel_attention_mask": torch.ones(1, SIDE**2, dtype=torch.long),
        "spatial_shapes": torch.tensor([[SIDE, SIDE]]),
    }
    return cls, made, inputs, SIDE**2


WIDTH = {"out_hidden_size": lambda n, h, f: h}
QWEN2 = ("Qwen2VLVisionConfig", "Qwen2VisionTransformerPretrainedModel", 14)
QWEN25 = ("Qwen2_5_VLVisionConfig", "Qwen2_5_VisionTransformerPretrainedModel", 14)
QWEN3 = ("Qwen3VLVisionConfig", "Qwen3VLVisionModel", 16)
QWEN35 = ("Qwen3_5VisionConfig", "Qwen3_5VisionModel", 16)
INTERN = ("internvl", "InternVLVisionConfig", "InternVLVisionModel")
SHUFFLED = {"projector_input_dim": 64, "projector_output_dim": 64, "vision_output_dim": 64}
BARE = {"vision_use_head": False}
NARROW = {"embed_dim": lambda n, h, f: h, "mlp_ratio": lambda n, h, f: f // h}
EVERY = {**WIDTH, "fullatt_block_indexes": lambda n, h, f: list(range(n))}
TOWERS: Mapping[str, Callable[..., Built]] = {
    "clip": patched("clip", "CLIPVisionConfig", "CLIPVisionModel", {}, 1),
    "siglip": patched("siglip", "SiglipVisionConfig", "SiglipVisionModel", BARE),
    "siglip2": siglip2,
    "idefics3": patched("idefics3", "Idefics3VisionConfig", "Idefics3VisionTransformer", {}),
    "smolvlm": patched("smolvlm", "SmolVLMVisionConfig", "SmolVLMVisionTransformer", {}),
    "internvl": patched(*INTERN, {}, 1),
    "internvl_qk_norm": patched(*INTERN, {"use_qk_norm": True}, 1),
    "pixtral": patched("pixtral", "PixtralVisionConfig", "PixtralVisionModel", {}),
    "llama4": patched("llama4", "Llama4VisionConfig", "Llama4VisionModel", SHUFFLED, 1),
    "mllama": mllama,
    "qwen2_vl": packed("qwen2_vl", *QWEN2, NARROW),
    "qwen2_5_vl": packed("qwen2_5_vl", *QWEN25, EVERY),
    "qwen2_5_vl_windows": packed("qwen2_5_vl", *QWEN25, {**WIDTH, "fullatt_block_indexes": []}),
    "qwen3_vl": packed("qwen3_vl", *QWEN3, {**WIDTH, "deepstack_visual_indexes": []}),
    "qwen3_5": packed("qwen3_5", *QWEN35, WIDTH),
    "kimi_k25": packed("kimi_k25", "Kimi_K25VisionConfig", "Kimi_K25VisionModel", 14, {}),
    "gemma4_vision": gemma4_vision,
    "gemma4_audio": gemma4_audio,
    "gemma3n_audio": gemma3n_audio,
    "voxtral": voxtral,
}
EAGER_ALONE = ("gemma4_audio", "gemma3n_audio")
NEVER_RECOMPUTED = (*EAGER_ALONE, "mllama")
FOUR_TIMES = (*EAGER_ALONE, "llama4")  # the MLP has no width of its own


def adapt(model: nn.Module) -> None:
    """Freeze a model and put adapters beside the matrices of its attention."""
    model.requires_grad_(False)
    for path, module in list(model.named_modules()):
        for name, child in list(module.named_children()):
            known = (
                path.rpartition(".")[2] if name == "linear" else name
            )  # Gemma wraps its matrices
            if isinstance(child, nn.Linear) and known in ADAPTED:
                setattr(module, name, Adapter(child))


def elements(
    tower: str, layers: int, h: int, f: int, attention: str, mode: str
) -> tuple[float, float]:
    """What is held after the forward pass, and the peak, in 16-bit elements a position."""
    torch.manual_seed(0)
    cls, config, inputs, positions = TOWERS[tower](layers, h, f)
    config._attn_implementation = attention
    model = cls(config).to(torch.bfloat16).train()
    if mode == "frozen":
        model.requires_grad_(False)
    if mode == "checkpointed":
        adapt(model)
        model.gradient_checkpointing_enable({"use_reentrant": False})
    tensors = [t for t in inputs.values() if isinstance(t, torch.Tensor)]
    with Live([*model.parameters(), *model.buffers(), *tensors]) as live:
        output = model(**inputs).last_hidden_state
        held = live.now
        if mode != "frozen":
            output.float().sum().backward()
    return held / positions / 2, live.peak / positions / 2


def rows(tower: str) -> Iterator[dict[str, Any]]:
    """One row for each shape."""
    for h, f in dict.fromkeys((h, 4 * h if tower in FOUR_TIMES else f) for h, f in SHAPES):
        row: dict[str, Any] = {"id": f"{tower}-{h}-{f}", "tower": tower, "width": h, "mlp_width": f}
        row |= {"heads": HEADS, "positions": TOWERS[tower](2, h, f)[3]}
        for attention in ("eager",) if tower in EAGER_ALONE else ("sdpa", "eager"):
            few, many = (elements(tower, n, h, f, attention, "trained")[0] for n in LAYERS)
            found = {"kept_a_layer": (many - few) / 2, "kept_around": 2 * few - many}
            found["frozen_peak"] = elements(tower, LAYERS[0], h, f, attention, "frozen")[1]
            if tower not in NEVER_RECOMPUTED:
                few, many = (elements(tower, n, h, f, attention, "checkpointed")[0] for n in LAYERS)
                found["stored_a_layer"] = (many - few) / 2
                peak = elements(tower, LAYERS[0], h, f, attention, "checkpointed")[1]
                found["recompute_peak"] = peak - LAYERS[0] * found["stored_a_layer"]
            row[attention] = {name: round(value, 2) for name, value in found.items()}
        yield {
            **row,
            "stack": {"transformers": transformers.__version__, "torch": torch.__version__},
        }


if __name__ == "__main__":
    torch.set_num_threads(1)
    for name in sys.argv[1:] or TOWERS:
        for row in rows(name):
            print(json.dumps(row), flush=True)
