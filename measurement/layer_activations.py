"""What the layers of a config.json keep for the backward pass, read from real tensors on the CPU.

    python -m fitcheck.measurement.layer_activations config.json --batch-size 2 --seq-len 128

Builds the class of transformers with random weights in bf16, freezes it, puts adapters of PEFT on
it (`--lora-targets`, or `none`, or `full` for none), and runs a step without checkpointing and one
with. Every storage is followed from birth to death. Prints JSON; all figures are bytes.

Sizes do not depend on the device. Two things are not what a GPU does: the tiled kernel of
scaled_dot_product_attention is replaced by one that keeps the same (`Tiled`), and scratch inside
kernels is not seen.
"""

from __future__ import annotations

import argparse
import json
import sys
import weakref
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any
from unittest.mock import patch

try:
    import torch
    from torch import nn
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves
    from torch.utils.checkpoint import checkpoint
except ImportError as error:
    raise SystemExit(
        f"{error.name} is not installed: pip install 'fitcheck-llm[measure]'"
    ) from None

OUTSIDE, HEAD = "outside", "head"


class Storages(TorchDispatchMode):
    """Follows the bytes of every storage that an operation makes; `label` names who makes it."""

    def __init__(self) -> None:
        super().__init__()
        self.label = OUTSIDE
        self.live = 0
        self.alive: dict[int, tuple[str, int, str]] = {}  # number -> label, bytes, what it is
        self.known: dict[int, weakref.ref[Any]] = {}
        self.number = 0
        self.started: dict[str, int] = {}  # live bytes when a label began
        self.peaks: dict[str, int] = defaultdict(int)

    def begin(self, label: str) -> None:
        self.label = label
        self.started[label] = self.peaks[label] = self.live

    def skip(self, tensors: Sequence[torch.Tensor]) -> None:
        """Tensors that are not activations: parameters, buffers, inputs."""
        for tensor in tensors:
            storage = tensor.untyped_storage()
            self.known[storage._cdata] = weakref.ref(storage)

    def follow(self, tensor: torch.Tensor, name: str) -> None:
        storage = tensor.untyped_storage()
        key = storage._cdata
        seen = self.known.get(key)
        if seen is not None and seen() is storage:
            return
        size, self.number = storage.nbytes(), self.number + 1
        number = self.number

        def died(_: object) -> None:
            self.live -= size
            del self.alive[number]

        what = f"{name} {tuple(tensor.shape)} {str(tensor.dtype)[6:]}"
        self.alive[number] = (self.label, size, what)
        self.known[key] = weakref.ref(storage, died)
        self.live += size
        self.peaks[self.label] = max(self.peaks[self.label], self.live)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, torch.Tensor):
                self.follow(leaf, str(func))
        return result

    def checkpointed(self, run: Any, *args: Any, **options: Any) -> Any:
        """Checkpointing that says whose recompute begins."""
        label = self.label

        def again(*given: Any, **named: Any) -> Any:
            self.begin(label)
            return run(*given, **named)

        return checkpoint(again, *args, use_reentrant=False, preserve_rng_state=False, **options)

    def kept(self) -> dict[str, int]:
        """Bytes alive now, by who made them."""
        total: dict[str, int] = defaultdict(int)
        for label, size, _ in self.alive.values():
            total[label] += size
        return dict(total)

    def listed(self, label: str) -> list[tuple[int, str]]:
        """What is alive of one label, largest first."""
        return sorted((s, what) for owner, s, what in self.alive.values() if owner == label)[::-1]


