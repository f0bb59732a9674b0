"""Longer trainings of two layers, on bound and on interleaved tokens: which rule they run."""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.recurrent.learning_curves import rules
from experiments.recurrent.learning_curves.config import (
    DEPTHS,
    SINGLE,
    SPANS,
    STACKED,
    STEPS_OF_TWO,
    TIMES,
    TOKENS,
)
from experiments.recurrent.learning_curves.train import forward_of, model_of, train
from lsa_lab.models import prefixes
from lsa_lab.theory.wishart import wishart_quadrature


def compute(config, prompts, targets, of_rules, progress, checkpoints):
    """Two layers' risk after each prefix, and their distance to each rule over spans of lengths;
    the risk of one layer on interleaved tokens."""
    import xarray as xr

    own = config.stacks
    sizes = dataclasses.replace(config, steps=own.steps, width=own.width, seed=own.seed)
    key = jax.random.key(own.seed)
    of_rules = jnp.concatenate([of_rules, two_steps(prompts, config)[:, None]], axis=1)

    def looks(tokens, depth, layers):  # [K, R, T], [K, R, r, s], [K, R, s], [K, R]
        rows = []
        for layer in layers:
            tag = 100 * TOKENS.index(tokens) + 10 * STACKED.index(layer) + depth
            key_own = jax.random.fold_in(key, tag)
            run = train(sizes, layer, depth, key_own, progress, checkpoints, tokens)
            params = jax.tree.map(lambda leaf: leaf.astype(float), run.params)
            model = model_of(layer, depth, sizes, tokens)
            values = look(params, prompts, targets, of_rules, model, sizes, tokens)
            rows.append([*map(np.asarray, values), [str(end) for end in run.status]])
        return map(np.stack, zip(*rows, strict=True))

    pairs = zip(*(looks(tokens, DEPTHS[-1], STACKED) for tokens in TOKENS), strict=True)
    risk, distance, chance, status = map(np.stack, pairs)
    single, *_, single_status = looks(TOKENS[-1], DEPTHS[0], SINGLE)
    axes = ("tokens", "layer", "run")
    return xr.Dataset(
        {
            "risk": ((*axes, "prefix"), risk),
            "distance": ((*axes, "rule", "span"), distance),
            "distance_to_chance": ((*axes, "span"), chance),
            "status": (axes, status),
            "single_risk": (("single", "run", "prefix"), single),
            "single_status": (("single", "run"), single_status),
        },
        {
            "tokens": list(TOKENS),
            "layer": list(STACKED),
            "single": list(SINGLE),
            "rule": [*rules.RULES, STEPS_OF_TWO],
            "span": list(SPANS),
            "prefix": np.arange(TIMES[-1] * config.n + 1),
        },
    )


@partial(jax.jit, static_argnames=("model", "config", "tokens"))
def look(params, prompts, targets, of_rules, model, config, tokens):
    """Risks [R, T], distances [R, r, s] and those to ridge regression on the labels of another task
    [R, s]; predictions are cut as in ``compute.look``."""
    forward = forward_of(model, tokens)
    most = 2 * jnp.abs(prompts.y).max(1, keepdims=True)
    n = config.n
    spans = [slice(1, n + 1), *(slice(k * n - n // 2 + 1, k * n + 1) for k in TIMES)]
    elsewhere = jnp.roll(of_rules[:, rules.RULES.index("ridge")], 1, axis=0)

    def one_run(params):
        answer = partial(prefixes.predictions, forward, params, layout=tokens)
        answers = jax.lax.map(answer, prompts, batch_size=100)
        predicted = jnp.clip(jnp.where(jnp.isfinite(answers), answers, most), -most, most)
        gaps = (predicted[:, None] - of_rules) ** 2
        chance = (predicted - elsewhere) ** 2
        distance = jnp.stack([gaps[..., span].mean((0, 2)) for span in spans], -1)
        risk = ((predicted - targets) ** 2).mean(0)
        return risk, distance, jnp.stack([chance[:, span].mean() for span in spans])

    return jax.lax.map(one_run, params)


def two_steps(prompts, config):  # [B, ...] -> [B, n + 1]
    """ŷ of two steps of descent that all prompts share, the best at every length:

        ŵ_t = (a + bG) Σ y_i x_i,  G = Σ x_i x_iᵀ

    a and b minimise the risk over the expected density of G's eigenvalues (docs/theory, "The best
    steps at finite sizes")."""
    d, n = config.d, prompts.y.shape[1]
    ab = jnp.asarray([best_pair(t, d, config.noise_var) for t in range(1, n + 1)])

    def of_prompt(prompt):
        products = jnp.cumsum(prompt.y[:, None] * prompt.x, axis=0)
        grams = jnp.cumsum(prompt.x[:, :, None] * prompt.x[:, None], axis=0)
        later = ab[:, :1] * products + ab[:, 1:] * jnp.einsum("tij,tj->ti", grams, products)
        queries = jnp.concatenate([prompt.x[1:], prompt.x_query[None]])
        return jnp.pad((later * queries).sum(1), (1, 0))

    return jax.lax.map(of_prompt, prompts, batch_size=100)


def best_pair(t: int, d: int, noise_var: float) -> np.ndarray:  # [2]
    """The a and b of the least E |ŵ_t - w|²."""
    nodes, counts = wishart_quadrature(t, d)
    powers = np.stack([np.ones_like(nodes), nodes])
    square = (powers * counts * (nodes**2 + d * noise_var * nodes)) @ powers.T
    return np.linalg.solve(square, powers @ (counts * nodes))
