"""Factored weights in the layout of von Oswald et al. (2212.07677): a Haiku dictionary of matrices.

Four of them a layer, ``query``, ``key``, ``value`` and ``linear``, heads side by side.
"""

import re
from collections.abc import Mapping
from typing import Any

import chex
import jax.numpy as jnp
from jax import Array

from lsa_lab.arguments import check_at_least
from lsa_lab.models import linear_attention, transformer

_PARTS = ("query", "key", "value", "linear")
_NAME = re.compile(
    r"((?:.*/)?(?:multi_head_attention|layer_(?=\d)))(\d*)/(query|key|value|linear)/w"
)

Dictionary = Mapping[str, Any]  # name of a module -> {"w": array}, or "name/w" -> array


def von_oswald(
    weights: Dictionary, *, num_heads: int = 1, num_layers: int = 1
) -> tuple[transformer.Params, transformer.Config]:
    """The factored linear attention of a Haiku dictionary, and the config that runs it.

    The dictionary has the modules ``NAME/multi_head_attention/PART`` for one layer that is applied
    ``num_layers`` times (their recurrent models; the depth is no part of the weights), or
    ``NAME/~trans_block/layer_0/PART``, ``layer_1``, ... for layers of their own. PART is query, key
    or value, each {"w": [e, H k]}, or linear, {"w": [H k, e]}; flat names, NAME/.../PART/w, will do
    as well, as a safetensors file has them. Head h has the columns, of linear the rows, h k to
    (h+1) k. ``num_heads`` cannot be seen in the shapes. Their code, tokens z_t = [x_t, y_t] as
    rows, the query's label 0 (in general -w_0·x_query), adds to token t

        Σ_h Σ_{i ≤ n} (z_t Q_h · z_i K_h) z_i V_h O_h,

    with no softmax, no 1/√k and no 1/n; the query is no key (their ``include_query`` is False).
    It reads minus the query's last coordinate, as we do. So

        w_q = Q_hᵀ,  w_k = K_hᵀ,  w_v = V_hᵀ,  w_o = O_hᵀ,

    kernel "linear", keys "demonstrations", normalise False: ``transformer.forward(params, tokens,
    config)``. ``transformer.merge(params, config)`` gives the merged w_kq = K Qᵀ, w_pv = Oᵀ Vᵀ,
    which ``linear_attention.forward`` runs with ``normalise=False``. For a model trained with
    ``include_query``, replace keys in the config by "all". Biases, norms, MLPs, embeddings and
    softmax attention have no place here.
    """
    check_at_least(num_heads, "num_heads")
    check_at_least(num_layers, "num_layers")
    layers = _layers(weights)
    if len(layers) == 1:
        layers = layers * num_layers
    elif num_layers not in (1, len(layers)):
        raise ValueError(
            f"num_layers is {num_layers}, but the dictionary has {len(layers)} layers of their own"
        )
    e = layers[0]["query"].shape[0]
    columns = layers[0]["query"].shape[-1]
    if columns % num_heads:
        raise ValueError(
            f"query has {columns} columns, which {num_heads} heads cannot share; give num_heads"
        )
    for index, layer in enumerate(layers):
        for part, matrix in layer.items():
            expected = (columns, e) if part == "linear" else (e, columns)
            if matrix.shape != expected:
                raise ValueError(
                    f"{part} of layer {index} has shape {matrix.shape}; expected {expected}, "
                    "that is [e, H k] for query, key and value and [H k, e] for linear"
                )
    stacked = {part: jnp.stack([layer[part] for layer in layers]) for part in _PARTS}
    w_q, w_k, w_v, w_o = (
        _split(stacked[part].swapaxes(1, 2) if part != "linear" else stacked[part], num_heads)
        for part in _PARTS
    )
    params = transformer.Params(w_q, w_k, w_v, w_o.swapaxes(2, 3))
    config = transformer.Config(
        token_width=e,
        num_layers=len(layers),
        heads=num_heads,
        key_width=columns // num_heads,
        kernel="linear",
        normalise=False,
    )
    return params, config


