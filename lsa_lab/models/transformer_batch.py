"""The softmax transformer's predictions for a batch of prompts, in the form that trains fastest.

The same function as ``transformer.forward``, which the tests hold it against. What differs is how
it is computed: one product for all tokens of all prompts; queries, keys and values in one; in the
last layer only the tokens whose label slot is read; softmax weights that are divided by their sum
after they have read the values; and derivatives that keep few arrays and contract them in the
order that a CPU multiplies fastest.
"""

import operator

import jax
import jax.numpy as jnp
from jax import Array

from lsa_lab.models.blocks import layer_params
from lsa_lab.models.transformer_config import Config
from lsa_lab.models.transformer_layers import given
from lsa_lab.models.transformer_weights import Params

_EPSILON = 1e-5  # layer norm, as in ``blocks``
_kept = jax.lax.optimization_barrier  # neither computed again in its readers, nor turned in them


def streams(
    params: Params,
    stream: Array,  # [B, T, D], before the first layer
    gates: Array,  # [L, H]
    read: slice,  # the tokens whose label slots are read
    config: Config,
) -> Array:  # [B, tokens read, D]
    """The last stream of a batch of prompts, at the tokens that are read."""
    leaves, structure = jax.tree.flatten((layer_params(params), gates))
    layers = zip(*map(_apart, leaves), strict=True)
    for index, leaves_of_layer in enumerate(layers):
        layer, gate = jax.tree.unflatten(structure, leaves_of_layer)
        count = config.head_counts[index]
        tokens = read if index == config.num_layers - 1 else slice(None)
        stream = _layer(_cut(layer, count), gate[:count], stream, tokens, config)
    return stream


def _apart(leaf: Array) -> list[Array]:  # [L, ...] -> L of [...]
    """A leaf's layers; the derivative joins them, where that of ``leaf[l]`` is a sum."""
    return [layer[0] for layer in jax.lax.split(leaf, (1,) * len(leaf))]


def _cut(layer: Params, count: int) -> Params:
    """A layer's params without the heads that it lacks."""
    names = ("w_q", "w_k", "w_v", "w_o", "b_q", "b_k", "b_v")
    leaves = {name: getattr(layer, name) for name in names}
    return layer.replace(**jax.tree.map(operator.itemgetter(slice(count)), leaves))


def _layer(layer: Params, gate: Array, stream: Array, tokens: slice, config: Config) -> Array:
    """[B, T, D] -> [B, tokens, D], the stream after one layer."""
    batch, num_tokens, width = stream.shape
    rows = stream.reshape(-1, width)  # [N, D]
    if config.norm:
        rows = layer_norm(rows, layer.attention_norm_scale, layer.attention_norm_offset)
    queries, keys, values = _projected(layer, rows.reshape(stream.shape), tokens)
    is_key, mask = slice(None), None
    if config.layout == "merged" and config.keys != "all":
        is_key = slice(-1)  # nobody reads the query
    if config.keys == "causal":
        mask = jnp.tril(jnp.ones((num_tokens, num_tokens), bool))[tokens, is_key]
    read = attend(queries, keys[:, :, is_key], values[:, :, is_key], mask)  # [B, H, t, k]
    read = read.swapaxes(1, 2).reshape(-1, gate.size * values.shape[-1])
    w_o = _settled((gate[:, None, None] * layer.w_o).swapaxes(0, 1)).reshape(width, -1)
    stream = stream[:, tokens].reshape(-1, width) + project(read, w_o)
    if layer.b_o is not None:
        stream = stream + layer.b_o[None]
    stream = _kept(stream)
    if config.mlp_width is not None:
        rows = stream
        if config.norm:
            rows = layer_norm(rows, layer.mlp_norm_scale, layer.mlp_norm_offset)
        w_in, b_in, w_out, b_out = given(
            layer.mlp_in, layer.mlp_in_bias, layer.mlp_out, layer.mlp_out_bias
        )
        hidden = gelu(project(rows, w_in) + b_in[None])
        stream = _kept(stream + project(hidden, w_out) + b_out[None])
    return stream.reshape(batch, -1, width)


