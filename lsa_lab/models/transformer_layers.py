"""A transformer's layers: attention and MLP on the stream; ``transformer`` has the formulas."""

import functools
import itertools
import operator

import jax
import jax.numpy as jnp
from jax import Array

from lsa_lab.models import blocks
from lsa_lab.models.blocks import causal_read, gated, key_mask, layer_norm, mlp, run_layers
from lsa_lab.models.transformer_weights import Config, Params


def run(
    stream: Array, weights: tuple[Params, Array, Array | None], config: Config
) -> tuple[Array, Array]:  # [L, T, D], [L, H, T, D]
    """Neighbours with equally many heads run together, cut to them; absent heads write 0."""
    layer = functools.partial(_layer, config=config)
    later, writes, start = [], [], 0
    for count, group in itertools.groupby(config.head_counts):
        stop = start + len(list(group))
        layers, *gates = jax.tree.map(operator.itemgetter(slice(start, stop)), weights)
        present = operator.itemgetter((slice(None), slice(count)))
        cut = {name: present(getattr(layers, name)) for name in ("w_q", "w_k", "w_v", "w_o")}
        together = (layers.replace(**cut), *jax.tree.map(present, gates))
        states, heads = run_layers(layer, stream, together, heavy=True)
        later.append(states)
        writes.append(jnp.pad(heads, ((0, 0), (0, config.num_heads - count), (0, 0), (0, 0))))
        stream, start = states[-1], stop
    return jnp.concatenate(later), jnp.concatenate(writes)


def attention_weights(layer: Params, stream: Array, config: Config) -> Array:  # [H, T, T]
    """The a_ti of every head."""
    rows = _normed(layer, stream, config)
    mask = key_mask(config.keys, rows.shape[0])[0]
    if config.layout == "interleaved":
        mask = jnp.tril(jnp.ones_like(mask))
    queries, keys = _queries_and_keys(layer, rows, config)
    return blocks.attention_weights(queries, keys, mask, config.kernel)


def _layer(
    stream: Array, weights: tuple[Params, Array, Array | None], config: Config
) -> tuple[Array, tuple[Array, Array]]:  # [T, D], ([T, D], [H, T, D])
    """One layer: Params without the axis L, a gate for each head, and what fills a closed one.

    Heads are summed inside the product; what each writes costs nothing where nobody reads it.
    """
    layer, gate, fill = weights
    read = _read(layer, stream, config)  # [H, T, k]
    w_o = gated(gate, layer.w_o)
    heads = jnp.einsum("hdk,htk->htd", w_o, read)
    stream = stream + jnp.einsum("hdk,htk->td", w_o, read)
    if fill is not None:
        heads, stream = heads + fill, stream + fill.sum(0)
    if config.mlp_width is not None:
        rows = stream
        if config.norm:
            rows = layer_norm(stream, *_given(layer.mlp_norm_scale, layer.mlp_norm_offset))
        weights_and_biases = _given(
            layer.mlp_in, layer.mlp_in_bias, layer.mlp_out, layer.mlp_out_bias
        )
        stream = stream + mlp(rows, *weights_and_biases)
    return stream, (stream, heads)


def _read(layer: Params, stream: Array, config: Config) -> Array:  # [H, T, k]
    """Σ_i a_ti W_V u_i for every head; the linear kernel never forms a."""
    rows = _normed(layer, stream, config)
    values = _project(layer.w_v, rows)
    if config.kernel == "softmax":
        return attention_weights(layer, stream, config) @ values
    queries, keys = _queries_and_keys(layer, rows, config)
    if config.layout == "merged" and config.keys != "all":
        keys = keys.at[:, -1].set(0)  # nobody reads the query
    if config.keys == "causal":
        return jax.vmap(causal_read)(queries, keys, values)
    return queries @ (keys.swapaxes(1, 2) @ values)


def _queries_and_keys(
    layer: Params, rows: Array, config: Config
) -> tuple[Array, Array]:  # [H, T, k] x 2
    """W_Q u_t, for the linear kernel divided by n, or by t in the interleaved layout; and W_K u_i.

    Every score is a product of the two.
    """
    queries, keys = _project(layer.w_q, rows), _project(layer.w_k, rows)
    if config.kernel == "softmax" or not config.normalise:
        return queries, keys
    num_tokens = rows.shape[0]
    if config.layout == "merged":
        return queries / (num_tokens - 1), keys
    return queries / jnp.arange(1, num_tokens + 1, dtype=rows.dtype)[None, :, None], keys


def _normed(layer: Params, stream: Array, config: Config) -> Array:  # [T, D]
    if not config.norm:
        return stream
    return layer_norm(stream, *_given(layer.attention_norm_scale, layer.attention_norm_offset))


def _given(*leaves: Array | None) -> list[Array]:
    """The leaves that are not None: all of them where the config has their part."""
    return [leaf for leaf in leaves if leaf is not None]


def _project(weights: Array, rows: Array) -> Array:  # [H, k, D], [T, D] -> [H, T, k]
    return jnp.einsum("hkd,td->htk", weights, rows)
