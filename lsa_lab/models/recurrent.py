"""Recurrent layers as one recurrence: tokens write to and read from a state S [k, v] of each head.

Token t, with u_t its row of the (normed) stream, writes rank-one changes and then reads,

    S ← diag(g) S - a (rᵀS) + b vᵀ,  read Sᵀq,  q = W_q u, k = W_k u, v = W_v u,

and W_o of the read is added to the stream, then an MLP if there is one. Each kind chooses
the gate g, what is erased (a, r) and what is written, b; k̂ = k/|k|, and β is the token's step:

    additive       g 1               a 0            b k        linear attention, 2006.16236
    retention      a constant a head a 0            b k        RetNet, 2307.08621
    gla            g of the token    a 0            b k        2312.06635
    ssd            g = exp(-cβ)      a 0            b βk       Mamba-2, 2405.21060
    lms            g 1               a βk, r k      b βk       Widrow and Hoff 1960
    longhorn       lms with β/(1 + β|k|²), the implicit step    2407.14207
    delta          lms with k̂        β in (0, 2)               DeltaNet, 2406.06484
    gated_delta    g of the token    a βk̂, r g k̂    b βk̂      2412.06464; diagonal: 2510.26692
    gdn2           diagonal g        a k̂, r g β⊙k̂   b k̂       2605.22791, β a step a channel
    delta_product  delta, ``inner`` keys and values a token     2502.10297
    ttt            lms, ``inner`` steps on one key, β of any sign       TTT-linear, 2407.04620
    rwkv7          diagonal g        a α⊙k̂, r k̂     b α⊙k̂     2503.14456, α a step a channel
    mesa           S = (Σ βkkᵀ + λI)⁻¹ Σ βkvᵀ, sums with gates  2309.05858, MesaNet 2506.05233

where gdn2 writes v times a gate for each channel, and only ``solve="cholesky"`` keeps mesa's λ: by
default gates forget it too, λ Π g (docs/theory, "The state as a regression"). In the merged layout
the query reads and writes nothing; bound tokens [x_t, x_{t-1}, y_{t-1}] all write and read
(``prompts.bound_tokens``).
"""

import dataclasses
import functools
from collections.abc import Callable

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lsa_lab.arguments import is_concrete
from lsa_lab.estimators.prefixes import recursive_least_squares
from lsa_lab.models import recurrent_state
from lsa_lab.models import trace as traces
from lsa_lab.models.blocks import (
    check_tokens,
    head_gates,
    layer_norm,
    layer_params,
    mlp,
    run_layers,
)
from lsa_lab.models.recurrent_state import Writes
from lsa_lab.models.recurrent_weights import Config, Params, init
from lsa_lab.models.trace import Trace, Walk
from lsa_lab.models.transformer_layers import not_none


def forward(
    params: Params,
    tokens: Array,  # [T, e]
    config: Config,
    head_mask: Array | None = None,  # [L, H]
) -> Trace:
    """Read in, run every layer, and return the stream and the heads' writes.

    Args:
        tokens: one prompt in the layout of the config, merged or bound.
        head_mask: a factor for what each head writes.

    Returns:
        A Trace with stream [L+1, T, D] and heads [L, H, T, D].

    Raises:
        ValueError, TypeError, AssertionError: tokens or params do not fit the config.
    """
    _check(params, tokens, config)
    gates = head_gates(head_mask, config.num_layers, config.num_heads, tokens.dtype)
    return _forward(params, tokens, gates, config)


@functools.partial(jax.jit, static_argnames="config")
def _forward(params: Params, tokens: Array, gates: Array, config: Config) -> Trace:
    stream = tokens if params.read_in is None else tokens @ params.read_in.T

    def layer(stream: Array, weights: tuple[Params, Array]) -> tuple[Array, tuple]:
        params, gate = weights
        rows = _normalise(stream, params.attention_norm_scale, params.attention_norm_offset)
        # One head after the other: a CPU takes five times longer for ``vmap`` below a caller's.
        read = jax.lax.map(lambda head: _read(head, rows, config), _head_params(params))
        heads = jnp.einsum("hdv,htv->htd", gate[:, None, None] * params.w_o, read)
        stream = stream + heads.sum(0)
        if config.mlp_width is not None:
            rows = _normalise(stream, params.mlp_norm_scale, params.mlp_norm_offset)
            leaves = not_none(
                params.mlp_in, params.mlp_in_bias, params.mlp_out, params.mlp_out_bias
            )
            stream = stream + mlp(rows, *leaves)
        return stream, (stream, heads)

    later, heads = run_layers(layer, stream, (layer_params(params), gates), heavy=True)
    return traces.collect(stream, later, heads, params.read_out)


