"""The parts of a model on the meta device: tables, head, experts, towers, linear modules, what the
quantizer of transformers packs, the adapters of PEFT, and the cache of a forward pass.

`built_class.meta_model` makes such a model. Packing and adapters change it in place.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import Any
from unittest.mock import patch

from ..built_class import without_layer_numbers

Linears = Counter[tuple[str, int, int, bool]]

TOWER = re.compile(
    r"vision|visual|image_newline|multi_modal_projector|audio|embed_audio|connector"
    r"|patch_merger|mm_projector"
)
EXPERT = re.compile(r"(^|\.)experts(\.|$)|(^|\.)block_sparse_moe\.(input|output)_linear(\.|$)")


def parameters(model: Any) -> Iterator[tuple[str, str, Any, Any]]:
    """(path of the module, name, module, parameter) of every parameter, shared ones once."""
    seen: set[int] = set()
    for path, module in model.named_modules():
        for name, parameter in module._parameters.items():
            if parameter is not None and id(parameter) not in seen:
                seen.add(id(parameter))
                yield path, name, module, parameter


def part_of(model: Any, path: str, name: str, module: Any) -> str:
    """tower, head, experts, embedding, or text for all else."""
    full = f"{path}.{name}".lstrip(".")
    if TOWER.search(full):
        return "tower"
    if module is model.get_output_embeddings():
        return "head"
    if EXPERT.search(full):
        return "experts"
    return "embedding" if "Embedding" in type(module).__name__ else "text"


def parts(model: Any) -> dict[str, int]:
    """How many parameters each part has, and `total`."""
    counts: Counter[str] = Counter()
    for path, name, module, parameter in parameters(model):
        counts[part_of(model, path, name, module)] += parameter.numel()
        counts["total"] += parameter.numel()
    return {name: counts[name] for name in ("total", "embedding", "head", "experts", "tower")}


def linears(model: Any) -> Linears:
    """
    Every nn.Linear and Conv1D but a tied head: path without layer numbers, widths, bias -> number.
    """
    from torch import nn

    table, head = model.get_input_embeddings(), model.get_output_embeddings()
    tied = head is not None and head.weight is getattr(table, "weight", None)
    found: Linears = Counter()
    for path, module in model.named_modules():
        if module is head and tied:
            continue
        if isinstance(module, nn.Linear):
            shape = (module.in_features, module.out_features)
        elif type(module).__name__ == "Conv1D":
            shape = (module.weight.shape[0], module.weight.shape[1])
        else:
            continue
        key = (without_layer_numbers(path, ""), *shape, module.bias is not None)
        found[key] += 1
    return found


def pack(model: Any) -> int:
    """
    Let the quantizer of transformers put in its 4-bit modules, and return how many weights they
    hold; the checkpoint is taken for one that is not packed yet.
    """
    import torch
    from transformers import BitsAndBytesConfig
    from transformers.quantizers.quantizer_bnb_4bit import Bnb4BitHfQuantizer

    before = {path: m.weight for path, m in model.named_modules() if hasattr(m, "weight")}
    kept = list(model._keep_in_fp32_modules or ())
    quantizer = Bnb4BitHfQuantizer(BitsAndBytesConfig(load_in_4bit=True), pre_quantized=False)
    with torch.device("meta"):
        quantizer.preprocess_model(model=model, device_map=None, keep_in_fp32_modules=kept)
    packed = {
        id(before.get(path, module)): module.in_features * module.out_features
        for path, module in model.named_modules()
        if type(module).__name__ == "Linear4bit"
    }
    return sum(packed.values())


def adapters(model: Any, rank: int, targets: str | Sequence[str]) -> dict[str, int]:
    """
    How many parameters PEFT makes trainable beside `modules`, and beside `parameters` of no module.

    `targets` as `LoraConfig.target_modules`; raises what PEFT says of others than it takes.
    """
    import torch
    from peft import LoraConfig, get_peft_model
    from peft.tuners.lora.layer import ParamWrapper

    chosen = targets if isinstance(targets, str) else list(targets)
    # Without initial values: the meta device has none to give.
    settings = LoraConfig(r=rank, target_modules=chosen, init_lora_weights=False)
    with torch.device("meta"):
        wrapped = get_peft_model(model, settings)
    beside = {path for path, m in wrapped.named_modules() if isinstance(m, ParamWrapper)}
    counts = {"modules": 0, "parameters": 0}
    for path, parameter in wrapped.named_parameters():
        if parameter.requires_grad:
            wrapper = re.split(r"\.lora_[AB]\.", path)[0]
            counts["parameters" if wrapper in beside else "modules"] += parameter.numel()
    return counts


def cache_bytes(model: Any, tokens: int) -> int:
    """Bytes that a forward pass over one sequence leaves in its cache, in bf16."""
    import torch

    model = model.to(torch.bfloat16).eval()
    for path, module in model.named_modules():
        if path.endswith(".experts"):  # some cannot route on the meta device, and none caches
            module.forward = lambda hidden, *_, **__: torch.zeros_like(hidden)
    words = torch.zeros(1, tokens, dtype=torch.long, device="meta")
    # 4.57 switches autocast off for the device it runs on, which torch does not take for meta.
    no_autocast = patch.object(torch, "autocast", lambda *_, **__: nullcontext())
    with torch.no_grad(), torch.device("meta"), no_autocast:
        output = model(input_ids=words, use_cache=True)
    cache = getattr(output, "past_key_values", None)
    cache = getattr(output, "cache_params", None) if cache is None else cache
    if cache is None:
        raise ValueError(f"{type(model).__name__} returned no cache")
    tensors = {id(t): t for t in _tensors(cache, set()) if t.is_floating_point()}
    return sum(t.numel() * t.element_size() for t in tensors.values())


def _tensors(value: Any, seen: set[int]) -> Iterator[Any]:
    """The tensors in a cache: in its attributes, and in lists and objects of transformers there."""
    import torch

    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _tensors(item, seen)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item, seen)
    elif type(value).__module__.startswith("transformers") and not (
        isinstance(value, torch.nn.Module) or "Config" in type(value).__name__
    ):
        yield from _tensors(getattr(value, "__dict__", {}), seen)
