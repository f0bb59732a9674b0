"""The stacks of `amplification`: random, constructed, and trained ones as they read a prompt."""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.flow import pair_stacks, pairs
from experiments.models.model import forward, init
from lsa_lab import prompts
from lsa_lab.models import constructions, linear_attention, transformer
from lsa_lab.prompts import Prompt


def untrained_cases(config):
    """Case, forward, Params [R, L, ...] and Prompt [R, B] of all that are not trained."""
    rng = np.random.default_rng(config.seed)
    batch, prior = pairs.draw(rng, config.runs, config.pairs, config.d)
    base = pair_stacks.random_linear(rng, config.runs, config.depth, config.d)
    for name, params in variants(base, config).items():
        yield f"linear: {name}", pair_stacks.UNMASKED, params, batch
    same = masked_stacks(base, prior, config)
    many, _ = pairs.draw(rng, config.runs, config.many_pairs, config.d, prior)
    for name, params in same.items():
        yield f"masked: {name}", linear_attention.forward, params, many
    for tag, kind in enumerate(config.kinds[1:]):
        key, model = jax.random.fold_in(jax.random.key(config.seed), tag), shape(config, kind)
        forward = partial(transformer.forward, config=model)
        for name, params in variants(random_transformers(key, config.runs, model), config).items():
            yield f"{kind}: {name}", forward, params, batch
    for d in config.widths:
        batch, _ = pairs.draw(rng, config.runs, config.pairs, d)
        stack = pair_stacks.random_linear(rng, config.runs, config.depth, d)
        params = pair_stacks.amplify(stack, config.gain)
        yield f"linear: d = {d}", pair_stacks.UNMASKED, params, batch


def shape(config, kind):
    """A random transformer's: "norm" has softmax, "MLP" a norm."""
    norm, mlp_width = kind in ("norm", "MLP"), config.mlp_width if kind == "MLP" else None
    e, depth = config.d + 1, config.depth
    sizes = dict(token_width=e, num_layers=depth, heads=1, key_width=e, mlp_width=mlp_width)
    return transformer.Config(**sizes, keys="all", norm=norm, init_scale=1.0)


def random_transformers(key, runs, model):  # -> Params [R, L, ...]
    """Random transformers of about gain 1, whose scores are of about that size, too."""
    many = dataclasses.replace(model, num_layers=runs * model.num_layers)
    deep = jax.jit(partial(transformer.init, config=many))(key)  # layers do not know each other
    return jax.tree.map(lambda leaf: leaf.reshape(runs, -1, *leaf.shape[1:]), deep)


def variants(base, config):  # -> {name: Params [R, L, ...]}
    """A random stack of every gain, tied or not, and with weaker residual connections; where it is
    linear also push and pull, w_kq = cI and w_pv = ± cI."""
    by_name = {f"gain {gain:g}": pair_stacks.amplify(base, gain) for gain in config.gains}
    by_name |= {f"tied, {name}": pair_stacks.tie(params) for name, params in by_name.items()}
    if getattr(base, "attention_norm_scale", None) is None:
        for weight in config.skips:
            skipped = jax.vmap(partial(constructions.skipped, weight=weight))
            by_name[f"skip {weight:g}"] = skipped(by_name[f"gain {config.gain:g}"])
    if isinstance(base, linear_attention.Params):
        size = (config.feedback / (2 * config.d)) ** 0.5
        same = np.broadcast_to(size * np.eye(config.d + 1), base.w_kq.shape)
        by_name |= {"push": base.replace(w_kq=same, w_pv=same)}
        by_name |= {"pull": base.replace(w_kq=same, w_pv=-same)}
    return by_name


def masked_stacks(base, prior, config):  # -> {name: Params [R, L, ...]}
    """Stacks in which nobody reads the query: constructions with the step of the best single layer
    for one demonstration; and random weights with which a demonstration that is alone stays."""
    steps = np.full(config.depth, 1 / (config.d + 2))
    best = constructions.one_step_optimum(jnp.eye(config.d), 1, 0.0)
    descent = jax.tree.map(lambda leaf: np.repeat(leaf, config.depth, axis=0), best)
    plus = constructions.gradient_descent_plus_plus(steps, steps, config.d)
    same = {
        name: jax.tree.map(lambda leaf: np.repeat(leaf[None], config.runs, axis=0), stack)
        for name, stack in {"descent": descent, "GD++": plus}.items()
    }
    priors = jax.vmap(partial(constructions.prior_attention, steps))(prior)
    tied = pair_stacks.tie(pair_stacks.amplify(base, config.gain))
    return same | {"prior": priors, "frozen": pair_stacks.freeze(tied)}


def plain_forward(spec):
    """(params, tokens) -> Trace of a trained stack that reads prompts as they are: what it does to
    them before the first layer, it does inside, and the stream is in the prompt's units."""
    inner = forward(spec)
    if not spec.architecture.own_units:
        return inner

    def run(params, rows):
        prompt = Prompt(rows[:-1, :-1], rows[:-1, -1], rows[-1, :-1], rows[-1, -1])
        own, scale = prompts.normalised(prompt)
        trace = inner(params, prompts.tokens(own))
        return trace.replace(stream=scale * trace.stream)

    return run


def stage_params(spec, runs, seed):  # -> Params [R, 2, ...]
    """New weights of the Spec and the trained ones."""
    count = len(jax.tree.leaves(runs)[0])
    keys = jax.random.split(jax.random.fold_in(jax.random.key(seed), 2**21), count)
    fresh = jax.vmap(partial(init, spec))(keys)
    both = jax.tree.map(lambda *leaves: np.stack(leaves, axis=1), fresh, runs)
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, float), both)