class Tiled(torch.autograd.Function):
    """Keeps what a tiled attention kernel keeps: its inputs, the output, one fp32 sum a row."""

    @staticmethod
    def forward(ctx: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
        out = q.new_zeros(q.shape[0], q.shape[2], q.shape[1], v.shape[-1]).transpose(1, 2)
        sums = q.new_zeros(q.shape[:-1], dtype=torch.float32)
        kept = [] if mask is None else [mask.to(q.dtype)]  # torch makes an additive one of each
        ctx.save_for_backward(q, k, v, out, sums, *kept)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return *(torch.zeros_like(t) for t in ctx.saved_tensors[:3]), None


def tiled(q: Any, k: Any, v: Any, attn_mask: Any = None, *_: Any, **options: Any) -> Any:
    """What stands in for `scaled_dot_product_attention`."""
    return Tiled.apply(q, k, v, attn_mask)


def built(config: Mapping[str, Any], attention: str, experts: str | None, dtype: Any) -> Any:
    """The causal language model of a config, text part alone, with random weights."""
    import transformers

    settings = {k: v for k, v in config.items() if k not in ("quantization_config", "auto_map")}
    made = transformers.AutoConfig.for_model(**settings)
    auto: Any = transformers.AutoModelForCausalLM
    if type(made) not in auto._model_mapping:
        made = made.get_text_config()
    if type(made) not in auto._model_mapping:  # such as MllamaTextConfig: its class has no entry
        auto = getattr(transformers, type(made).__name__.replace("TextConfig", "ForCausalLM"))
    options = {"experts_implementation": experts} if experts else {}
    make = getattr(auto, "from_config", None) or auto._from_config
    return make(made, dtype=dtype, attn_implementation=attention, **options)


def register_tiled() -> None:
    """`tiled`: attention without mask and without copies of the key heads, as FlashAttention."""
    from transformers import AttentionInterface
    from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS as masks

    def flash(_m: Any, q: Any, k: Any, v: Any, _mask: Any, **_: Any) -> tuple[Any, None]:
        return Tiled.apply(q, k, v, None).transpose(1, 2), None

    AttentionInterface.register("tiled", flash)
    masks.register("tiled", masks["flash_attention_2"])


def decoder_layers(model: nn.Module) -> list[nn.Module]:
    """The longest list of modules, which is that of the layers."""
    lists = [m for m in model.modules() if isinstance(m, nn.ModuleList)]
    count = model.config.get_text_config().num_hidden_layers
    return list(next(m for m in lists if len(m) == count))


def kind_of(layer: nn.Module) -> str:
    """The classes of a layer and of what it holds, norms and activations left out."""
    inner = [type(m).__name__ for m in layer.children() if next(m.parameters(), None) is not None]
    names = dict.fromkeys(n for n in inner if "Norm" not in n)
    return f"{type(layer).__name__}({', '.join(names)})"


def with_adapters(model: Any, targets: str, rank: int) -> Any:
    """The model with adapters of PEFT, frozen (`none`), or trained in full (`full`)."""
    if targets == "full":
        return model
    model.requires_grad_(False)
    if targets == "none":
        model.enable_input_require_grads()
        return model
    import peft

    names: Any = targets if targets == "all-linear" else targets.split(",")
    model.enable_input_require_grads()
    return peft.get_peft_model(
        model,
        peft.LoraConfig(r=rank, target_modules=names, lora_dropout=0.0, task_type="CAUSAL_LM"),
    )


def step(
    config: Mapping[str, Any], args: argparse.Namespace, lean: bool
) -> tuple[list[nn.Module], dict[str, int], dict[str, Any]]:
    """One forward and backward pass: what was kept after the forward, and the peaks."""
    torch.manual_seed(0)
    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}[args.precision]
    model = built(config, args.attention, args.experts, dtype)
    base, layers = model, decoder_layers(model)
    model = with_adapters(model, args.lora_targets, args.lora_r)
    model.to(args.device).train()
    model.config.use_cache = False
    tokens = torch.randint(0, 32, (args.batch_size, args.seq_len), device=args.device)
    for parameter in model.parameters():  # their gradients are counted elsewhere
        if parameter.requires_grad:
            parameter.grad = torch.zeros_like(parameter)
    seen = Storages()
    grads = [p.grad for p in model.parameters() if p.grad is not None]
    seen.skip([*model.parameters(), *model.buffers(), *grads, tokens])
    if lean:
        base._set_gradient_checkpointing(True, seen.checkpointed)
    sizes: dict[str, int] = {}
    for index, layer in enumerate(layers):
        last = index == len(layers) - 1

        def before(*_: Any, index: int = index) -> None:
            seen.begin(str(index))

        def after(_m: Any, _i: Any, out: Any, index: int = index, last: bool = last) -> None:
            first = out[0] if isinstance(out, tuple) else out
            sizes[str(index)] = first.untyped_storage().nbytes()
            seen.begin(HEAD if last else OUTSIDE)

        layer.register_forward_pre_hook(before)
        layer.register_forward_hook(after)
    with patch.object(nn.functional, "scaled_dot_product_attention", tiled), seen:
        # Only the loss is held on to, as a trainer does; the logits go when it is computed.
        loss = model(input_ids=tokens, labels=tokens).loss
        kept = seen.kept()
        details = [seen.listed(label) for label in (*map(str, range(len(layers))), HEAD)]
        head = {"peak": seen.peaks[HEAD] - seen.started.get(HEAD, 0)}
        seen.peaks.clear()
        seen.begin("backward")
        loss.backward()
        peaks = {k: seen.peaks[k] - seen.started[k] + sizes[k] for k in sizes if k in seen.peaks}
    head["backward"] = seen.peaks["backward"] - seen.started["backward"]
    return layers, kept, {"peaks": peaks, "details": details, "head": head}


