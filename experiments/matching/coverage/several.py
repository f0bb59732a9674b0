"""Choose from pools of several classes, and let descent answer from the chosen."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from experiments.matching import checkpoints as matching
from experiments.matching import subsets
from experiments.matching.coverage import proxies
from experiments.matching.coverage.config import SEVERAL_RULES, class_shares
from lsa_lab.selection import baselines, gradient_matching
from lsa_lab.tasks import pools


def loss(weights, batch, _):
    """The logistic loss of several classes."""
    x, labels = batch
    log_shares = jax.nn.log_softmax(x @ weights.T)
    return -jnp.take_along_axis(log_shares, labels[:, None], 1).mean()


def gradients(weights, x, labels):  # [C, K, e], [m, e], [m] -> [m, C·K·e]
    """(softmax(W x) - onehot) xᵀ at every checkpoint."""
    over = jax.nn.softmax(jnp.einsum("cke,me->mck", weights, x))
    missed = over - jax.nn.one_hot(labels, weights.shape[1], dtype=x.dtype)[:, None]
    return (missed[..., None] * x[:, None, None]).reshape(len(x), -1)


@partial(jax.jit, static_argnums=0)
def choose(config, path, x, labels, keys):  # [2 R, ...] x 3, [R] -> [R, 2 + draws, n]
    """One run after the other: the gradients of all at once would take gigabytes."""

    def run_choices(row):
        own, key = row
        features = jax.vmap(gradients)(*own)  # [2, m, p]
        matched = [gradient_matching.match(part, config.n).indices for part in features]
        random = baselines.random_subsets(key, config.m, config.n, config.random_draws)
        return jnp.concatenate([jnp.stack(matched), random])

    def run_pairs(a):  # [2 R, ...] -> [R, 2, ...]
        return jnp.moveaxis(a.reshape(2, len(keys), *a.shape[1:]), 1, 0)

    return jax.lax.map(run_choices, (jax.tree.map(run_pairs, (path, x, labels)), keys))


@partial(jax.jit, static_argnums=(0, 1))
def wrong_answers(config, classes, pool, queries, chosen):  # of one run, [S, n] -> [S, K]
    """The share of wrong answers on each class's queries: of several outputs the largest, each of
    them descent on whether a label is its class, with an intercept."""

    def shares_wrong(indices):
        ones = jnp.ones((config.n, 1), pool.x.dtype)
        x = jnp.concatenate([pool.x[indices], ones], axis=1)
        y = jax.nn.one_hot(pool.cluster[indices], classes, dtype=x.dtype)

        def step(weights, _):
            return weights - config.step * x.T @ (x @ weights - y) / config.n, None

        start = jnp.zeros((config.d + 1, classes), x.dtype)
        weights = jax.lax.scan(step, start, None, length=config.depth)[0]
        answers = (queries.x @ weights[:-1] + weights[-1][None]).argmax(1)
        return (answers != queries.cluster).reshape(classes, -1).mean(1)

    return jax.lax.map(shares_wrong, chosen)


def divergence(counts, pool):  # [..., K] x 2 -> [...]
    """KL(subset | pool) of the shares of groups or classes."""
    share = counts / counts.sum(-1, keepdims=True)
    return (share * np.log(np.where(share > 0, share, 1) / pool)).sum(-1)


def measure(config, progress):
    values = [measures(config, classes, progress) for classes in config.classes]
    axes, (kl, wrong) = ("classes", "run", "rule"), map(np.stack, zip(*values, strict=True))
    places = {"classes": list(config.classes), "rule": list(SEVERAL_RULES)}
    return xr.Dataset({"divergence": (axes, kl), "wrong": (axes, wrong)}, places)


def measures(config, classes, progress):  # -> [R, rule], [R, rule]
    """KL to a test set and share of wrong answers by rule; of random subsets the means."""
    root = jax.random.fold_in(jax.random.key(config.seed), classes)
    keys = matching.keys_of(root, config.runs, 4)
    shares = class_shares(config, classes)
    task = pools.PoolTask(config.m, config.d, shares, config.separation, labels="cluster")
    pool, queries = matching.sample_pools(task, config.queries, keys[0])
    rows = proxies.add_intercepts(pool.x), jnp.tile(pool.cluster, (2, 1))
    start, label = jnp.zeros((classes, config.d + 1), pool.x.dtype), f"proxies of {classes} classes"
    path = proxies.checkpoints(config, loss, start, rows, keys[1], label, progress)
    chosen = choose(config, path, *rows, keys[2])
    labels = np.take_along_axis(np.asarray(pool.cluster)[:, None], np.asarray(chosen), 2)
    counts = (labels[..., None] == np.arange(classes)).sum(2)
    missed = jax.jit(jax.vmap(partial(wrong_answers, config, classes)))(pool, queries, chosen)
    kl = divergence(counts, sample_shares(config, shares, keys[3])[:, None])
    values = kl, np.asarray(missed) @ np.array(shares)
    return [subsets.means_of_draws(value, [len(SEVERAL_RULES) - 1]) for value in values]


def sample_shares(config, shares, keys):  # -> [R, K]
    """Shares of the classes in a test set of the pool's population, a set for each run."""
    law = jnp.array(shares)
    draw = jax.vmap(lambda key: jax.random.choice(key, len(shares), (config.tests,), p=law))
    labels = np.asarray(draw(keys))
    return (labels[..., None] == np.arange(len(shares))).mean(1)