def predict(
    params: Params, tokens: Array, config: Config, head_mask: Array | None = None
) -> Array:  # []
    """Return ŷ = minus the query's label slot after the last layer."""
    return traces.predict(forward(params, tokens, config, head_mask))


def predict_prefixes(
    params: Params, tokens: Array, config: Config, head_mask: Array | None = None
) -> Array:  # [n+1]
    """Return ŷ at x_1, ..., x_n and the query, each from the pairs before it, of bound tokens."""
    if config.layout != "bound":
        raise ValueError(f"layout is {config.layout!r}, where only the query has a prediction")
    return -traces.label_slots(forward(params, tokens, config, head_mask))[-1]


def attention(params: Params, trace: Walk, config: Config) -> Array:  # [L, H, T, T(, J)]
    """Return the α_ti with which token t (third axis) reads the value v_i of token i (fourth).

    α_ti = q_tᵀ [Π_{i<s≤t} (diag(g_s) - a_s r_sᵀ)] b_i, the latest s on the left (2403.01590 has it
    for Mamba).

    For mesa α_ti is q_tᵀ (Σ βkkᵀ + λI)⁻¹ β_i k_i Π_{i<s≤t} g_s. An additive layer with
    ``normalise`` divides it by how many tokens have written. The values of gdn2 are those that its
    gate lets through. Where a token writes J > 1 values, a last axis J counts them.
    """
    return _map_heads(_weights, params, trace, config)


def states(params: Params, tokens: Array, config: Config) -> Array:  # [L, H, T, k, v]
    """Return the state of every head after every token.

    Raises ValueError for a concrete state that is not finite.
    """
    trace = forward(params, tokens, config)
    values = _map_heads(_states, params, trace, config)
    if is_concrete(values):
        broken = np.argwhere(~np.isfinite(np.asarray(values)).all((-1, -2)))
        if len(broken):
            layer, head, token = broken[np.argmin(broken[:, 2])]
            raise ValueError(
                f"the state of layer {layer}, head {head}, counted from 0, is not finite after "
                f"token {token}: smaller steps, normalised keys or a penalty keep it bounded"
            )
    return values


def _weights(head: Params, rows: Array, config: Config) -> Array:  # [T, T] or [T, T, J]
    length, per_token = len(rows), config.keys_a_token
    units = jnp.eye(length * per_token, dtype=rows.dtype).reshape(length, -1)
    read = _read(head, rows, config, units)  # [T, T J]
    return read if per_token == 1 else read.reshape(length, length, per_token)


@functools.partial(jax.jit, static_argnums=(0, 3))
def _map_heads(read: Callable, params: Params, trace: Walk, config: Config) -> Array:
    """Return ``read(head, rows, config)`` of every layer and head, from the stream before each."""

    def layer(params: Params, stream: Array) -> Array:
        rows = _normalise(stream, params.attention_norm_scale, params.attention_norm_offset)
        return jax.vmap(lambda head: read(head, rows, config))(_head_params(params))

    return jax.vmap(layer)(layer_params(params), trace.stream[:-1])


def _head_params(params: Params) -> Params:
    """Return one layer's Params with None for each leaf without an axis of heads, and for w_o."""
    owned = ("w_q", "w_k", "w_v", "w_step", "b_step", "w_gate", "b_gate", "w_write", "b_write")
    others = {field.name for field in dataclasses.fields(params)} - {*owned, "log_penalty"}
    return params.replace(**dict.fromkeys(others))


def _normalise(stream: Array, scale: Array | None, offset: Array | None) -> Array:  # [T, D]
    return stream if scale is None or offset is None else layer_norm(stream, scale, offset)


def _read(
    head: Params,
    rows: Array,  # [T, D]
    config: Config,
    values: Array | None = None,  # [T, v]
) -> Array:  # [T, v]
    """Return Sᵀq after every token, by default of the head's values."""
    queries, values = rows @ head.w_q.T, _values(head, rows) if values is None else values
    if config.kind == "mesa":
        return jnp.einsum("tkv,tk->tv", _regressions(head, rows, config, values), queries)
    writes = _writes(head, rows, config, values)
    reads = recurrent_state.reads(writes, jnp.repeat(queries, config.inner, 0))
    read = reads[config.inner - 1 :: config.inner]
    if config.kind == "additive" and config.normalise:
        read = read / jnp.maximum(jnp.cumsum(_write_mask(rows, config)), 1)[:, None]
    return read


def _states(head: Params, rows: Array, config: Config) -> Array:  # [T, D] -> [T, k, v]
    values = _values(head, rows)
    if config.kind == "mesa":
        return _regressions(head, rows, config, values)
    states = recurrent_state.compute_states(_writes(head, rows, config, values))
    return states[config.inner - 1 :: config.inner]