def measured(config: Mapping[str, Any], args: argparse.Namespace) -> dict[str, Any]:
    """
    The record of one config.

    Returns
    -------
    dict
        `layers`: for each layer its kind, `kept` (bytes that stay until its backward pass),
        `stored` (under checkpointing), `peak` (largest sum of what its recompute and backward pass
        hold, with the gradient that comes in); `head`: the same of last norm, logits and loss.
    """
    import transformers

    register_tiled()
    layers, kept, plain = step(config, args, False)
    rows = [{"kind": kind_of(m), "kept": kept.get(str(i), 0)} for i, m in enumerate(layers)]
    head = {"kept": kept.get(HEAD, 0), **plain["head"]}
    if args.details:
        for owner, found in zip([*rows, head], plain["details"], strict=True):
            owner["details"] = found
    del layers
    if not args.no_checkpoint:
        _, kept, lean = step(config, args, True)
        for index, row in enumerate(rows):
            row["stored"] = kept.get(str(index), 0)
            row["peak"] = lean["peaks"].get(str(index), 0)
    stack = {"torch": torch.__version__, "transformers": transformers.__version__}
    return {"stack": stack, "layers": rows, "head": head}


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("config")
    parser.add_argument("--batch-size", type=int, default=2)
    parser.add_argument("--seq-len", type=int, default=128)
    parser.add_argument("--attention", choices=["eager", "sdpa", "tiled"], default="sdpa")
    parser.add_argument("--experts", help="experts_implementation of transformers 5")
    parser.add_argument("--lora-targets", default="q_proj,k_proj,v_proj,o_proj")
    parser.add_argument("--lora-r", type=int, default=2)
    parser.add_argument("--precision", choices=["bf16", "fp16", "fp32"], default="bf16")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--no-checkpoint", action="store_true", help="without the second pass")
    parser.add_argument("--details", action="store_true", help="list the tensors of each layer")
    return parser.parse_args(given)


def main() -> int:
    """Print what the layers of one config keep; exit code 2 where it cannot be built."""
    args = arguments()
    try:
        with open(args.config, encoding="utf-8") as handle:
            found = measured(json.load(handle), args)
    except Exception as error:  # whatever the libraries say about a config
        print(f"{type(error).__name__}: {str(error)[:400]}", file=sys.stderr)
        return 2
    print(json.dumps(found, indent=1 if args.details else None))
    return 0


if __name__ == "__main__":
    sys.exit(main())
