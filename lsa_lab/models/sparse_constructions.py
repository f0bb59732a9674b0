"""Preprocess-then-optimise as a transformer: many heads in the first layer, one in each later one.

The first layer weighs each coordinate by its correlation with the labels, the others descend.
"""

import chex
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import DTypeLike

from lsa_lab.arguments import as_floats, check_size
from lsa_lab.models.transformer_config import Config
from lsa_lab.models.transformer_weights import Params


def preprocess_then_optimise(
    d: int,
    num_heads: int,
    step_sizes: Array,  # [steps]
    raw_step_sizes: Array | None = None,  # [steps]
) -> tuple[Params, Config]:
    """Return one layer of ``num_heads`` heads, then one head a step, and the transformer's config.

    ``trace.layer_predictions`` is [0, ŷ_0, ŷ_1, ...]: the path starts after layer 1.

    The stream is [x (d), x̃ (H), y]. With r = Xᵀy/n, head g of layer 1 reads the coordinates of its
    group and writes x̃_g = Σ_{j in g} r_j x_j =: (Fx)_g; step t then takes

        w ← w + (α_t I + β_t FᵀF) Xᵀ(y - Xw)/n,    β = step_sizes, α = raw_step_sizes or 0.

    d heads: FᵀF = diag(r²), ``estimators.mixed_gradient_descent`` (modelled on Chen et al.
    2408.04532; weights derived here, docs/theory, "The preprocessing construction"). Fewer:
    neighbours share a head, in groups whose sizes differ by one at most; a single head leaves the
    one feature r·x.
    """
    step_sizes = as_floats(step_sizes)
    chex.assert_rank(step_sizes, 1, custom_message="step_sizes has one entry for each step")
    alphas = jnp.zeros_like(step_sizes) if raw_step_sizes is None else jnp.asarray(raw_step_sizes)
    chex.assert_equal_shape(
        [step_sizes, alphas], custom_message="raw_step_sizes: one for each of step_sizes"
    )
    groups = coordinate_groups(d, num_heads)
    keys = d + num_heads if raw_step_sizes is not None else max(num_heads, groups.sum(1).max())
    config = Config(
        token_width=d + 1,
        num_layers=1 + step_sizes.shape[0],
        heads=(num_heads,) + (1,) * step_sizes.shape[0],
        key_width=int(keys),
        width=d + num_heads + 1,
        kernel="linear",
    )
    w_k = _keys(config, groups, step_sizes.dtype)
    factors = jnp.concatenate(
        [jnp.tile(alphas[:, None], d), jnp.tile(step_sizes[:, None], num_heads)], axis=1
    )
    w_q = w_k.at[1:, 0, :, :-1].multiply(factors[:, None])
    w_v = jnp.zeros_like(w_k).at[0, :, 0, -1].set(1).at[1:, 0, 0, -1].set(1)  # reads labels
    heads = np.arange(num_heads)  # they write features, and later ones to the label
    w_o = jnp.zeros_like(w_k).swapaxes(2, 3).at[0, heads, d + heads, 0].set(1)
    w_o = w_o.at[1:, 0, -1, 0].set(-1)
    slots = jnp.eye(config.stream_width, dtype=step_sizes.dtype)
    read_in = jnp.concatenate([slots[:, :d], slots[:, -1:]], axis=1)
    return Params(w_q, w_k, w_v, w_o, read_in=read_in, read_out=slots[-1]), config


def coordinate_groups(d: int, num_heads: int) -> np.ndarray:  # [H, d] bool
    """Return the coordinates that each head of the first layer reads: neighbours, in equal parts.

    >>> coordinate_groups(3, 2).astype(int).tolist()
    [[1, 1, 0], [0, 0, 1]]
    """
    check_size(num_heads, d, "coordinates", "num_heads")
    places = np.arange(d)
    return np.stack([np.isin(places, part) for part in np.array_split(places, num_heads)])


def _keys(config: Config, groups: np.ndarray, dtype: DTypeLike) -> Array:  # [L, H, k, D]
    """Return keys that hold a head's coordinates in layer 1, and later x̃, and x if it fits."""
    num_heads, d = groups.shape
    shape = (config.num_layers, num_heads, config.key_width, config.stream_width)
    places = (groups.cumsum(1) - 1)[groups]  # [d]
    w_k = jnp.zeros(shape, dtype).at[0, groups.nonzero()[0], places, np.arange(d)].set(1)
    features = np.arange(num_heads)
    w_k = w_k.at[1:, 0, features, d + features].set(1)
    if config.key_width < d + num_heads:
        return w_k
    return w_k.at[1:, 0, num_heads + np.arange(d), np.arange(d)].set(1)
