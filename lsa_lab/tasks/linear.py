"""Dense and sparse linear regression as a distribution over prompts."""

from functools import partial
from typing import Literal

import flax.struct
import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import DTypeLike

from lsa_lab import prompts, random
from lsa_lab.arguments import (
    Real,
    check_at_least,
    check_choice,
    check_range,
    check_size,
    check_symmetric,
)
from lsa_lab.prompts import Prompt


class LinearTask(flax.struct.PyTreeNode):
    """y_i = w·x_i + ε_i with x_i ~ N(0, Λ) and a new w for every prompt; the target is w·x_query.

    The target has no label noise: a squared error on it is an excess risk (docs/theory, "Prompts
    and tokens"). Sizes are static; other fields may be traced or vmapped over.

    Args:
        sparsity: s; w then has exactly s non-zeros on a uniformly random support.
        covariance, task_covariance: Λ of x and W of w, None for the identity.
        prior_mean: w_0. w = w_0 + v, v ~ N(0, weight_std² W).
        signal: non-zeros of v are N(0, weight_std²) ("gaussian") or ± weight_std ("flat"); on a
            "sphere" v has a uniform direction, and |v| / weight_std is the root of their number.
        labels: "real", or "signs" of w·x + ε, two classes ±1 by a probit rule, and of the target.
        drift: ρ in [0, 1]; v_{t+1} = ρ v_t + √(1 - ρ²) times a new v, the query's being the last.
        correlation: c in [0, 1]; x_{t+1} = c x_t + √(1 - c²) times a new x; the query's x is
            independent.
    """

    n: int = flax.struct.field(pytree_node=False)
    d: int = flax.struct.field(pytree_node=False)
    sparsity: int | None = flax.struct.field(default=None, pytree_node=False)
    noise_std: Real = 0.0
    covariance: Array | None = None  # [d, d]
    task_covariance: Array | None = None  # [d, d]
    prior_mean: Array | None = None  # [d]
    weight_std: Real = 1.0
    signal: Literal["gaussian", "flat", "sphere"] = flax.struct.field(
        default="gaussian", pytree_node=False
    )
    labels: Literal["real", "signs"] = flax.struct.field(default="real", pytree_node=False)
    drift: Real | None = None
    correlation: Real | None = None
    dtype: DTypeLike | None = flax.struct.field(default=None, pytree_node=False)

    def __post_init__(self):
        _check(self)


def sample(key: Array, task: LinearTask) -> Prompt:
    """Draw one prompt."""
    key_normal, key_weights = jax.random.split(key)
    n, d = task.n, task.d
    # One flat draw: on CPU several small ones cost more than their numbers.
    normal = jax.random.normal(key_normal, ((n + 1) * d + n,), task.dtype)
    covariates = normal[: (n + 1) * d].reshape(n + 1, d)
    if task.correlation is not None:
        walked = _walk(covariates[:-1], task.correlation)
        covariates = jnp.concatenate([walked, covariates[-1:]])
    if task.covariance is not None:
        covariates = covariates @ random.covariance_root(task.covariance).astype(normal.dtype).T
    weights = sample_weights(key_weights, task)
    labels = covariates @ weights if task.drift is None else (covariates * weights).sum(1)
    noise = jnp.asarray(task.noise_std, normal.dtype) * normal[(n + 1) * d :]
    y, y_query = (_labels(task, values) for values in (labels[:-1] + noise, labels[-1]))
    return Prompt(covariates[:-1], y, covariates[-1], y_query)


def sample_batch(key: Array, task: LinearTask, size: int) -> Prompt:  # leading axis B
    """Draw a batch of prompts from one key, at half the cost of ``vmap`` of ``sample``.

    The distribution is that of ``sample``, the random stream is not, and every prompt's numbers
    depend on ``size``.
    """
    check_at_least(size, "size")
    key_white, key_batch = jax.random.split(key)
    white = random.normal(key_white, (task.d + 1, task.n, size), task.dtype)
    return _complete_batch(key_batch, white, task)


