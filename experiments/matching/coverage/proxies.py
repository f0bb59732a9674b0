"""The proxies that are trained on each pool of `coverage`, and its examples' gradients on the way.

Both are linear in the covariates, the second with an intercept too, which keeps classes' shares
(docs/theory, "An intercept keeps the shares"). Labels of a task are regressed, classes get the
logistic loss: with the score s = w·x and a target t

    loss = A(s) - t s,   A = s²/2 or log(1 + eˢ),   gradient = (A'(s) - t) x.
"""

import jax
import jax.numpy as jnp

from experiments.matching import checkpoints as matching
from experiments.matching.coverage.config import CLASSES, KINDS


def features(config, pool, keys, progress):  # of K·R pools -> [K·R, 3, m, p]
    """What ``PROXIES`` are; zeros in the place of the start's gradients change no distance."""
    examples = labelled_examples(config, pool)
    start = jnp.zeros(config.d + 1, pool.x.dtype)
    path = checkpoints(config, loss, start, examples, keys, "proxies", progress)

    @jax.jit
    def collect(examples, path):
        both = jax.vmap(gradients)(path, *examples).reshape(2, len(pool.y), config.m, -1)
        later = both[1].at[..., : config.d + 1].set(0)
        return jnp.stack([*both, later], axis=1)

    return collect(examples, path)


def add_intercepts(x):  # [N, m, d] -> [2 N, m, d+1]
    """All pools without an intercept, a last covariate of 0, then all with one, which is 1."""
    ends = [jnp.full((*x.shape[:2], 1), end, x.dtype) for end in (0, 1)]
    return jnp.concatenate([jnp.concatenate([x, end], axis=2) for end in ends])


def labelled_examples(config, pool):  # -> x [2·K·R, m, d+1], t [2·K·R, m], whether they are classes
    classes = jnp.repeat(jnp.array([kind == CLASSES for kind in KINDS]), config.runs)
    targets = jnp.where(classes[:, None], (1 + pool.y) / 2, pool.y)
    return add_intercepts(pool.x), jnp.tile(targets, (2, 1)), jnp.tile(classes, 2)


def loss(weights, batch, row):
    x, targets = batch
    score = x @ weights
    normaliser = jnp.where(row[2], jax.nn.softplus(score), score**2 / 2)
    return (normaliser - targets * score).mean()


def checkpoints(config, loss, start, examples, keys, label, progress):  # -> [2 N, C, *start.shape]
    """Proxies without and with an intercept along their training on N pools; the examples begin
    with x [2 N, m, d+1] and labels [2 N, m]."""
    starts = jnp.tile(start, (2 * len(keys), *[1] * start.ndim))
    both = jnp.concatenate([keys, keys])  # the same batches for both
    recipe, label = matching.recipe_of(config), f"coverage: {label}"
    return matching.trained_path(loss, recipe, starts, both, examples, label, progress)


def gradients(weights, x, targets, classes):  # [C, d+1], [m, d+1] -> [m, C·(d+1)]
    score = x @ weights.T
    residuals = jnp.where(classes, jax.nn.sigmoid(score), score) - targets[:, None]
    return (residuals[:, :, None] * x[:, None]).reshape(len(x), -1)