def _projected(layer: Params, rows: Array, tokens: slice) -> list[Array]:  # [B, H, T, k] x 3
    """Queries of ``tokens``, keys and values of all, by as few products as that takes."""
    num_heads, k, width = layer.w_q.shape
    weights = [layer.w_q, layer.w_k, layer.w_v]
    biases = given(layer.b_q, layer.b_k, layer.b_v)

    def together(which: slice, rows: Array) -> list[Array]:
        w = jnp.concatenate(weights[which])  # of 1, 2 or 3 H heads
        projected = project(rows.reshape(-1, width), w.reshape(-1, width))
        if biases:
            projected = projected + jnp.concatenate(biases[which]).reshape(1, -1)
        parts = projected.reshape(len(rows), -1, len(w) // num_heads, num_heads, k)
        return list(parts.transpose(2, 0, 3, 1, 4))

    if tokens == slice(None):
        return together(slice(None), rows)
    return together(slice(1), rows[:, tokens]) + together(slice(1, None), rows)


@jax.custom_vjp
def project(rows: Array, w: Array) -> Array:  # [N, D], [m, D] -> [N, m]
    """W u for every row u; the derivative by W turns the narrower factor, not the wider."""
    return rows @ w.T


def _project_back(inputs: tuple[Array, Array], out: Array) -> tuple[Array, Array]:
    rows, w = inputs
    if rows.shape[1] < out.shape[1]:
        return out @ w, _settled(_kept(_kept(rows.T) @ out).T)
    return out @ w, _kept(out.T) @ rows


def _settled(matrix: Array) -> Array:
    """The matrix in memory row by row, not as a turned view that its readers go through slowly."""
    return _kept(matrix.reshape(-1)).reshape(matrix.shape)


project.defvjp(lambda rows, w: (project(rows, w), (rows, w)), _project_back)


@jax.custom_vjp
def gelu(hidden: Array) -> Array:
    """gelu in its tanh form; the derivative computes the tanh again instead of keeping it."""
    return jax.nn.gelu(hidden)


gelu.defvjp(
    lambda hidden: (gelu(hidden), hidden),
    lambda hidden, out: jax.vjp(jax.nn.gelu, _kept(hidden))[1](out),
)


@jax.custom_vjp
def layer_norm(rows: Array, scale: Array, offset: Array) -> Array:  # [N, D], [D], [D] -> [N, D]
    """``blocks.layer_norm``; the derivative keeps the rows and two numbers for each."""
    return _normed(rows, scale, offset)[0]


def _normed(rows: Array, scale: Array, offset: Array) -> tuple[Array, tuple]:
    mean = rows.mean(-1, keepdims=True)
    inverse = 1 / jnp.sqrt(((rows - mean) ** 2).mean(-1, keepdims=True) + _EPSILON)
    normed = (rows - mean) * inverse * scale[None] + offset[None]
    return _kept(normed), (rows, mean, inverse, scale)


def _normed_back(kept: tuple, out: Array) -> tuple[Array, Array, Array]:
    rows, mean, inverse, scale = kept
    unit = (rows - mean) * inverse
    scaled = out * scale[None]
    along = (scaled * unit).mean(-1, keepdims=True)
    back = inverse * (scaled - scaled.mean(-1, keepdims=True) - unit * along)
    return back, (out * unit).sum(0), out.sum(0)


layer_norm.defvjp(_normed, _normed_back)


@jax.custom_vjp
def attend(
    queries: Array,  # [B, H, t, k]
    keys: Array,  # [B, H, i, k]
    values: Array,  # [B, H, i, k]
    mask: Array | None,  # [t, i], None: every key may be read
) -> Array:  # [B, H, t, k]
    """What softmax attention reads, Σ_i exp(s_ti - max) v_i / Σ_i exp(s_ti - max)."""
    return _attended(queries, keys, values, mask)[0]


def _attended(
    queries: Array, keys: Array, values: Array, mask: Array | None
) -> tuple[Array, tuple]:
    scores = queries @ keys.swapaxes(2, 3)
    if mask is not None:
        scores = jnp.where(mask[None, None], scores, -jnp.inf)
    powers = _kept(jnp.exp(scores - scores.max(-1, keepdims=True)))
    inverse = 1 / powers.sum(-1, keepdims=True)
    read = (powers @ values) * inverse
    return read, (queries, keys, values, powers, inverse, read)


def _attended_back(kept: tuple, out: Array) -> tuple[Array, Array, Array, None]:
    """d s_ti = a_ti (d r_t · v_i - d r_t · r_t), a = powers · inverse and r what is read."""
    queries, keys, values, powers, inverse, read = kept
    out = _kept(out * inverse)
    along = (out * read).sum(-1, keepdims=True)
    d_scores = _kept(powers * (out @ values.swapaxes(2, 3) - along))
    d_keys = _kept(_kept(queries.swapaxes(2, 3)) @ d_scores).swapaxes(2, 3)
    d_values = _kept(_kept(out.swapaxes(2, 3)) @ powers).swapaxes(2, 3)
    return d_scores @ keys, d_keys, d_values, None


attend.defvjp(_attended, _attended_back)
