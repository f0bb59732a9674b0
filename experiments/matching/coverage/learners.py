"""The proxies that are trained on each pool of `coverage`, and its examples' gradients on the way.

Both are linear in the covariates, the second with an intercept too, which keeps classes' shares
(docs/theory, "An intercept keeps the shares"). Labels of a task are regressed, classes get the
logistic loss: with the score s = w·x and a target t

    loss = A(s) - t s,   A = s²/2 or log(1 + eˢ),   gradient = (A'(s) - t) x.
"""

import jax
import jax.numpy as jnp

from experiments.matching.coverage.config import CLASSES, KINDS
from lsa_lab.selection import prefix, rivals
from lsa_lab.tasks import pools
from lsa_lab.training import Training, fit
from lsa_lab.training.status import refuse_divergence


def features(config, pool, keys, progress):  # of K·R pools -> [K·R, 4, m, p]
    """What ``PROXIES`` are, and moments, padded to one width: zeros change no distance."""
    examples = with_targets(config, pool)
    path = checkpoints(config, *examples, keys, progress)

    @jax.jit
    def collect(examples, path, pool):
        both = jax.vmap(gradients)(path, *examples).reshape(2, len(pool.y), config.m, -1)
        oracle = jax.vmap(rivals.moment_features)(jax.vmap(pools.tokens)(pool))
        most = max(both.shape[-1], oracle.shape[-1])
        later = both[1].at[..., : config.d + 1].set(0)
        kinds = [*both, later, oracle]
        padded = [jnp.pad(f, ((0, 0), (0, 0), (0, most - f.shape[-1]))) for f in kinds]
        return jnp.stack(padded, axis=1)

    return collect(examples, path, pool)


def with_targets(config, pool):  # -> x [2·K·R, m, d+1], t [2·K·R, m], whether they are classes
    """All pools without an intercept, a last covariate of 0, then all with one, which is 1."""
    classes = jnp.repeat(jnp.array([kind == CLASSES for kind in KINDS]), config.runs)
    targets = jnp.where(classes[:, None], (1 + pool.y) / 2, pool.y)
    ends = [jnp.full((*pool.y.shape, 1), end, pool.x.dtype) for end in (0, 1)]
    x = jnp.concatenate([jnp.concatenate([pool.x, end], axis=2) for end in ends])
    return x, jnp.tile(targets, (2, 1)), jnp.tile(classes, 2)


def checkpoints(config, x, targets, classes, keys, progress):  # -> [2·K·R, C, d+1]
    """Both proxies along their training from w = 0."""
    saves = {name: getattr(config, name) for name in ("epochs", "batch", "saves")}
    recipe = prefix.Recipe(**saves, learning_rate=config.learning_rate)

    def loss(weights, batch, row):
        score = batch.x @ weights
        normaliser = jnp.where(row[2], jax.nn.softplus(score), score**2 / 2)
        return (normaliser - batch.y * score).mean()

    training = Training(
        loss=loss,
        sample=lambda key, row: prefix.sample_batch(key, pools.Pool(*row[:2]), recipe.batch),
        optimizer=lambda _: recipe.optimizer(config.m),
        steps=recipe.steps(config.m),
        label="coverage: proxies",
    )
    run = fit(
        training,
        jnp.zeros((len(x), config.d + 1), x.dtype),
        jnp.concatenate([keys, keys]),  # the same batches for both
        per_run=(x, targets, classes),
        watch=lambda weights: weights,
        chunk=recipe.chunk(config.m),
        progress=progress,
    )
    refuse_divergence(run.status, training.label, needs_all=True)
    return jnp.asarray(run.history["watch"][:, :-1])


def gradients(weights, x, targets, classes):  # [C, d+1], [m, d+1] -> [m, C·(d+1)]
    score = x @ weights.T
    residuals = jnp.where(classes, jax.nn.sigmoid(score), score) - targets[:, None]
    return (residuals[:, :, None] * x[:, None]).reshape(len(x), -1)
