"""The stacks of `amplification`: random, constructed, and those to be trained.

The gain of a stack is the size of what a layer writes to a token, over that of the token.
"""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.flow.pairs import draw
from experiments.models.stacks import Stack
from lsa_lab.models import constructions, linear_attention, transformer

UNMASKED = partial(linear_attention.forward, keys="all")  # as in A1: the query is a key
_MATRICES = ("w_kq", "w_pv", "w_q", "w_k", "w_v", "w_o", "mlp_in", "mlp_out")


def linear(rng, runs, depth, d):  # -> Params [R, L, ...]
    """Random untied stacks of gain 1, for tokens whose squared length is about 2d."""
    weights = rng.normal(size=(2, runs, depth, 1, d + 1, d + 1))
    return linear_attention.Params(*weights / (2 * d * (d + 1) ** 0.5) ** 0.5)


def nonlinear(key, runs, model):  # -> Params [R, L, ...]
    """The same for a transformer, whose scores have about the gain for their size, too."""
    many = dataclasses.replace(model, num_layers=runs * model.num_layers)
    deep = jax.jit(partial(transformer.init, config=many))(key)  # layers do not know each other
    return jax.tree.map(lambda leaf: leaf.reshape(runs, -1, *leaf.shape[1:]), deep)


def amplified(params, gain):
    """Matrices times √gain."""
    named = {name: getattr(params, name, None) for name in _MATRICES}
    return params.replace(**{k: gain**0.5 * v for k, v in named.items() if v is not None})


def tied(params):
    """The first layer again and again."""
    return jax.tree.map(lambda leaf: np.broadcast_to(leaf[:, :1], leaf.shape), params)


def skipped(params, weight):
    """The stack h_{t+1} = weight · h_t + attention(h_t), as one whose stream is h_t / weightᵗ.

    The flows of both differ by the factor weightᴸ, which no ratio sees. Linear attention is cubic:
    w_pv of layer t is multiplied by weight^{2t-1}. Softmax: w_q by weight^{2t} and w_o by 1/weight;
    exact without norm and MLP (derived here).
    """

    def each(leaf, power, offset):  # [R, L, ...]
        t = np.arange(leaf.shape[1]).reshape(1, -1, *(1,) * (leaf.ndim - 2))
        return leaf * weight ** (power * t + offset)

    if isinstance(params, linear_attention.Params):
        return params.replace(w_pv=each(params.w_pv, 2, -1))
    return params.replace(w_q=each(params.w_q, 2, 0), w_o=each(params.w_o, 0, -1))


def shape(config, kind):
    """Of a random transformer: "norm" has softmax, "MLP" a norm."""
    norm, mlp_width = kind in ("norm", "MLP"), config.mlp_width if kind == "MLP" else None
    e, depth = config.d + 1, config.depth
    sizes = dict(token_width=e, num_layers=depth, heads=1, key_width=e, mlp_width=mlp_width)
    return transformer.Config(**sizes, keys="all", norm=norm, init_scale=1.0)


def variants(base, config):  # -> {name: Params [R, L, ...]}
    """What is looked at of a random stack; push and pull are w_kq = cI, w_pv = ± cI."""
    found = {f"gain {gain:g}": amplified(base, gain) for gain in config.gains}
    found |= {f"tied, {name}": tied(params) for name, params in found.items()}
    if getattr(base, "attention_norm_scale", None) is None:
        middle = found[f"gain {config.gain:g}"]
        found |= {f"skip {weight:g}": skipped(middle, weight) for weight in config.skips}
    if isinstance(base, linear_attention.Params):
        size = (config.feedback / (2 * config.d)) ** 0.5
        same = np.broadcast_to(size * np.eye(config.d + 1), base.w_kq.shape)
        found |= {"push": base.replace(w_kq=same, w_pv=same)}
        found |= {"pull": base.replace(w_kq=same, w_pv=-same)}
    return found


def masked(base, known, config):  # -> {name: Params [R, L, ...]}
    """Where nobody reads the query: constructions with the step of the best single layer for one
    demonstration; random weights; and these with skew w_kq: d·K d = 0, the demonstration stays."""
    steps = np.full(config.depth, 1 / (config.d + 2))
    best = constructions.one_step_optimum(jnp.eye(config.d), 1, 0.0)
    descent = jax.tree.map(lambda leaf: np.repeat(leaf, config.depth, axis=0), best)
    plus = constructions.gradient_descent_plus_plus(steps, steps, config.d)
    same = {"descent": descent, "GD++": plus}
    for name, stack in same.items():
        same[name] = jax.tree.map(lambda leaf: np.repeat(leaf[None], config.runs, axis=0), stack)
    prior = jax.vmap(partial(constructions.prior_attention, steps))(known)
    free = tied(amplified(base, config.gain))
    frozen = free.replace(w_kq=(free.w_kq - free.w_kq.swapaxes(-1, -2)) / 2)
    return same | {"prior": prior, "tied": free, "frozen": frozen}


def cases(config):
    """Case, forward, Params [R, L, ...] and Prompt [R, B] of all that are not trained."""
    rng = np.random.default_rng(config.seed)
    batch, known = draw(rng, config.runs, config.pairs, config.d)
    base = linear(rng, config.runs, config.depth, config.d)
    for name, params in variants(base, config).items():
        yield f"linear: {name}", UNMASKED, params, batch
    for name, params in masked(base, known, config).items():
        yield f"masked: {name}", linear_attention.forward, params, batch
    for tag, kind in enumerate(config.kinds[1:]):
        key, model = jax.random.fold_in(jax.random.key(config.seed), tag), shape(config, kind)
        forward = partial(transformer.forward, config=model)
        for name, params in variants(nonlinear(key, config.runs, model), config).items():
            yield f"{kind}: {name}", forward, params, batch
    for d in config.widths:
        batch, _ = draw(rng, config.runs, config.pairs, d)
        params = amplified(linear(rng, config.runs, config.depth, d), config.gain)
        yield f"linear: d = {d}", UNMASKED, params, batch


def to_train(config):
    """The trained ones, {kind: Stack}; `many_shot_flow` has the first two as well."""
    sizes = (config.d, config.shots, config.trained_depth)
    rate = config.learning_rate
    behind = (config.norm_steps, config.softmax_batch, config.norm_learning_rate, 1, config.width)
    found = {
        "linear": ("linear", *sizes, config.linear_steps, config.linear_batch, rate),
        "softmax": ("softmax", *sizes, config.softmax_steps, config.softmax_batch, rate),
        "norm": ("softmax", *sizes, *behind, True),
        "MLP": ("softmax", *sizes, *behind, True, config.mlp_width),
    }
    heads = {"softmax": {"heads": config.heads}}
    return {k: Stack(*found[k], **heads.get(k, {})) for k in config.trained_kinds}
