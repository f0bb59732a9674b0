"""The names and shapes of a GPT-2 style regression transformer, found in files and checked."""

import re
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from lsa_lab.interop import files
from lsa_lab.store import shards

Arrays = dict[str, np.ndarray]

_ENDS = {"ln_f.weight": "D", "ln_f.bias": "D", "wpe.weight": "P D"}
_ENDS |= {"read_in.weight": "D d", "read_in.bias": "D"}
_ENDS |= {"read_out.weight": "1 D", "read_out.bias": "1"}
_LAYER = {"ln_1.weight": "D", "ln_1.bias": "D", "ln_2.weight": "D", "ln_2.bias": "D"}
_LAYER |= {"attn.c_attn.weight": "D 3D", "attn.c_attn.bias": "3D"}
_LAYER |= {"attn.c_proj.weight": "D D", "attn.c_proj.bias": "D"}
_LAYER |= {"mlp.c_fc.weight": "D m", "mlp.c_fc.bias": "m"}
_LAYER |= {"mlp.c_proj.weight": "m D", "mlp.c_proj.bias": "D"}
MAPS = re.compile(r"(?:.*\.)?_?(read_(?:in|out)\.(?:weight|bias))")
# The vocabulary, which no number is looked up in, and the causal mask that older files carry.
_UNUSED = re.compile(r"wte\.weight|h\.\d+\.attn\.(?:masked_)?bias")

# What a config.json may say, where it says anything.
_SAYS = {
    "model_type": ("gpt2",),
    "activation_function": ("gelu_new", "gelu_pytorch_tanh"),
    "layer_norm_epsilon": (1e-5,),
    "scale_attn_weights": (True,),
    "scale_attn_by_inverse_layer_idx": (False,),
    "add_cross_attention": (False,),
    "is_causal": (True,),
}


def load(path: Path) -> tuple[Arrays, dict[str, Any]]:
    """Every array of a file or a folder, and what metadata or config.json say."""
    if not path.is_dir():
        return files.read(path)
    arrays: Arrays = {}
    facts: dict[str, Any] = {}
    for shard, names in shards.shards(path).items():
        more, metadata = files.read(shard, names)
        arrays |= more
        facts |= metadata
    if (path / "config.json").exists():
        facts |= shards.fields(path / "config.json")
    for name, values in _SAYS.items():
        if facts.get(name, values[0]) not in values:
            raise ValueError(
                f"{path} says {name} = {facts[name]!r}; expected {values[0]!r}: another "
                "architecture has no place here"
            )
    return arrays, facts


def leaves_of(arrays: Arrays, path: str | Path) -> tuple[Arrays, int]:
    """The arrays by their names without prefix, in one dtype, each of the shape it must have."""
    positions = [name for name in arrays if re.fullmatch(r"(?:.*\.)?wpe\.weight", name)]
    if len(positions) != 1:
        raise ValueError(
            f"{path} has {positions or 'no wpe.weight'}; expected one PREFIX.wpe.weight"
        )
    prefix = positions[0].removesuffix("wpe.weight")
    names: dict[str, str] = {}
    for name, array in arrays.items():
        match = MAPS.fullmatch(name)
        inner = match[1] if match else name.removeprefix(prefix)
        if inner in names:
            raise ValueError(f"{path} has {names[inner]} and {name}; expected one model")
        if not _UNUSED.fullmatch(inner):
            names[inner] = name
            if not jnp.issubdtype(array.dtype, jnp.floating):
                raise ValueError(f"{name} is {array.dtype}; expected floating-point weights")
    layers = {match[0] for name in names if (match := re.match(r"h\.\d+(?=\.)", name))}
    num_layers = max(1, len(layers))
    spec = _ENDS | {
        f"h.{i}.{name}": shape for i in range(num_layers) for name, shape in _LAYER.items()
    }
    for inner, shape in spec.items():
        if inner not in names:
            guess = f"_{inner}" if MAPS.fullmatch(inner) else prefix + inner
            raise ValueError(
                f"{path} has no {guess}; expected an array [{shape.replace(' ', ', ')}]"
            )
    for inner, name in names.items():
        if inner not in spec:
            raise ValueError(
                f"{path} has {name}; expected a GPT-2 without it: it has no place here"
            )
    return _checked({inner: arrays[name] for inner, name in names.items()}, names, spec), num_layers


def _checked(leaves: Arrays, names: dict[str, str], spec: dict[str, str]) -> Arrays:
    """The leaves in one dtype, float32 at least, if all have the shapes of the spec.

    The first leaf that has a letter says what it stands for.
    """
    sizes: dict[str, int] = {"1": 1}
    for inner, shape in spec.items():
        came = leaves[inner].shape
        letters = shape.split()
        for letter, size in zip(letters, came, strict=False):
            if letter != "3D":
                sizes.setdefault(letter, size)
        expected = tuple(
            3 * sizes["D"] if letter == "3D" else sizes.get(letter, letter) for letter in letters
        )
        if came != expected:
            raise ValueError(
                f"{names[inner]} has shape {came}; expected {expected}, that is "
                f"[{shape.replace(' ', ', ')}]"
            )
    wide = any(array.dtype == np.float64 for array in leaves.values())
    dtype = np.float64 if wide else np.float32
    return {inner: array.astype(dtype) for inner, array in leaves.items()}
