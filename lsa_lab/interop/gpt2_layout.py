"""Transformers in the style of Garg et al. (2208.01066): a GPT-2 between two linear maps.

    name in the file                        shape           here
    _read_in.weight, .bias                  [D, d], [D]     read_in, read_in_bias
    _backbone.wpe.weight                    [P, D]          positions
    _backbone.h.0.ln_1.weight, .bias        [D]             attention_norm_scale, _offset
    _backbone.h.0.attn.c_attn.weight, ...   [D, 3D], [3D]   √k w_q, w_k, w_v and √k b_q, b_k, b_v
    _backbone.h.0.attn.c_proj.weight, ...   [D, D], [D]     w_o, b_o
    _backbone.h.0.ln_2.weight, .bias        [D]             mlp_norm_scale, _offset
    _backbone.h.0.mlp.c_fc.weight, ...      [D, m], [m]     mlp_in, mlp_in_bias
    _backbone.h.0.mlp.c_proj.weight, ...    [m, D], [D]     mlp_out, mlp_out_bias
    _backbone.ln_f.weight, .bias            [D]             final_norm_scale, _offset
    _read_out.weight, .bias                 [1, D], [1]     -read_out, -read_out_bias

The matrices of c_attn, c_fc and c_proj multiply rows from the right, x @ W; those of the read-in
and the read-out are W x. Head h has the columns h k to (h+1) k of each third of c_attn, and these
rows of c_proj.
"""

import operator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lsa_lab.arguments import check_at_least
from lsa_lab.interop import files
from lsa_lab.interop.gpt2_names import MAPS, Arrays, leaves_of, load
from lsa_lab.models.blocks import layer_params
from lsa_lab.models.transformer import Config, Params, check_params


def gpt2_regression(path: str | Path, num_heads: int | None = None) -> tuple[Params, Config]:
    """The transformer of a safetensors file, or of a folder of one or several with config.json.

    ``num_heads`` cannot be seen in the shapes; None reads n_head in config.json or in the file's
    metadata. (Garg et al.: 8 heads at width D = 256, 4 at 128, 2 at 64.) Run it by

        tokens = prompts.interleaved_tokens(prompt)
        transformer.predict(params, tokens, config)           # at the query
        transformer.predict_prefixes(params, tokens, config)  # at every x, from the pairs before it

    Their tokens are x_i and (y_i, 0, ..., 0), d wide; ours [x_i, 0] and [0, y_i]. So our read-in
    is theirs and, for y, its first column once more. They predict read_out · norm(u) + bias at the
    tokens x_i, with a plus; our predictions are minus the label slot, so read-out and bias change
    sign. Scores are divided by √k: W_Q and b_Q are. Layer norms add 1e-5 to the variance, gelu has
    its tanh form, token t reads tokens 1..t. Half precision is widened to float32. The table of
    names is the module's; any prefix may stand before them.
    """
    arrays, facts = load(Path(path))
    leaves, num_layers = leaves_of(arrays, path)
    width = leaves["wpe.weight"].shape[1]
    count = facts.get("n_head") if num_heads is None else num_heads
    if count is None:
        raise ValueError(
            f"num_heads is None, and neither config.json nor the metadata of {path} says n_head: "
            f"give the number of heads, a divisor of the width {width}"
        )
    is_text = isinstance(count, str) and count.isdecimal()  # all that metadata can be
    count = check_at_least(int(count) if is_text else count, "num_heads")
    if width % count:
        raise ValueError(f"num_heads is {count}; expected a divisor of the width {width}")
    places, inner = leaves["wpe.weight"].shape[0], leaves["h.0.mlp.c_fc.bias"].shape[0]
    held = {"n_layer": num_layers, "n_embd": width, "n_positions": places, "n_inner": inner}
    for key, size in held.items():
        if facts.get(key) is not None and str(facts[key]) != str(size):
            raise ValueError(f"{path} says {key} = {facts[key]}, and its arrays have {size}")
    config = _config(
        token_width=leaves["read_in.weight"].shape[1] + 1,
        num_layers=num_layers,
        heads=count,
        key_width=width // count,
        mlp_width=inner,
        num_positions=places,
    )
    ours = _ours(leaves, config)
    return Params(**{name: files.as_jax(name, array) for name, array in ours.items()}), config


