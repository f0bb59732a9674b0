"""The stacks of `amplification`: random, constructed, and trained ones as they read a prompt."""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.flow import pairs
from experiments.models.model import forward
from lsa_lab import prompts
from lsa_lab.models import constructions, linear_attention, transformer
from lsa_lab.prompts import Prompt


def untrained_cases(config):
    """Case, forward, Params [R, L, ...] and Prompt [R, B] of all that are not trained."""
    rng = np.random.default_rng(config.seed)
    batch, prior = pairs.draw(rng, config.runs, config.pairs, config.d)
    base = pairs.random_linear(rng, config.runs, config.depth, config.d)
    for name, params in variants(base, config, config.gains).items():
        yield f"linear: {name}", pairs.UNMASKED, params, batch
    many, _ = pairs.draw(rng, config.runs, config.many_pairs, config.d, prior)
    yield "masked: descent", linear_attention.forward, descent(config), many
    for tag, kind in enumerate(config.kinds[1:]):
        key, model = jax.random.fold_in(jax.random.key(config.seed), tag), shape(config, kind)
        base = random_transformers(key, config.runs, model)
        for name, params in variants(base, config, (config.gain,)).items():
            run = partial(transformer.forward, config=model)
            yield f"{kind}: {name}", run, params, batch


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


def variants(base, config, gains):  # -> {name: Params [R, L, ...]}
    """A random stack of every gain, tied or not, and with a weaker residual connection."""
    by_name = {f"gain {gain:g}": pairs.amplify(base, gain) for gain in gains}
    by_name |= {f"tied, {name}": pairs.tie(params) for name, params in by_name.items()}
    if getattr(base, "attention_norm_scale", None) is None:
        skipped = jax.vmap(partial(constructions.skipped, weight=config.skip))
        by_name[f"skip {config.skip:g}"] = skipped(by_name[f"gain {config.gain:g}"])
    return by_name


def descent(config):  # -> Params [R, L, ...]
    """Layers that are the best single one for one demonstration, a step of descent each. Nobody
    reads the query."""
    best = constructions.one_step_optimum(jnp.eye(config.d), 1, 0.0)
    runs, depth = config.runs, config.depth
    return jax.tree.map(lambda leaf: np.tile(leaf, (runs, depth, *[1] * (leaf.ndim - 1))), best)


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