def to_von_oswald(
    params: transformer.Params | linear_attention.Params,
    *,
    n: int | None = None,
    name: str = "transformer",
) -> dict[str, dict[str, Array]]:
    """The Haiku dictionary of linear attention with keys "demonstrations"; see ``von_oswald``.

    Their layers do not divide by n: a model that is run with ``normalise=True`` needs ``n``, by
    which ``linear`` is divided, and is theirs on prompts of n demonstrations. Merged weights
    become K = V = I, Q = w_kqᵀ and O = w_pvᵀ. A single layer is named multi_head_attention.
    """
    if isinstance(params, linear_attention.Params):
        chex.assert_rank([params.w_kq, params.w_pv], 4, custom_message="weights are [L, H, e, e]")
        same = jnp.broadcast_to(
            jnp.eye(params.w_kq.shape[-1], dtype=params.w_kq.dtype), params.w_kq.shape
        )
        params = transformer.Params(w_q=params.w_kq, w_k=same, w_v=same, w_o=params.w_pv)
    matrices = {"w_q", "w_k", "w_v", "w_o"}
    others = [leaf for leaf, value in vars(params).items() if value is not None]
    others = [leaf for leaf in others if leaf not in matrices]
    if others:
        raise ValueError(
            f"params has {', '.join(others)}: a dictionary of von Oswald et al. has four matrices "
            "a layer and no place for more"
        )
    if n is not None:
        check_at_least(n, "n")
    num_layers = params.w_q.shape[0]
    w_o = params.w_o if n is None else params.w_o / n
    stacked = {
        "query": _join(params.w_q).swapaxes(1, 2),
        "key": _join(params.w_k).swapaxes(1, 2),
        "value": _join(params.w_v).swapaxes(1, 2),
        "linear": _join(w_o.swapaxes(2, 3)),
    }
    weights = {}
    for layer in range(num_layers):
        module = "multi_head_attention" if num_layers == 1 else f"~trans_block/layer_{layer}"
        for part in _PARTS:
            weights[f"{name}/{module}/{part}"] = {"w": stacked[part][layer]}
    return weights


def _layers(weights: Dictionary) -> list[dict[str, Array]]:
    """The four matrices of each layer; anything else is refused by name."""
    if not isinstance(weights, Mapping):
        raise TypeError(
            f"weights is a {type(weights).__name__}; expected a dictionary of arrays by the names "
            "of their modules, such as safetensors.numpy.load_file(path) gives"
        )
    flat: dict[str, Any] = {}
    for name, leaf in weights.items():
        leaves = leaf.items() if isinstance(leaf, Mapping) else [("", leaf)]
        flat |= {f"{name}/{inner}".rstrip("/"): array for inner, array in leaves}
    layers: dict[tuple[str, int], dict[str, Array]] = {}
    for name, array in flat.items():
        match = _NAME.fullmatch(name)
        if match is None:
            raise ValueError(
                f"the dictionary has {name}, which is no w of query, key, value or linear in "
                "multi_head_attention or layer_0, layer_1, ...: such a model has no place here"
            )
        model, index, part = match.groups()
        matrix = jnp.asarray(array)
        chex.assert_rank(matrix, 2, custom_message=f"{name} is a matrix")
        layers.setdefault((model, int(index or 0)), {})[part] = matrix
    places = sorted(layers)
    if not layers or places != [(places[0][0], index) for index in range(len(layers))]:
        raise ValueError(
            f"the dictionary has the layers {[f'{model} {index}' for model, index in places]}; "
            "expected one multi_head_attention, or layer_0, layer_1, ... of one model without a gap"
        )
    for (model, index), layer in layers.items():
        missing = [part for part in _PARTS if part not in layer]
        if missing:
            raise ValueError(f"layer {index}, {model}, has no {missing[0]} with a w")
    return [layers[place] for place in places]


def _split(stacked: Array, num_heads: int) -> Array:  # [L, H k, e] -> [L, H, k, e]
    num_layers, rows, e = stacked.shape
    return stacked.reshape(num_layers, num_heads, rows // num_heads, e)


def _join(heads: Array) -> Array:  # [L, H, k, e] -> [L, H k, e]
    num_layers, num_heads, k, e = heads.shape
    return heads.reshape(num_layers, num_heads * k, e)