def sample_moments(key: Array, task: LinearTask) -> tuple[Array, Array, Array]:
    """Draw (second_moment [e, e], x_query [d], y_query []) of one prompt without its tokens.

    For many, ``sample_moments_batch`` costs less than a ``vmap`` of this.
    """
    second_moments, x_queries, y_queries = sample_moments_batch(key, task, 1)
    return second_moments[..., 0], x_queries[..., 0], y_queries[0]


def sample_moments_batch(key: Array, task: LinearTask, size: int) -> tuple[Array, Array, Array]:
    """Draw (second_moments [e, e, B], x_queries [d, B], y_queries [B]) at a cost independent of n.

    The distribution is that of ``sample``: with z_i = [x_i, ε_i], Σ_i z_i z_iᵀ is Wishart, C B Bᵀ
    Cᵀ, where C = diag(Λ^{1/2}, σ) and B is Bartlett's factor. A shear [x, ε] → [x, w·x + ε] turns
    it into n S_0. Raises ValueError for labels "signs", a drift or a correlation.
    """
    check_at_least(size, "size")
    if task.labels != "real":
        raise ValueError(f"labels = {task.labels!r}: only moments of real labels have this law")
    if task.drift is not None or task.correlation is not None:
        raise ValueError("drift or correlation: such moments have another law; draw tokens")
    key_white, key_batch = jax.random.split(key)
    white = random.wishart_factor(key_white, task.n, task.d + 1, size, task.dtype)
    batch = _complete_batch(key_batch, white, task)  # demonstrations are columns of the factor
    second_moments = white.shape[1] / task.n * prompts.second_moments(batch)
    return second_moments, batch.x_query.T, batch.y_query


def _complete_batch(key: Array, white: Array, task: LinearTask) -> Prompt:
    """Return the prompts with demonstrations [x, ε] from ``white`` ~ N(0, 1) [e, n, B]."""
    key_query, key_weights = jax.random.split(key)
    size = white.shape[-1]
    weights = _sample_batch_weights(key_weights, task, size)
    last, x = weights, white[:-1]
    if task.drift is not None:
        weights, last = weights[:, :-1], weights[:, -1]
    if task.correlation is not None:
        x = jnp.moveaxis(_walk(jnp.moveaxis(x, 1, 0), task.correlation), 0, 1)
    x = _colour(x, task)
    y = _inner(weights, x) + jnp.asarray(task.noise_std, white.dtype) * white[-1]
    x_queries = _colour(random.normal(key_query, (task.d, size), white.dtype), task)
    y_queries = _inner(last, x_queries)
    y, y_queries = _labels(task, y), _labels(task, y_queries)
    return Prompt(x.transpose(2, 1, 0), y.T, x_queries.T, y_queries)


def _labels(task: LinearTask, values: Array) -> Array:
    """Return w·x + ε, or its sign, 1 for 0."""
    if task.labels == "real":
        return values
    return jnp.where(values < 0, -1, 1).astype(values.dtype)


def _colour(white: Array, task: LinearTask) -> Array:  # [d, ...] -> the same
    """Return Λ^{1/2} white."""
    if task.covariance is None:
        return white
    factor = random.covariance_root(task.covariance).astype(white.dtype)
    return (factor @ white.reshape(task.d, -1)).reshape(white.shape)


def _inner(weights: Array, x: Array) -> Array:  # [d, ..., B] x 2 -> [..., B]
    """Return w·x of every prompt, written out: a sum over the first axis is far slower on CPU."""
    weights = jnp.expand_dims(weights, range(1, 1 + x.ndim - weights.ndim))
    return sum(w * row for w, row in zip(weights, x, strict=True))


def sample_weights(key: Array, task: LinearTask) -> Array:  # [d] or [n+1, d]
    """Draw one regression vector w or, with ``drift``, one for each demonstration and the query."""
    key_values, key_support = jax.random.split(key)
    values = jax.random.normal(key_values, (task.d,), task.dtype)
    if task.drift is not None:
        return _sample_path(key, values[:, None], task)[..., 0].T
    support = None
    if task.sparsity is not None:
        support = jax.random.permutation(key_support, jnp.arange(task.d) < task.sparsity)
    return _scale_weights(values, support, task)