def _values(head: Params, rows: Array) -> Array:  # [T, D] -> [T, J v]
    values = rows @ head.w_v.T
    if head.w_write is None or head.b_write is None:
        return values
    return jax.nn.sigmoid(rows @ head.w_write.T + head.b_write[None]) * values


def _regressions(
    head: Params, rows: Array, config: Config, values: Array
) -> Array:  # [T, D], [T, v] -> [T, k, v]
    """Return the states of mesa after every token."""
    assert head.log_penalty is not None  # every mesa layer has one
    writing, (step, gate) = _write_mask(rows, config), _step_and_gate(head, rows, config)
    step, gate = writing * step[:, 0], 1 - writing * (1 - gate[:, 0])
    recursive = config.solve == "recursive"
    solve = recursive_least_squares if recursive else recurrent_state.solve_regressions
    return solve(step, gate, rows @ head.w_k.T, values, jnp.exp(head.log_penalty))


def _write_mask(rows: Array, config: Config) -> Array:  # [T]
    """Return 1 for each token that writes, 0 for the query of the merged layout."""
    ones = jnp.ones(len(rows), rows.dtype)
    return ones if config.layout == "bound" else ones.at[-1].set(0)


def _step_and_gate(head: Params, rows: Array, config: Config) -> tuple[Array, Array]:
    """Return β [T, j] and g [T, 1 or k] of every token."""
    step, gate = jnp.ones((len(rows), 1), rows.dtype), jnp.ones((len(rows), 1), rows.dtype)
    if head.w_step is not None and head.b_step is not None:
        raw = rows @ head.w_step.T + head.b_step[None]
        rate = config.largest_step * jax.nn.sigmoid(raw)
        positive = config.kind in ("ssd", "lms", "longhorn")
        step = jax.nn.softplus(raw) if positive else raw if config.kind == "ttt" else rate
    if head.b_gate is not None and config.kind == "ssd":
        gate = jnp.exp(-jnp.exp(head.b_gate)[None] * step)
    elif head.b_gate is not None:
        raw = head.b_gate[None]
        if head.w_gate is not None:
            raw = raw + rows @ head.w_gate.T
        gate = jnp.broadcast_to(jax.nn.sigmoid(raw), (len(rows), config.gate_width))
    return step, gate


def _writes(
    head: Params,
    rows: Array,  # [T, D]
    config: Config,
    values: Array,  # [T, J v]
) -> Writes:  # leaves [T J, ...]
    """Return the changes of the state by every token."""
    kind, writing = config.kind, _write_mask(rows, config)[:, None]
    step, gate = _step_and_gate(head, rows, config)
    keys = (rows @ head.w_k.T).reshape(-1, config.key_width)  # [T J, k]
    value = values.reshape(len(keys), -1)
    if kind in ("delta", "gated_delta", "gdn2", "delta_product", "rwkv7"):
        keys = recurrent_state.unit_rows(keys)
    step = step / (1 + step * (keys**2).sum(-1, keepdims=True)) if kind == "longhorn" else step
    step, fading = writing * step, None if head.b_gate is None else 1 - writing * (1 - gate)
    step = step.reshape(-1, 1) if kind == "delta_product" else step
    if kind == "ttt":
        step, keys, value = (jnp.repeat(leaf, config.inner, 0) for leaf in (step, keys, value))
    if kind in ("additive", "retention", "gla", "ssd"):
        return Writes(step * keys, value, None, fading)
    removed = keys if fading is None or kind == "rwkv7" else fading * keys
    if kind == "gdn2":
        return Writes(writing * keys, value, step * removed, fading)
    return Writes(step * keys, value, removed, fading)


def _check(params: Params, tokens: Array, config: Config) -> None:
    check_tokens(tokens)
    if tokens.shape[1] != config.token_width:
        raise ValueError(
            f"tokens have width {tokens.shape[1]}, and the config token_width {config.token_width}"
        )
    if not len(tokens):
        raise ValueError("tokens has no rows: give a query at least")
    penalty = params.log_penalty
    if penalty is not None and is_concrete(penalty):
        penalties = np.exp(np.asarray(penalty))
        if not (penalties > 0).all():
            raise ValueError(
                "a penalty exp(log_penalty) is 0 or NaN: the first keys leave the sums singular"
            )
    # LMS may have a gate, as its closed curve has (docs/theory, "Any covariance").
    checked = params.replace(w_gate=None, b_gate=None) if config.kind == "lms" else params
    words = f"params do not fit the config of {config.kind} layers; draw them with init"
    chex.assert_trees_all_equal_shapes(checked, _shapes(config), custom_message=words)


@functools.cache
def _shapes(config: Config) -> Params:
    return jax.eval_shape(lambda key: init(key, config), jax.random.key(0))
