"""What subsets of a pool teach a stack, and how near their mean gradients come to the pool's (A3).

The stack is masked, normalised linear attention that descends. Its prediction from a subset S is
w(S)·x_query, and w(S) is read from its last layer map.
"""

import jax
import jax.numpy as jnp
import numpy as np

from lsa_lab import estimators, prompts
from lsa_lab.models import constructions, moments
from lsa_lab.tasks import pools


def members(indices, m):  # [..., n] -> [..., m]
    """1 for the chosen and 0 for the others."""
    chosen = jnp.zeros((*jnp.shape(indices)[:-1], m))
    return jnp.put_along_axis(chosen, jnp.asarray(indices), 1.0, axis=-1, inplace=False)


def side_by_side(*kinds):  # [m, p] each -> [F, m, largest p]
    """Zeros added to a gradient change no distance: all kinds of features are one computation."""
    most = max(rows.shape[1] for rows in kinds)
    return jnp.stack([jnp.pad(rows, ((0, 0), (0, most - rows.shape[1]))) for rows in kinds])


def first_checkpoints(gradients, counts, d):  # [m, C·d], [K] -> [K, m, C·d]
    """The gradients at the first checkpoints, zero at later ones."""
    keep = jnp.arange(gradients.shape[1])[None] < d * jnp.asarray(counts)[:, None]
    return jnp.where(keep[:, None], gradients[None], 0)


def squared_errors(config, pool, chosen, *queries):  # [S, m], Q queries each -> [S, Q] each
    """Those of gradient descent after every subset: one computation, whatever the sizes."""
    stack = constructions.gradient_descent(jnp.full(config.depth, config.step), config.d)
    rows = pools.tokens(pool)

    def weights(chosen):
        moment = rows.T @ (chosen[:, None] * rows) / chosen.sum()
        return -moments.layer_maps(stack, moment)[-1, -1, :-1]

    taught = jax.lax.map(weights, chosen, batch_size=32)
    return [(taught @ part.x.T - part.y[None]) ** 2 for part in queries]


def best_step(config):
    """The best size of a single step on n demonstrations, 1 / (1 + (1 + d + σ²) / n)."""
    return 1 / (1 + (1 + config.d + config.noise_std**2) / config.n)


def bayes_error(config, x, y, x_queries, targets):  # [n, d], [n], [Q, d], [Q] -> []
    """The mean squared error on the queries of the Bayes rule, ridge regression."""
    prompt = prompts.Prompt(x, y, x[0], y[0])
    weights = estimators.gaussian_posterior_mean(prompt, 1.0, config.noise_std**2)
    return ((x_queries @ weights - targets) ** 2).mean()


def means_of_draws(values, starts, axis=1, mean=np.mean):  # [..., S, ...] -> [..., rule, ...]
    """Values of rules with one subset each, and of each rule with several, whose draws begin at
    ``starts``, their mean: each subset is judged by itself before the mean is taken."""
    once, *draws = np.split(values, starts, axis)
    return np.concatenate([once, *(mean(part, axis, keepdims=True) for part in draws)], axis)
