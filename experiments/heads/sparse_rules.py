"""Rules that know the task of sparse regression, for comparison on the same prompts."""

import itertools
import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from experiments.heads.rule_names import EQUIVARIANT, LASSO, RIDGE, RULES, SPARSE_BAYES
from experiments.models.model import clip_predictions
from lsa_lab import estimators
from lsa_lab.prompts import Prompt
from lsa_lab.tasks.linear import LinearTask, sample

MULTIPLES = tuple(0.05 * 1.5**k for k in range(10))  # of σ √(2 log d / n): the Lasso's penalties
MAX_SIGNED = 100_000  # supports with signs that flat_posterior_mean enumerates at most
TUNING = 256  # prompts that choose among them
_TUNING_SEED = 8_043_420  # of no experiment: these prompts are never among those judged
_AT_ONCE = 64  # prompts in memory with all their supports
_POWERS = 32  # iterations for the largest eigenvalue, which a step's size is chosen by


def predictions(rule: str, batch: Prompt, task: LinearTask) -> Array:  # [B]
    """The predictions of one of RULES, which knows everything about the task but w.

    Ridge has the penalty that is best for any rule linear in the labels that ignores directions,
    σ²d/(n E|w|²) (docs/theory, "The rotation-invariant bound"); "rotation-equivariant Bayes" is the
    best of all that ignore them. The Lasso has the penalty that is best for the task among
    MULTIPLES, judged by excess risk on TUNING prompts of its own, drawn from a fixed key at every
    call. "sparse Bayes" is exact for Gaussian non-zeros and for flat ones.
    """
    return jnp.sum(weights(rule, batch, task) * batch.x_query, axis=1)


@partial(jax.jit, static_argnums=0)
def errors(rule: str, batch: Prompt, task: LinearTask) -> Array:  # [B]
    """Squared errors, the predictions cut as those of models are."""
    return (clip_predictions(predictions(rule, batch, task), batch) - batch.y_query) ** 2


def weights(rule: str, batch: Prompt, task: LinearTask) -> Array:  # [B, d]
    """The same rules before they meet the query."""
    _check(batch, task)
    if rule == RIDGE:
        return jax.vmap(partial(_ridge, task))(batch)
    if rule == EQUIVARIANT:
        return jax.vmap(partial(_equivariant, task))(batch)
    if rule == LASSO:
        return jax.vmap(partial(estimators.lasso, penalty=lasso_penalty(task)))(batch)
    if rule == SPARSE_BAYES:
        return sparse_bayes(task, batch)
    raise ValueError(f"rule = {rule!r}: choose one of {', '.join(RULES)}")


def lasso_penalty(task: LinearTask) -> Array:  # []
    """The best for the task of the penalties on the grid (see ``predictions``)."""
    keys = jax.random.split(jax.random.key(_TUNING_SEED), TUNING)
    tuning = jax.vmap(partial(sample, task=task))(keys)

    def risk(penalty):
        weights = jax.vmap(partial(estimators.lasso, penalty=penalty))(tuning)
        return jnp.mean((jnp.sum(weights * tuning.x_query, axis=1) - tuning.y_query) ** 2)

    unit = task.noise_std * math.sqrt(2 * math.log(max(task.d, 2)) / task.n)
    penalties = unit * jnp.asarray(np.array(MULTIPLES), task.dtype)
    return penalties[jnp.argmin(jax.lax.map(risk, penalties))]


def sparse_bayes(task: LinearTask, batch: Prompt) -> Array:  # [B, d]
    """The posterior mean under the very task: nothing has a smaller risk on average."""
    given = (task.sparsity or task.d, task.weight_std, task.noise_std)
    if task.signal == "flat":

        def flat(prompt):
            return flat_posterior_mean(prompt, *given)

        return jax.lax.map(flat, batch, batch_size=_AT_ONCE)
    if task.sparsity in (None, task.d):
        return jax.vmap(partial(_ridge, task))(batch)
    given = (task.sparsity, task.weight_std**2, task.noise_std**2)
    return jax.vmap(lambda prompt: estimators.sparse_posterior_mean(prompt, *given))(batch)


