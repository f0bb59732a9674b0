"""Known algorithms as stacks of linear attention, with the step sizes that suit a task best."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.descent.depth.config import ALGORITHMS
from lsa_lab.models import constructions, linear_attention, moments
from lsa_lab.prompts import Prompt
from lsa_lab.tasks.linear import LinearTask, sample


def covariance(name: str, d: int) -> np.ndarray:  # [d, d]
    """I, or U D² Uᵀ with D = (1, 1, 1/2, 1/4, 1, ...) and a fixed rotation U (Ahn et al.)."""
    if name == "identity":
        return np.eye(d)
    rotation = np.linalg.qr(np.random.default_rng(0).standard_normal((d, d)))[0]
    deviations = np.resize([1.0, 1.0, 0.5, 0.25, 1.0], d)
    return rotation * deviations**2 @ rotation.T


def algorithm(theta: jax.Array, form: dict) -> linear_attention.Params:
    """GD++ with the scalars theta [2, L] and, in place of I, a matrix; γ = 0 is plain descent."""
    step_sizes, gammas = theta
    params = constructions.gradient_descent_plus_plus(
        step_sizes, form["gate"] * gammas, len(form["matrix"])
    )
    return params.replace(w_kq=params.w_kq.at[..., :-1, :-1].set(form["matrix"]))


def errors(params, batch):  # a Prompt, or second moments, queries and targets -> [B]
    if isinstance(batch, Prompt):
        return (moments.predictions(params, batch) - batch.y_query) ** 2
    return (moments.predictions_from_moments(params, *batch[:2]) - batch[2]) ** 2


def draw(key, sigma, n, size):  # -> Prompt [B]
    """Prompts with x ~ N(0, Σ) and w ~ N(0, Σ^{-1})."""
    inverse = jnp.linalg.inv(sigma)
    task = LinearTask(n, len(sigma), covariance=sigma, task_covariance=inverse, dtype=sigma.dtype)
    return jax.vmap(partial(sample, task=task))(jax.random.split(key, size))


def tune(config, depth, sigmas, key):
    """Every algorithm on every covariance with its best scalars: Params, leading axis [A * C].

    The scalars are fitted on prompts of their own, from unequal step sizes: equal ones are a saddle
    of this symmetric problem. Few prompts tell the starts apart; but the risk of deep stacks is
    decided on rare ones, and the best end is fitted further on many.
    """
    from scipy.optimize import minimize

    @moments.compiled
    @jax.value_and_grad
    def objective(theta, form, batch):
        return errors(algorithm(theta.reshape(2, depth), form), batch).mean()

    starts = [
        np.concatenate([np.linspace(0.3, last, depth), np.full(depth, gamma)])
        for last, gamma in ((0.9, 0.1), (0.9, 0.4), (3.0, 0.4))
    ]
    tuned = []
    for name in ALGORITHMS:
        for sigma in sigmas:
            batch = draw(key, sigma, config.n, config.tuning_prompts)
            matrix = jnp.eye(config.d) if name == ALGORITHMS[0] else jnp.linalg.inv(sigma)
            form = {"matrix": matrix, "gate": jnp.asarray(1.0 if name == "GD++" else 0.0)}
            few = jax.tree.map(lambda leaf: leaf[: config.coarse_prompts], batch)
            ends = [minimize(objective, x, (form, few), "L-BFGS-B", jac=True) for x in starts]
            best = min(ends, key=lambda end: end.fun)
            best = minimize(objective, best.x, (form, batch), "L-BFGS-B", jac=True)
            tuned.append(algorithm(jnp.asarray(best.x).reshape(2, depth), form))
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *tuned)


@moments.compiled
def errors_of_each(stacks, batch):  # Params [S, ...], Prompt [B] -> [S, B]
    return jax.lax.map(lambda params: errors(params, batch), stacks)