def _sample_batch_weights(key: Array, task: LinearTask, size: int) -> Array:
    """Draw [d, B] or, with ``drift``, [d, n+1, B]."""
    key_values, key_support = jax.random.split(key)
    values = random.normal(key_values, (task.d, size), task.dtype)
    if task.drift is not None:
        return _sample_path(key, values, task)
    support = None
    if task.sparsity is not None:
        support = random.subsets(key_support, task.d, size, task.sparsity)
    return _scale_weights(values, support, task)


def _sample_path(key: Array, values: Array, task: LinearTask) -> Array:  # [d, B] -> [d, n+1, B]
    """Draw drifting weights that start from ``values`` ~ N(0, 1)."""
    fresh = random.normal(jax.random.fold_in(key, 1), (task.n, *values.shape), values.dtype)
    drift = 1.0 if task.drift is None else task.drift
    walked = jnp.moveaxis(_walk(jnp.concatenate([values[None], fresh]), drift), 0, 1)
    return _scale_weights(walked.reshape(task.d, -1), None, task).reshape(walked.shape)


@partial(jax.jit, inline=True)  # a loop of its own would be compiled at every call
def _walk(fresh: Array, coefficient: Real) -> Array:  # [t, ...] -> the same
    """Return z_{t+1} = ρ z_t + √(1 - ρ²) times row t + 1, from the first row on."""
    rho = jnp.asarray(coefficient, fresh.dtype)
    spread = jnp.sqrt(1 - rho**2)

    def step(value: Array, row: Array) -> tuple[Array, Array]:
        value = rho * value + spread * row
        return value, value

    return jnp.concatenate([fresh[:1], jax.lax.scan(step, fresh[0], fresh[1:])[1]])


def _scale_weights(values: Array, support: Array | None, task: LinearTask) -> Array:
    """Return w, [d] or [d, B], from N(0, 1) and the support of its non-zeros."""
    for name in ("noise_std", "weight_std"):
        if shape := jnp.shape(getattr(task, name)):
            raise ValueError(f"{name} has shape {shape}: it is one number; vmap over many tasks")
    if task.signal == "flat":
        values = jnp.where(values < 0, -1, 1).astype(values.dtype)
    if support is not None:
        values = jnp.where(support, values, 0)
    if task.signal == "sphere":
        count = (values != 0).sum(0).astype(values.dtype)
        values = values * jnp.sqrt(count / (values**2).sum(0))[None]
    if task.task_covariance is not None:
        values = random.covariance_root(task.task_covariance).astype(values.dtype) @ values
    weights = jnp.asarray(task.weight_std, values.dtype) * values
    if task.prior_mean is not None:
        mean = task.prior_mean.astype(values.dtype)
        weights = weights + (mean if values.ndim == 1 else mean[:, None])
    return weights


def _check(task: LinearTask) -> None:
    for name in ("n", "d"):
        check_at_least(getattr(task, name), name)
    s, d = task.sparsity, task.d
    if s is not None:
        check_size(s, d, "weights", "sparsity")
    check_choice(task.signal, "signal", ("gaussian", "flat", "sphere"))
    check_choice(task.labels, "labels", ("real", "signs"))
    if s is not None and task.task_covariance is not None:
        raise ValueError("task_covariance describes dense weights: leave sparsity or it at None")
    if task.signal != "gaussian" and task.task_covariance is not None:
        raise ValueError(f"task_covariance would turn a {task.signal}: leave signal at 'gaussian'")
    for name, rank in (("covariance", 2), ("task_covariance", 2), ("prior_mean", 1)):
        # A pytree transformation may rebuild the task around placeholders or batched arrays.
        if isinstance(getattr(task, name), list):
            raise ValueError(f"{name} is a list: give an array, np.array({name})")
        shape = getattr(getattr(task, name), "shape", None)
        if shape is not None and shape[-rank:] != (d,) * rank:
            raise ValueError(f"{name} has shape {shape}: with d = {d} it is {(d,) * rank}")
        if rank == 2:
            check_symmetric(getattr(task, name), name)
    for name in ("noise_std", "weight_std"):
        check_range(getattr(task, name), name)
    for name in ("drift", "correlation"):
        check_range(getattr(task, name), name, 1)
    if task.drift is not None and (s is not None or task.signal != "gaussian"):
        raise ValueError("drift is of dense Gaussian weights: leave out sparsity and signal")