def to_gpt2_regression(
    params: Params, config: Config, path: str | Path, prefix: str = "_backbone."
) -> None:
    """Write the file that ``gpt2_regression`` reads; its metadata says n_head.

    Only the architecture of such a file can be written, with y read in as the first coordinate of
    x is. It holds no vocabulary (wte), which a regression does not use.
    """
    expected = _config(
        token_width=config.token_width,
        num_layers=config.num_layers,
        heads=config.num_heads,
        key_width=config.key_width,
        mlp_width=config.mlp_width or 1,
        num_positions=config.num_positions or 1,
        init_scale=config.init_scale,
    )
    if config != expected:
        raise ValueError(f"config is {config}; a GPT-2 style file has room for {expected} alone")
    check_params(params, config)
    if params.read_in is None or not jnp.array_equal(params.read_in[:, 0], params.read_in[:, -1]):
        raise ValueError(
            "read_in has a direction of its own for y, in its last column; the file has room for "
            "y in the first coordinate of x alone"
        )
    theirs = _theirs(jax.tree.map(np.asarray, params), config)
    named = {f"_{name}" if MAPS.fullmatch(name) else prefix + name: theirs[name] for name in theirs}
    files.write(named, path, {"format": "pt", "n_head": str(config.num_heads)})


def _config(*, heads: int, key_width: int, **sizes: Any) -> Config:
    """That of a model of this architecture."""
    how: dict[str, Any] = dict(keys="causal", layout="interleaved", norm=True, final_norm=True)
    width = heads * key_width
    return Config(heads=heads, key_width=key_width, width=width, biases=True, **how, **sizes)


# What bears another name and is the same array, of every layer and of the whole; and what lies
# with its axes exchanged.
_LAYER = {
    "ln_1.weight": "attention_norm_scale",
    "ln_1.bias": "attention_norm_offset",
    "attn.c_proj.bias": "b_o",
    "ln_2.weight": "mlp_norm_scale",
    "ln_2.bias": "mlp_norm_offset",
    "mlp.c_fc.bias": "mlp_in_bias",
    "mlp.c_proj.bias": "mlp_out_bias",
}
_TURNED = {"mlp.c_fc.weight": "mlp_in", "mlp.c_proj.weight": "mlp_out"}
_WHOLE = {
    "wpe.weight": "positions",
    "read_in.bias": "read_in_bias",
    "ln_f.weight": "final_norm_scale",
    "ln_f.bias": "final_norm_offset",
}


def _ours(leaves: Arrays, config: Config) -> Arrays:
    """Our leaves from theirs: the table of the module, read from left to right."""
    layers, k = range(config.num_layers), config.key_width

    def stacked(name: str) -> np.ndarray:  # [L, ...]
        return np.stack([leaves[f"h.{i}.{name}"] for i in layers])

    def heads(columns: np.ndarray) -> np.ndarray:  # [L, ..., D] -> [L, H, k, ...]
        split = columns.reshape(*columns.shape[:-1], config.num_heads, k)
        return np.moveaxis(split, (-2, -1), (1, 2))

    w_q, w_k, w_v = map(heads, np.split(stacked("attn.c_attn.weight"), 3, axis=-1))
    b_q, b_k, b_v = map(heads, np.split(stacked("attn.c_attn.bias"), 3, axis=-1))
    read_in, scale = leaves["read_in.weight"], k**-0.5
    ours = dict(w_q=w_q * scale, w_k=w_k, w_v=w_v, b_q=b_q * scale, b_k=b_k, b_v=b_v)
    ours |= {ours: stacked(name) for name, ours in _LAYER.items()}
    ours |= {ours: stacked(name).swapaxes(1, 2) for name, ours in _TURNED.items()}
    ours |= {ours: leaves[name] for name, ours in _WHOLE.items()}
    return ours | {
        "w_o": heads(stacked("attn.c_proj.weight").swapaxes(1, 2)).swapaxes(2, 3),
        "read_in": np.concatenate([read_in, read_in[:, :1]], axis=1),
        "read_out": -leaves["read_out.weight"][0],
        "read_out_bias": -leaves["read_out.bias"][0],
    }


def _theirs(params: Any, config: Config) -> Arrays:  # Params, every leaf of them there
    """Their leaves from ours: the table of the module, read from right to left."""
    scale = config.key_width**0.5
    leaves: Arrays = {name: getattr(params, ours) for name, ours in _WHOLE.items()}

    def columns(*heads: np.ndarray) -> np.ndarray:  # each [H, k, ...] -> [..., 3 D]
        return np.concatenate([head.reshape(-1, *head.shape[2:]) for head in heads]).T

    for i in range(config.num_layers):
        layer = jax.tree.map(operator.itemgetter(i), layer_params(params))
        theirs = {name: getattr(layer, ours) for name, ours in _LAYER.items()}
        theirs |= {name: getattr(layer, ours).T for name, ours in _TURNED.items()}
        theirs |= {
            "attn.c_attn.weight": columns(layer.w_q * scale, layer.w_k, layer.w_v),
            "attn.c_attn.bias": columns(layer.b_q * scale, layer.b_k, layer.b_v),
            "attn.c_proj.weight": columns(layer.w_o.swapaxes(1, 2)).T,
        }
        leaves |= {f"h.{i}.{name}": array for name, array in theirs.items()}
    return leaves | {
        "read_in.weight": params.read_in[:, :-1],
        "read_out.weight": -params.read_out[None],
        "read_out.bias": -params.read_out_bias[None],
    }
