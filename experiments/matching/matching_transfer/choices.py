"""The subsets of each pool that proxies choose, a diverse one, and random ones."""

from functools import partial

import jax
import jax.numpy as jnp

from experiments.matching.matching_transfer.learners import squared_error
from lsa_lab import estimators, prompts
from lsa_lab.models import moments
from lsa_lab.selection import diversity, gradient_matching, prefix, rivals
from lsa_lab.tasks import pools


def features(config, pool, learners):  # of one pool -> [F, m, p], in the order of GRADIENTS
    """What is matched, padded to one width: zeros beside it change no distance."""
    steps = jnp.full(config.checkpoints - 1, 0.3)  # from w = 0, in small steps
    whole = prompts.Prompt(pool.x, pool.y, pool.x[0], pool.y[0])
    linear = prefix.linear_gradients(estimators.gradient_descent(whole, steps), pool)
    parts = [linear]
    for model, path in learners.values():
        parts.append(prefix.example_gradients(squared_error, model, path, (pool.x, pool.y)))
    width = max(part.shape[1] for part in parts)
    return jnp.stack([jnp.pad(part, ((0, 0), (0, width - part.shape[1]))) for part in parts])


@partial(moments.compiled, static_argnums=0)
def choose(config, pool, learners, keys):  # -> indices [G, S, n], gaps [G, F, random ones]
    """The choice of each of ``RULES``, then random subsets, and how far from the pool's mean the
    mean gradients of these are."""
    match = partial(gradient_matching.match, size=config.n)

    def choice(row):
        pool, learners, key = row
        parts = features(config, pool, learners)
        chosen = jax.lax.map(lambda part: match(part).indices, parts)
        mismatched = match(parts[0], reverse=True).indices
        diverse = diversity.determinantal(pools.tokens(pool), config.n, ridge=1.0)
        others = rivals.random_subsets(key, config.m, config.n, config.random_subsets)
        gaps = parts[:, others].mean(2) - parts.mean(1, keepdims=True)
        indices = jnp.concatenate([chosen, jnp.stack([mismatched, diverse]), others])
        return indices, jnp.linalg.norm(gaps, axis=-1)

    return jax.lax.map(choice, (pool, learners, keys))
