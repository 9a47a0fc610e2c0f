"""Changed configs: each differs from a given one in one respect, always the same way."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from .configs import DEPTHS, EXPERTS, Config, copied, deepen, has_class, text_of

HIDDEN = ("hidden_size", "n_embd", "n_embed", "d_model", "model_dim")
HEADS = ("num_attention_heads", "n_head", "n_heads")
KV_HEADS = ("num_key_value_heads", "num_kv_heads", "multi_query_group_num", "n_head_kv")
VOCABULARY = ("vocab_size", "padded_vocab_size")
MLP = ("intermediate_size", "ffn_dim", "n_inner", "ffn_hidden_size", "moe_intermediate_size",
       "shared_expert_intermediate_size", "shared_intermediate_size", "intermediate_size_mlp",
       "block_ff_dim", "mlp_hidden_size")  # fmt: skip
CHOSEN = ("num_experts_per_tok", "num_experts_per_token", "moe_k", "top_k_experts")

Change = Callable[[Config, Config], bool]  # of the whole and of its text part; whether there is one


def present(text: Config, keys: tuple[str, ...]) -> str | None:
    """The first of the keys that holds a positive whole number."""
    return next((k for k in keys if type(text.get(k)) is int and text[k] > 0), None)


def number(keys: tuple[str, ...], new: Callable[[Config, int], int]) -> Change:
    """Another number under the first of the keys that is there."""

    def change(config: Config, text: Config) -> bool:
        key = present(text, keys)
        if key is None:
            return False
        before, text[key] = text[key], new(text, text[key])
        return bool(text[key] != before)

    return change


def wider(text: Config, hidden: int) -> int:
    """A width that the heads, queries and keys and values still divide."""
    heads = [text[k] for k in (*HEADS, *KV_HEADS) if type(text.get(k)) is int and text[k] > 0]
    return hidden + math.lcm(64, *(2 * n for n in heads))


def fewer_keys(text: Config, before: int) -> int:
    heads = text[present(text, HEADS) or "num_attention_heads"]
    return before // 2 if before % 2 == 0 else heads


def mlp(config: Config, text: Config) -> bool:
    keys = [k for k in MLP if type(text.get(k)) is int and text[k] > 0]
    for key in keys:
        text[key] += 64
    return bool(keys)


def depth(config: Config, text: Config) -> bool:
    key = present(text, DEPTHS)
    if key is None or text[key] < 8:
        return False
    deepen(text, key, text[key] - 5)
    return True


def tie(config: Config, text: Config) -> bool:
    """The flag turned round, wherever it stands; said where it is not."""
    holders = [o for o in (config, text) if isinstance(o.get("tie_word_embeddings"), bool)]
    for holder in holders or [config]:
        holder["tie_word_embeddings"] = not holder.get("tie_word_embeddings", False)
        if config is text:
            break
    return True


def head_width(config: Config, text: Config) -> bool:
    """A width of the heads that does not follow from the hidden size, also where none is said."""
    text["head_dim"] = text.get("head_dim") or 80
    text["head_dim"] += 16
    return has_class(text)


def biases(config: Config, text: Config) -> bool:
    """Every bias turned round, that of the attention also where the config says nothing."""
    for key in {"attention_bias", *(k for k, v in text.items() if "bias" in k and type(v) is bool)}:
        text[key] = not text.get(key, False)
    return has_class(text)


CHANGES: dict[str, Change] = {
    "vocabulary": number(VOCABULARY, lambda text, n: n + 7),
    "width": number(HIDDEN, wider),
    "keys and values": number(KV_HEADS, fewer_keys),
    "heads": number(HEADS, lambda text, n: n * 2),
    "experts": number(EXPERTS, lambda text, n: n + 8),
    "chosen experts": number(CHOSEN, lambda text, n: n + 1),
    "mlp": mlp,
    "depth": depth,
    "tie": tie,
    "head width": head_width,
    "biases": biases,
}


def variations(config: Config) -> Iterator[tuple[str, Config]]:
    """Every change that the config has a place for, by its name."""
    for name, change in CHANGES.items():
        made = copied(config)
        if change(made, text_of(made)):
            yield name, made