def flat_posterior_mean(prompt: Prompt, sparsity: int, weight_std, noise_std) -> Array:  # [d]
    """Return E(w | demonstrations) if ``sparsity`` weights, anywhere, are ± τ, by enumeration.

    Σ p(w) w over all such w, p(w) ∝ exp((c·w - w·(Gw)/2)/σ²), G = XᵀX, c = Xᵀy, τ = weight_std.
    """
    d = prompt.x.shape[1]
    if math.comb(d, sparsity) * 2**sparsity > MAX_SIGNED:
        raise ValueError(
            f"{sparsity} signs among {d} weights: more than {MAX_SIGNED} are not enumerated"
        )
    supports = np.array(list(itertools.combinations(range(d), sparsity)))  # [m, s]
    signs = np.array(list(itertools.product((-1.0, 1.0), repeat=sparsity)))  # [2^s, s]
    gram, moment = prompt.x.T @ prompt.x, prompt.x.T @ prompt.y
    values = weight_std * jnp.asarray(signs, gram.dtype)
    blocks = gram[supports[:, :, None], supports[:, None]]  # [m, s, s]
    linear = moment[supports] @ values.T  # [m, 2^s]
    quadratic = jnp.einsum("mij,vi,vj->mv", blocks, values, values)
    share = jax.nn.softmax((linear - quadratic / 2) / noise_std**2, axis=(0, 1))
    return jnp.zeros(d, gram.dtype).at[supports].add(share @ values)


def _ridge(task: LinearTask, prompt: Prompt) -> Array:  # [d]
    squared_length = (task.sparsity or task.d) * task.weight_std**2
    return estimators.ridge(prompt, task.noise_std**2 * task.d / (task.n * squared_length))


def _equivariant(task: LinearTask, prompt: Prompt) -> Array:  # [d]
    given = (task.sparsity, task.weight_std, task.noise_std)
    return estimators.rotation_equivariant_posterior_mean(prompt, *given, signal=task.signal)


def _check(batch: Prompt, task: LinearTask) -> None:
    if batch.x.ndim != 3 or batch.x.shape[1:] != (task.n, task.d):
        raise ValueError(
            f"x has shape {batch.x.shape}: expected prompts of the task, [B, {task.n}, {task.d}]"
        )
    for name in ("covariance", "task_covariance", "prior_mean"):
        if getattr(task, name) is not None:
            raise ValueError(f"{name} is given: these rules are for x ~ N(0, I) and w around 0")


def descent_path(prompt: Prompt, doublings: int) -> Array:  # [C, d]
    """Gradient descent from 0 after 1, 2, 4, ... steps."""
    return _path(*_moments(prompt), doublings)


def preprocessed_path(prompt: Prompt, doublings: int) -> Array:  # [C, d]
    """The same on x̃ = Rx, in the coordinates of x: w = Rθ (docs/theory, "Preprocess then
    optimise"). The size of its steps makes R/|R| the same."""
    gram, r = _moments(prompt)
    return r[None] * _path(r[:, None] * gram * r[None], r * r, doublings)


def oracle_weights(prompt: Prompt, w: Array) -> Array:  # [d]
    """Least squares of whoever knows which coordinates are not 0."""
    gram, r = _moments(prompt)
    inside = w != 0
    gram = jnp.where(inside[:, None] & inside[None], gram, jnp.eye(len(w)))
    return jnp.linalg.solve(gram, jnp.where(inside, r, 0))


def ridge(prompt: Prompt, penalty) -> Array:  # [d]
    """Without a penalty least squares: there are more demonstrations than covariates."""
    gram, r = _moments(prompt)
    return jnp.linalg.solve(gram + penalty * jnp.eye(len(r)), r)


def _moments(prompt: Prompt) -> tuple[Array, Array]:  # [d, d], [d]
    n = len(prompt.y)
    return prompt.x.T @ prompt.x / n, prompt.x.T @ prompt.y / n


def _path(gram: Array, moment: Array, doublings: int) -> Array:  # [C, d]
    """θ_{t+1} = θ_t + η (m - Hθ_t) with η = 1/λ_max, by θ_{2t} = θ_t + (I - ηH)^t θ_t."""

    def power(vector, _):
        vector = gram @ vector
        return vector / jnp.linalg.norm(vector), None

    leading, _ = jax.lax.scan(power, moment, length=_POWERS)
    size = 1 / jnp.linalg.norm(gram @ leading)

    def double(state, _):
        theta, power = state
        return (theta + power @ theta, power @ power), theta

    start = size * moment, jnp.eye(len(moment)) - size * gram
    return jax.lax.scan(double, start, length=doublings + 1)[1]
