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

import re
from pathlib import Path

import numpy as np

from lsa_lab.arguments import check_at_least
from lsa_lab.interop import weights
from lsa_lab.models.transformer import Config, Params

Arrays = dict[str, np.ndarray]

_SHAPES = {"wpe.weight": "P D", "ln_f.weight": "D", "ln_f.bias": "D"}
_SHAPES |= {"read_in.weight": "D d", "read_in.bias": "D"}
_SHAPES |= {"read_out.weight": "1 D", "read_out.bias": "1"}
_LAYER = {"ln_1.weight": "D", "ln_1.bias": "D", "ln_2.weight": "D", "ln_2.bias": "D"}
_LAYER |= {"attn.c_attn.weight": "D 3D", "attn.c_attn.bias": "3D"}
_LAYER |= {"attn.c_proj.weight": "D D", "attn.c_proj.bias": "D"}
_LAYER |= {"mlp.c_fc.weight": "D m", "mlp.c_fc.bias": "m"}
_LAYER |= {"mlp.c_proj.weight": "m D", "mlp.c_proj.bias": "D"}
# What stands before a name: a prefix of the model's, and an underscore.
_BEFORE = re.compile(r"^(?:.*\.)?_?(?=(?:wpe|wte|ln_f|read_in|read_out|h\.\d+)\.)")
# The vocabulary, which no number is looked up in, and the causal mask that older files carry.
_UNUSED = re.compile(r"wte\.weight|h\.\d+\.attn\.(?:masked_)?bias")


def gpt2_regression(path: str | Path, num_heads: int | None = None) -> tuple[Params, Config]:
    """Read a GPT-2 for regression (Garg et al. 2208.01066) from a safetensors file.

    The shapes do not determine ``num_heads``; None reads n_head in the file's metadata (Garg et
    al.: 8 heads at width D = 256, 4 at 128, 2 at 64). Run it by

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
    arrays, metadata = weights.read_arrays(path)
    leaves, sizes = _check(arrays, path)
    width, told = sizes["D"], metadata.get("n_head", "")
    if num_heads is None and not told.isdecimal():
        raise ValueError(
            f"num_heads is None, and the metadata of {path} has no n_head: give the number of "
            f"heads, a divisor of the width {width}"
        )
    heads = check_at_least(int(told) if num_heads is None else num_heads, "num_heads")
    if width % heads:
        raise ValueError(f"num_heads is {heads}; expected a divisor of the width {width}")
    config = Config(
        token_width=sizes["d"] + 1,
        num_layers=sizes["L"],
        heads=heads,
        key_width=width // heads,
        width=width,
        mlp_width=sizes["m"],
        num_positions=sizes["P"],
        keys="causal",
        layout="interleaved",
        norm=True,
        final_norm=True,
        biases=True,
    )
    ours = _convert(leaves, config)
    return Params(**{name: weights.to_jax(name, array) for name, array in ours.items()}), config


def _convert(leaves: Arrays, config: Config) -> Arrays:
    """Return our leaves from theirs: the table of the module."""

    def stack(name: str) -> np.ndarray:  # [L, ...]
        return np.stack([leaves[f"h.{i}.{name}"] for i in range(config.num_layers)])

    def split(columns: np.ndarray) -> np.ndarray:  # [L, ..., D] -> [L, H, k, ...]
        heads = columns.reshape(*columns.shape[:-1], config.num_heads, config.key_width)
        return np.moveaxis(heads, (-2, -1), (1, 2))

    w_q, w_k, w_v = map(split, np.split(stack("attn.c_attn.weight"), 3, axis=-1))
    b_q, b_k, b_v = map(split, np.split(stack("attn.c_attn.bias"), 3, axis=-1))
    read_in, scale = leaves["read_in.weight"], config.key_width**-0.5
    return {
        **dict(w_q=w_q * scale, w_k=w_k, w_v=w_v, b_q=b_q * scale, b_k=b_k, b_v=b_v),
        "w_o": split(stack("attn.c_proj.weight").swapaxes(1, 2)).swapaxes(2, 3),
        "b_o": stack("attn.c_proj.bias"),
        "attention_norm_scale": stack("ln_1.weight"),
        "attention_norm_offset": stack("ln_1.bias"),
        "mlp_norm_scale": stack("ln_2.weight"),
        "mlp_norm_offset": stack("ln_2.bias"),
        "mlp_in": stack("mlp.c_fc.weight").swapaxes(1, 2),
        "mlp_in_bias": stack("mlp.c_fc.bias"),
        "mlp_out": stack("mlp.c_proj.weight").swapaxes(1, 2),
        "mlp_out_bias": stack("mlp.c_proj.bias"),
        "positions": leaves["wpe.weight"],
        "final_norm_scale": leaves["ln_f.weight"],
        "final_norm_offset": leaves["ln_f.bias"],
        "read_in": np.concatenate([read_in, read_in[:, :1]], axis=1),
        "read_in_bias": leaves["read_in.bias"],
        "read_out": -leaves["read_out.weight"][0],
        "read_out_bias": -leaves["read_out.bias"][0],
    }


def _check(arrays: Arrays, path: str | Path) -> tuple[Arrays, dict[str, int]]:
    """Return the leaves by their names without prefix, in one dtype, float32 at least, and the
    sizes that their shapes share."""
    names: dict[str, str] = {}
    for name in arrays:
        inner = _BEFORE.sub("", name)
        if inner in names:
            raise ValueError(f"{path} has {names[inner]} and {name}; expected one model")
        if not _UNUSED.fullmatch(inner):
            names[inner] = name
    layers = {match[0] for name in names if (match := re.match(r"h\.\d+(?=\.)", name))}
    sizes = {"1": 1, "L": max(1, len(layers))}
    table = _SHAPES | {f"h.{i}.{n}": s for i in range(sizes["L"]) for n, s in _LAYER.items()}
    if missing := [inner for inner in table if inner not in names]:
        raise ValueError(f"{path} has no {missing[0]}; expected a GPT-2 between two linear maps")
    if unknown := [name for inner, name in names.items() if inner not in table]:
        raise ValueError(f"{path} has {unknown[0]}; expected a GPT-2 without it")
    for inner, shape in table.items():
        came, letters = arrays[names[inner]].shape, shape.split()
        for letter, size in zip(letters, came, strict=False):
            if letter != "3D":
                sizes.setdefault(letter, size)
        expected = tuple(3 * sizes["D"] if s == "3D" else sizes.get(s, s) for s in letters)
        if came != expected:
            raise ValueError(f"{names[inner]} has shape {came}; expected {expected}, [{shape}]")
    wide = np.float64 if any(x.dtype == np.float64 for x in arrays.values()) else np.float32
    return {inner: arrays[name].astype(wide) for inner, name in names.items()}, sizes
