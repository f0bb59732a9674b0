"""Searches for one layer that preprocesses, and descent on the features of too few heads."""

import jax
import jax.numpy as jnp
import numpy as np

from lsa_lab import estimators
from lsa_lab.models.sparse_constructions import coordinate_groups
from lsa_lab.tasks.linear import LinearTask, sample
from lsa_lab.theory import head_bound

TOGETHER = 128  # prompts: whole paths of more of them would need gigabytes


def searches(config):  # -> [sizes, most heads, restarts], NaN where there are more heads than d
    """The residual at which each restart ends, for all d covariates."""
    residuals = np.full((len(config.sizes), max(config.sizes), config.restarts), np.nan)
    for i, d in enumerate(config.sizes):
        for num_heads in range(1, d + 1):
            ends = head_bound.smallest_residuals(d, num_heads, config.restarts, config.seed)
            residuals[i, num_heads - 1] = ends
    return residuals


def searches_for_images(config):  # -> [d-1 ranks, d-1 heads, restarts] twice: searched, built
    """The same search for Πx̃ only, Π = GᵀG a random projection of rank r, another each time.

    Built: head a of at most r asks diag(G_a) x and writes y to the outputs in proportion to G_a.
    """
    from scipy.optimize import minimize

    d, residual = config.image_d, _residual_of_image(config.image_d)

    def objective(vector, projection):
        value, slope = residual(vector, projection)
        return float(value), np.asarray(slope)

    def both(rank, num_heads, restart):
        rng = np.random.default_rng([config.seed, rank, num_heads, restart])
        frame = np.linalg.qr(rng.normal(size=(d, rank)))[0].T  # [r, d]
        start = rng.normal(scale=0.5, size=2 * num_heads * d * (d + 1))
        given = (frame.T @ frame,)
        options = {"gtol": 1e-7}
        end = minimize(objective, start, given, method="BFGS", jac=True, options=options)
        written, queried = np.zeros((num_heads, d, d + 1)), np.zeros((num_heads, d + 1, d))
        for head, row in enumerate(frame[:num_heads]):
            written[head, :, d], queried[head, :d] = row, np.diag(row)
        built = np.concatenate([written.ravel(), queried.ravel()])
        return end.fun, objective(built, *given)[0]

    counts, restarts = range(1, d), range(config.image_restarts)
    ends = [[[both(r, h, k) for k in restarts] for h in counts] for r in counts]
    return np.moveaxis(ends, -1, 0)


def _residual_of_image(d):  # -> function of a layer as one vector, and of Π [d, d]
    """The residual to Πx̃ and its gradient: that to x̃ after d fixed heads have added (I - Π)x̃."""
    fixed_written, fixed_queried = head_bound.layer(d)

    @jax.jit
    @jax.value_and_grad
    def residual(vector, projection):
        written, queried = jnp.split(vector, 2)
        rest = jnp.einsum("ab,hbe->hae", jnp.eye(d) - projection, fixed_written)
        written = jnp.concatenate([written.reshape(-1, d, d + 1), rest])
        queried = jnp.concatenate([queried.reshape(-1, d + 1, d), fixed_queried])
        return head_bound.residual(written, queried)

    return residual


def risks(config):  # -> [R, heads]
    """The risk of descent on features of H heads, its step and length chosen on other prompts."""
    owners = _owners(config)
    task = LinearTask(
        config.n,
        config.d,
        sparsity=config.sparsity,
        noise_std=config.noise_std,
        weight_std=config.sparsity**-0.5,
        signal="flat",
    )

    def errors(key):  # -> [heads, rates, steps+1]
        prompt = sample(key, task)
        return (_paths(config, owners, prompt) - prompt.y_query) ** 2

    @jax.jit
    def all_runs(key):
        def risks_of_run(key):
            keys = jax.random.split(key, 2 * config.prompts)
            squares = jax.lax.map(errors, keys, batch_size=min(TOGETHER, len(keys)))
            halves = squares.reshape(2, config.prompts, len(config.heads), -1).mean(1)
            best = jnp.argmin(halves[0], axis=-1, keepdims=True)
            return jnp.take_along_axis(halves[1], best, axis=-1)[:, 0]

        return jax.lax.map(risks_of_run, jax.random.split(key, config.runs))

    values = np.asarray(all_runs(jax.random.key(config.seed)))
    if not np.isfinite(values).all():
        raise ValueError("a risk is not finite: choose step sizes below 2")
    return values


def _paths(config, owners, prompt):  # -> [heads, rates, steps+1]
    """Predictions of descent on x̃ = Fx with step sizes c/λ, λ the largest eigenvalue of F H Fᵀ.

    Row g of F is Xᵀy/n on the coordinates of head g, else 0: the features, and up to the step size
    the descent, of ``constructions.preprocess_then_optimise``.
    """

    def path(owner, rate):
        matrix = owner * (prompt.y @ prompt.x)[None] / config.n  # [d, d]
        features = prompt.replace(x=prompt.x @ matrix.T, x_query=matrix @ prompt.x_query)
        largest = jnp.linalg.eigvalsh(features.x.T @ features.x / config.n)[-1]
        steps = jnp.full(config.steps, rate / largest)
        return estimators.gradient_descent(features, steps) @ features.x_query

    each_rate = jax.vmap(path, (None, 0))
    return jax.vmap(each_rate, (0, None))(owners, jnp.asarray(config.step_sizes))


def _owners(config):  # -> [heads, d, d]: 1 where the head has the coordinate, the rest are no heads
    owners = np.zeros((len(config.heads), config.d, config.d))
    for rows, count in zip(owners, config.heads, strict=True):
        rows[:count] = coordinate_groups(config.d, count)
    return jnp.asarray(owners)
