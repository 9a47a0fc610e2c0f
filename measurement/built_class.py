"""What transformers builds from a config.json: parameters and linear modules, on the meta device.

    python -m fitcheck.measurement.built_class config.json

Prints JSON. Needs the packages of the extra `measure`; no weights are made and nothing is fetched.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Mapping
from typing import Any

NOT_SHAPE = ("quantization_config", "auto_map")  # one would ask for a quantizer, one for a download


def without_layer_numbers(path: str, put: str = ".N") -> str:
    """`layers.3.mlp` as `layers.N.mlp`, so that equal layers come out equal."""
    return re.sub(r"\.\d+(?=\.|$)", put, path)


def meta_model(config: Mapping[str, Any]) -> Any:
    """
    The model that transformers builds from a config, its weights tied, on the meta device.

    Raises
    ------
    ValueError
        The installed transformers has no class for this model type.
    """
    import torch
    import transformers

    settings = {k: v for k, v in config.items() if k not in NOT_SHAPE}
    made = transformers.AutoConfig.for_model(**settings)
    made._attn_implementation = "eager"
    autos: tuple[str, ...] = ("AutoModelForImageTextToText", "AutoModelForCausalLM")
    if getattr(made, "vision_config", None) is None:
        autos = autos[::-1]
    autos += ("AutoModelForMultimodalLM", "AutoModelForSeq2SeqLM")
    known = [getattr(transformers, name) for name in autos if hasattr(transformers, name)]
    auto = next((a for a in known if type(made) in a._model_mapping), None)
    if auto is None:
        raise ValueError(f"transformers {transformers.__version__} has no model of this type")
    with torch.device("meta"), _no_init_weights()():
        model = auto.from_config(made)
    model.tie_weights()
    return model


def _no_init_weights() -> Any:
    """What keeps transformers from making initial values, which would be thrown away here."""
    try:
        from transformers.initialization import no_init_weights
    except ImportError:  # before 5.0
        from transformers.modeling_utils import no_init_weights
    return no_init_weights


def built(config: Mapping[str, Any]) -> dict[str, Any]:
    """
    The class of a config with its counts.

    Returns
    -------
    dict
        `class`, `transformers`, `parameters`, and `linears`: a list of [path without layer numbers,
        in_features, out_features, bias, how many].
    """
    import transformers
    from torch import nn

    model = meta_model(config)
    linears: Counter[tuple[str, int, int, bool]] = Counter()
    head = model.get_output_embeddings()
    for path, module in model.named_modules():
        if isinstance(module, nn.Linear) and module is not head:
            short = without_layer_numbers(path)
            linears[short, module.in_features, module.out_features, module.bias is not None] += 1
    return {
        "class": type(model).__name__,
        "transformers": transformers.__version__,
        "parameters": sum(p.numel() for p in model.parameters()),
        "linears": [[*key, number] for key, number in linears.items()],
    }


def main() -> int:
    """Print what the class of one config holds; exit code 2 where it cannot be built."""
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        with open(sys.argv[1], encoding="utf-8") as handle:
            print(json.dumps(built(json.load(handle))))
    except ImportError as error:
        print(
            f"{error.name} is not installed: pip install 'fitcheck-llm[measure]'", file=sys.stderr
        )
        return 2
    except Exception as error:  # whatever the library says about a config
        print(f"{type(error).__name__}: {str(error)[:400]}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
