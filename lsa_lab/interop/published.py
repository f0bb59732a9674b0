"""Published weights of linear attention as Params: Ahn et al. and von Oswald et al."""

import re
from collections.abc import Mapping
from typing import Any

import chex
import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from lsa_lab.arguments import check_at_least
from lsa_lab.models import linear_attention, transformer

_PARTS = ("query", "key", "value", "linear")
_NAME = re.compile(
    r"((?:.*/)?(?:multi_head_attention|layer_(?=\d)))(\d*)/(query|key|value|linear)/w"
)


def ahn(allparam: ArrayLike, *, full: bool = False) -> linear_attention.Params:
    """Return the linear attention of ``allparam`` [L, H, 2, d, d] (Ahn et al. 2306.00297).

    P = [..., 0, :, :] and Q = [..., 1, :, :]. Their code, one token z_t = [x_t, y_t] a row and the
    query's label 0, adds to token t

        (1/n) Σ_h Σ_{i ≤ n} (z_tᵀ Q̂_h z_i) P̂_h z_i,    P̂ = diag(P, 1),  Q̂ = diag(Q, 0),

    and its loss takes minus the query's last coordinate for the prediction. The sum leaves out the
    query, n counts demonstrations, and the sign is ours, so

        w_pv = P̂,    w_kq = Q̂ᵀ,

    to be run by ``linear_attention.forward(params, tokens)`` and read by ``trace.predict`` as they
    are: keys "demonstrations", normalised, minus sign. In the paper, Z ← Z + (1/n) P Z M (Zᵀ Q Z)
    with tokens as columns, the key is on Q's left: its Q is w_kq, the transpose of the code's.

    ``full``: the unconstrained variant, whose P and Q are [d+1, d+1] and stand for P̂ and Q̂.
    """
    allparam, d = jnp.asarray(allparam), jnp.shape(allparam)[-1]
    message = "allparam is [layer, head, 2, d, d]: entry 0 of the third axis is P, entry 1 is Q"
    chex.assert_shape(allparam, (None, None, 2, d, d), custom_message=message)
    p, q = allparam[:, :, 0], allparam[:, :, 1]
    if not full:
        p, q = (jnp.pad(block, ((0, 0), (0, 0), (0, 1), (0, 1))) for block in (p, q))
        p = p.at[:, :, d, d].set(1)
    return linear_attention.Params(w_kq=q.swapaxes(2, 3), w_pv=p)


def von_oswald(
    weights: Mapping[str, Any], *, num_heads: int = 1, num_layers: int = 1
) -> tuple[transformer.Params, transformer.Config]:
    """Return the linear attention of a Haiku dictionary (von Oswald et al. 2212.07677).

    The dictionary has the modules ``NAME/multi_head_attention/PART`` for one layer that is applied
    ``num_layers`` times (their recurrent models; the depth is no part of the weights), or
    ``NAME/~trans_block/layer_0/PART``, ``layer_1``, ... for different layers. PART is query, key
    or value, each {"w": [e, H k]}, or linear, {"w": [H k, e]}; flat names NAME/.../PART/w, such as
    a safetensors file has, do as well. Head h has the columns, of linear the rows, h k to
    (h+1) k. ``num_heads`` cannot be seen in the shapes. Their code, tokens z_t = [x_t, y_t] as
    rows, the query's label 0 (in general -w_0·x_query), adds to token t

        Σ_h Σ_{i ≤ n} (z_t Q_h · z_i K_h) z_i V_h O_h,

    with no softmax, no 1/√k and no 1/n; the query is no key (their ``include_query`` is False).
    It reads minus the query's last coordinate, as we do. So

        w_q = Q_hᵀ,  w_k = K_hᵀ,  w_v = V_hᵀ,  w_o = O_hᵀ,

    kernel "linear", keys "demonstrations", normalise False, to be run by
    ``transformer.forward(params, tokens, config)``. For a model trained with ``include_query``,
    replace keys in the config by "all".
    Biases, norms, MLPs, embeddings and softmax attention are refused.
    """
    check_at_least(num_heads, "num_heads")
    check_at_least(num_layers, "num_layers")
    layers = _find_layers(weights)
    if num_layers not in (1, len(layers)) and len(layers) > 1:
        raise ValueError(f"num_layers is {num_layers}: the dictionary has {len(layers)} layers")
    layers = layers * num_layers if len(layers) == 1 else layers
    e, columns = layers[0]["query"].shape
    if columns % num_heads:
        raise ValueError(
            f"query has {columns} columns, which {num_heads} heads cannot share; give num_heads"
        )
    for index, layer in enumerate(layers):
        for part, matrix in layer.items():
            expected = (columns, e) if part == "linear" else (e, columns)
            message = f"{part} of layer {index}: query, key and value are [e, H k], linear [H k, e]"
            chex.assert_shape(matrix, expected, custom_message=message)
    k = columns // num_heads

    def split(part: str) -> Array:  # [L, H, k, e]
        rows = [layer[part] if part == "linear" else layer[part].T for layer in layers]
        return jnp.stack(rows).reshape(len(layers), num_heads, k, e)

    w_q, w_k, w_v, w_o = map(split, _PARTS)
    params = transformer.Params(w_q, w_k, w_v, w_o.swapaxes(2, 3))
    shape: Any = dict(num_layers=len(layers), heads=num_heads, key_width=k)
    return params, transformer.Config(token_width=e, kernel="linear", normalise=False, **shape)


def _find_layers(weights: Mapping[str, Any]) -> list[dict[str, Array]]:
    """Return the four matrices of each layer; anything else is refused by name."""
    layers: dict[tuple[str, int], dict[str, Array]] = {}
    for path, array in jax.tree_util.tree_leaves_with_path(weights):
        name = jax.tree_util.keystr(path, simple=True, separator="/")
        match = _NAME.fullmatch(name)
        if match is None:
            raise ValueError(
                f"the dictionary has {name}, which is no w of query, key, value or linear in "
                "multi_head_attention or layer_0, layer_1, ...: such a model is not supported"
            )
        chex.assert_rank(array, 2, custom_message=f"{name} is a matrix")
        layers.setdefault((match[1], int(match[2] or 0)), {})[match[3]] = jnp.asarray(array)
    places = sorted(layers)
    if not layers or places != [(places[0][0], index) for index in range(len(layers))]:
        raise ValueError(
            f"the dictionary has the layers {[f'{model} {index}' for model, index in places]}; "
            "expected one multi_head_attention, or layer_0, layer_1, ... of one model without a gap"
        )
    for (model, index), layer in layers.items():
        if missing := [part for part in _PARTS if part not in layer]:
            raise ValueError(f"layer {index}, {model}, has no {missing[0]} with a w")
    return [layers[place] for place in places]
