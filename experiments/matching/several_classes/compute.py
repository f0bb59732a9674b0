"""Choose from pools of several classes, and let descent answer from the chosen."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.matching import checkpoints as matching
from experiments.matching.several_classes.config import RULES, Config, shares
from lsa_lab.selection import gradient_matching, prefix, rivals
from lsa_lab.tasks import pools
from lsa_lab.training import Training, fit
from lsa_lab.training.status import refuse_divergence


def sample(config, classes, keys):  # -> Pool [R, m, ...], queries [R, K·Q, ...]
    task = pools.PoolTask(
        config.m, config.d, shares(config, classes), config.separation, labels="cluster"
    )
    return matching.sample_pools(task, config.queries, keys)


def with_intercepts(x):  # [R, m, d] -> [2 R, m, d+1]
    """All pools without an intercept, a last covariate of 0, then all with one, which is 1."""
    ends = [jnp.full((*x.shape[:2], 1), end, x.dtype) for end in (0, 1)]
    return jnp.concatenate([jnp.concatenate([x, end], axis=2) for end in ends])


def checkpoints(config, classes, x, labels, keys, progress):  # -> [2 R, C, K, d+1]
    """Both proxies along their training from W = 0, by the logistic loss."""
    saves = {name: getattr(config, name) for name in ("epochs", "batch", "saves", "learning_rate")}
    recipe = prefix.Recipe(**saves)

    def loss(weights, batch, _):
        rows, label = batch
        log_shares = jax.nn.log_softmax(rows @ weights.T)
        return -jnp.take_along_axis(log_shares, label[:, None], 1).mean()

    training = Training(
        loss=loss,
        sample=lambda key, row: prefix.sample_batch(key, row, recipe.batch),
        optimizer=lambda _: recipe.optimizer(config.m),
        steps=recipe.steps(config.m),
        label=f"several_classes: proxies of {classes} classes",
    )
    run = fit(
        training,
        jnp.zeros((len(x), classes, config.d + 1), x.dtype),
        jnp.concatenate([keys, keys]),  # the same batches for both
        per_run=(x, labels),
        watch=lambda weights: weights,
        chunk=recipe.chunk(config.m),
        progress=progress,
    )
    refuse_divergence(run.status, training.label, needs_all=True)
    return jnp.asarray(run.history["watch"][:, :-1])


def gradients(weights, x, labels):  # [C, K, e], [m, e], [m] -> [m, C·K·e]
    """(softmax(W x) - onehot) xᵀ at every checkpoint."""
    classes = weights.shape[1]
    over = jax.nn.softmax(jnp.einsum("cke,me->mck", weights, x))
    missed = over - jax.nn.one_hot(labels, classes, dtype=x.dtype)[:, None]
    return (missed[..., None] * x[:, None, None]).reshape(len(x), -1)


@partial(jax.jit, static_argnums=0)
def choose(config, path, x, labels, keys):  # [2 R, ...] x 3, [R] -> [R, 2 + draws, n]
    """One run after the other: the gradients of all at once would take gigabytes."""

    def subsets(row):
        own, key = row
        features = jax.vmap(gradients)(*own)  # [2, m, p]
        matched = [gradient_matching.match(part, config.n).indices for part in features]
        random = rivals.random_subsets(key, config.m, config.n, config.random_draws)
        return jnp.concatenate([jnp.stack(matched), random])

    def run_pairs(a):  # [2 R, ...] -> [R, 2, ...]
        return jnp.moveaxis(a.reshape(2, len(keys), *a.shape[1:]), 1, 0)

    return jax.lax.map(subsets, (jax.tree.map(run_pairs, (path, x, labels)), keys))


@partial(jax.jit, static_argnums=(0, 1))
def wrong(config, classes, pool, queries, chosen):  # of one run, [S, n] -> [S, K]
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
    """KL(subset | pool) of the classes' shares."""
    share = counts / counts.sum(-1, keepdims=True)
    return (share * np.log(np.where(share > 0, share, 1) / pool)).sum(-1)


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    parts = [measures(config, classes, progress) for classes in config.classes]
    divergences, errors = (np.stack(values) for values in zip(*parts, strict=True))
    axes = ("classes", "run", "rule")
    return xr.Dataset(
        {"divergence": (axes, divergences), "wrong": (axes, errors)},
        {"classes": list(config.classes), "rule": list(RULES)},
    )


def measures(config, classes, progress):  # -> [R, rule], [R, rule]
    """KL and share of wrong answers by rule; of random subsets the means."""
    root = jax.random.fold_in(jax.random.key(config.seed), classes)
    keys = [jax.random.split(jax.random.fold_in(root, tag), config.runs) for tag in range(3)]
    pool, queries = sample(config, classes, keys[0])
    x, labels = with_intercepts(pool.x), jnp.tile(pool.cluster, (2, 1))
    path = checkpoints(config, classes, x, labels, keys[1], progress)
    chosen = choose(config, path, x, labels, keys[2])
    labels = np.take_along_axis(np.asarray(pool.cluster)[:, None], np.asarray(chosen), 2)
    counts = (labels[..., None] == np.arange(classes)).sum(2)
    whole = (np.asarray(pool.cluster)[..., None] == np.arange(classes)).mean(1, keepdims=True)
    missed = np.asarray(jax.jit(jax.vmap(partial(wrong, config, classes)))(pool, queries, chosen))
    return rule_means(divergence(counts, whole)), rule_means(
        missed @ np.array(shares(config, classes))
    )


def rule_means(values):  # [R, 2 + draws] -> [R, rule]
    return np.concatenate([values[:, :2], values[:, 2:].mean(1, keepdims=True)], axis=1)
