"""Dense and sparse linear regression as a distribution of prompts."""

from typing import Literal

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike, DTypeLike

from lsa_lab import variates
from lsa_lab.arguments import Real, check_at_least, check_spread, check_symmetric, is_concrete
from lsa_lab.prompts import Prompt


class LinearTask(flax.struct.PyTreeNode):
    """y_i = w·x_i + ε_i with x_i ~ N(0, Λ) and a fresh w for every prompt; the target is w·x_query.

    The target carries no label noise, so a squared error on it is an excess risk (docs/theory,
    "Prompts and tokens"). The weights are w = w0 + v: v ~ N(0, weight_std² W), or, with
    ``sparsity`` s, exactly s non-zeros on a uniformly random support, each N(0, weight_std²)
    ("gaussian") or ± weight_std ("flat"). Sizes are static; everything else may be traced or
    vmapped over.
    """

    n: int = flax.struct.field(pytree_node=False)
    d: int = flax.struct.field(pytree_node=False)
    sparsity: int | None = flax.struct.field(default=None, pytree_node=False)
    noise_std: Real = 0.0
    covariance: Array | None = None  # [d, d]  Λ; None is the identity
    task_covariance: Array | None = None  # [d, d]  W; None is the identity
    prior_mean: Array | None = None  # [d]  w0, what the model is supposed to know
    weight_std: Real = 1.0
    signal: Literal["gaussian", "flat"] = flax.struct.field(default="gaussian", pytree_node=False)
    dtype: DTypeLike | None = flax.struct.field(default=None, pytree_node=False)

    def __post_init__(self):
        _check(self)


def sample(key: Array, task: LinearTask, active: ArrayLike | None = None) -> Prompt:
    """One prompt; with ``active``, a number that may be traced, of the first ``active`` coordinates
    only: the others are 0 in x and w, and a sparse w has its support among the first."""
    key_normal, key_weights = jax.random.split(key)
    n, d = task.n, task.d
    # One flat draw: on CPU several small ones cost more than their numbers.
    normal = jax.random.normal(key_normal, ((n + 1) * d + n,), task.dtype)
    covariates = normal[: (n + 1) * d].reshape(n + 1, d)
    if task.covariance is not None:
        covariates = covariates @ _root(task.covariance).astype(normal.dtype).T
    if active is not None:
        active = jnp.asarray(active, int)
        covariates = jnp.where(jnp.arange(d)[None] < active, covariates, 0)
    weights = sample_weights(key_weights, task, active)
    labels = covariates @ weights
    noise = jnp.asarray(task.noise_std, normal.dtype) * normal[(n + 1) * d :]
    return Prompt(covariates[:-1], labels[:-1] + noise, covariates[-1], labels[-1])


def sample_batch(
    key: Array, task: LinearTask, size: int, active: ArrayLike | None = None
) -> Prompt:  # leading axis B
    """A batch of prompts from one key: the law of ``sample``, twice as fast as its ``vmap``.

    All numbers are one flat draw whose last axis is the batch. Its stream is not that of
    ``sample``, and a prompt's numbers depend on ``size``.
    """
    check_at_least(size, "size")
    key_normal, key_weights = jax.random.split(key)
    n, d = task.n, task.d
    normal = jax.random.normal(key_normal, ((n + 1) * d + n, size), task.dtype)
    normal = jax.lax.optimization_barrier(normal)  # else each reader draws it again
    covariates = normal[: (n + 1) * d].reshape(d, n + 1, size)
    if task.covariance is not None:
        root = _root(task.covariance).astype(normal.dtype)
        covariates = (root @ covariates.reshape(d, -1)).reshape(covariates.shape)
    if active is not None:
        active = jnp.asarray(active, int)
        covariates = jnp.where(jnp.arange(d)[:, None, None] < active, covariates, 0)
    weights = _sample_weights(key_weights, task, size, active)
    labels = _inner(weights, covariates)
    noise = jnp.asarray(task.noise_std, normal.dtype) * normal[(n + 1) * d :]
    x, y = covariates.transpose(2, 1, 0), labels.T
    return Prompt(x[:, :-1], y[:, :-1] + noise.T, x[:, -1], y[:, -1])


def sample_moments(key: Array, task: LinearTask) -> tuple[Array, Array, Array]:
    """(second_moment [e, e], x_query [d], y_query []) of one prompt, without drawing its tokens.

    The batch of one of ``sample_moments_batch``, which draws many at once sooner than a ``vmap``.
    """
    second_moment, x_query, y_query = sample_moments_batch(key, task, 1)
    return second_moment[..., 0], x_query[..., 0], y_query[0]


def sample_moments_batch(key: Array, task: LinearTask, size: int) -> tuple[Array, Array, Array]:
    """(second_moments [e, e, B], x_queries [d, B], y_queries [B]) of prompts without their tokens.

    With z_i = [x_i, ε_i], Σ_i z_i z_iᵀ is Wishart: C B Bᵀ Cᵀ, where C = diag(Λ^{1/2}, σ) and B is
    Bartlett's factor, e × min(n, e), lower trapezoidal, χ_{n-j} on the diagonal and N(0, 1) below
    (Bartlett 1933). A shear [x, ε] → [x, w·x + ε] turns it into n S_0. The law is that of
    ``sample``, the cost does not depend on n.
    """
    check_at_least(size, "size")
    key_normal, key_chi, key_weights = jax.random.split(key, 3)
    n, d = task.n, task.d
    rank = min(n, d + 1)
    below = [min(i, rank) for i in range(d + 1)]  # entries of each row before the diagonal
    normal = jax.random.normal(key_normal, (sum(below) + d, size), task.dtype)
    chi = variates.chi(key_chi, n - jnp.arange(rank), size, normal.dtype)
    *rows, x_queries = jnp.split(normal, np.cumsum(below))
    zeros = jnp.zeros((rank, size), normal.dtype)
    factor = jnp.stack(
        [jnp.concatenate([row, chi[i : i + 1], zeros[i + 1 :]]) for i, row in enumerate(rows)]
    )  # [e, rank, B]
    covariates = factor[:d]
    if task.covariance is not None:
        root = _root(task.covariance).astype(normal.dtype)
        x_queries = root @ x_queries
        covariates = (root @ covariates.reshape(d, -1)).reshape(covariates.shape)
    weights = _sample_weights(key_weights, task, size)
    labels = _inner(weights, covariates)
    labels = labels + jnp.asarray(task.noise_std, normal.dtype) * factor[d]
    factor = jnp.concatenate([covariates, labels[None]])
    factor = jax.lax.optimization_barrier(factor)
    second_moments = sum(factor[:, None, k] * factor[None, :, k] for k in range(rank)) / n
    second_moments = jax.lax.optimization_barrier(second_moments)
    return second_moments, x_queries, _inner(weights, x_queries)


def _inner(weights: Array, covariates: Array) -> Array:  # [d, B], [d, ..., B] -> [..., B]
    """w·x for every prompt, written out: on CPU a sum over the first axis is far slower."""
    weights = jnp.expand_dims(weights, range(1, covariates.ndim - 1))
    return sum(w * x for w, x in zip(weights, covariates, strict=True))


def sample_weights(key: Array, task: LinearTask, active: ArrayLike | None = None) -> Array:  # [d]
    """One regression vector w, zero beyond the first ``active`` coordinates if they are given."""
    key_values, key_support = jax.random.split(key)
    values = jax.random.normal(key_values, (task.d,), task.dtype)
    support = None
    if task.sparsity is not None:
        support = jax.random.permutation(key_support, jnp.arange(task.d) < task.sparsity)
        if active is not None:
            support = _places(key_support, task, active) < task.sparsity
    return _weights(values, support, task, active)


def _sample_weights(
    key: Array, task: LinearTask, size: int, active: ArrayLike | None = None
) -> Array:  # [d, B]
    """``sample_weights`` for a batch."""
    key_values, key_support = jax.random.split(key)
    values = jax.random.normal(key_values, (task.d, size), task.dtype)
    support = None
    if task.sparsity is not None:
        support = variates.subsets(key_support, task.d, size, task.sparsity, active)
    return _weights(values, support, task, active)


def _weights(
    values: Array, support: Array | None, task: LinearTask, active: ArrayLike | None
) -> Array:  # [d] or [d, B]
    def column(vector: Array) -> Array:
        return vector.reshape(-1, *[1] * (values.ndim - 1))

    if task.signal == "flat":
        values = jnp.where(values < 0, -1, 1).astype(values.dtype)
    if support is not None:
        values = jnp.where(support, values, 0)
    if task.task_covariance is not None:
        values = _root(task.task_covariance).astype(values.dtype) @ values
    weights = jnp.asarray(task.weight_std, values.dtype) * values
    if task.prior_mean is not None:
        weights = weights + column(task.prior_mean.astype(values.dtype))
    return weights if active is None else jnp.where(column(jnp.arange(task.d)) < active, weights, 0)


def _places(key: Array, task: LinearTask, active: ArrayLike) -> Array:  # [d]
    """Places of the coordinates in a uniformly random order that begins with the active ones."""
    scores = jax.random.uniform(key, (task.d,), task.dtype)
    scores = jnp.where(jnp.arange(task.d) < active, scores, 2)
    return jnp.argsort(jnp.argsort(scores))


def _root(covariance: Array) -> Array:  # [d, d] -> [d, d]
    """A matrix C with C Cᵀ = covariance: Cholesky's factor, or, where a covariance that can be read
    is singular, one by eigenvalues. A traced one has to be positive definite."""
    if not is_concrete(covariance) or _is_definite(np.asarray(covariance)):
        return jnp.linalg.cholesky(covariance)
    values, vectors = jnp.linalg.eigh(covariance)
    return vectors * jnp.sqrt(jnp.maximum(values, 0))[None]


def _is_definite(covariance: np.ndarray) -> bool:
    """Whether Cholesky's factorisation exists in the precision at hand."""
    try:
        np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:
        return False
    return True


def _check(task: LinearTask) -> None:
    for name in ("n", "d"):
        check_at_least(getattr(task, name), name)
    s, d = task.sparsity, task.d
    if s is not None and not 1 <= s <= d:
        raise ValueError(
            f"sparsity = {s} with d = {d}: choose 1 to {d}, nearest {min(max(s, 1), d)}"
        )
    if task.signal not in ("gaussian", "flat"):
        raise ValueError(f"signal = {task.signal!r}: choose 'gaussian' or 'flat'")
    if s is not None and task.task_covariance is not None:
        raise ValueError("task_covariance describes dense weights: leave sparsity or it at None")
    if task.signal == "flat" and task.task_covariance is not None:
        raise ValueError("task_covariance would turn flat weights: leave signal at 'gaussian'")
    for name, rank in (("covariance", 2), ("task_covariance", 2), ("prior_mean", 1)):
        # A pytree transformation may rebuild the task around placeholders or batched arrays.
        shape = getattr(getattr(task, name), "shape", None)
        if shape is not None and shape[-rank:] != (d,) * rank:
            raise ValueError(f"{name} has shape {shape}: with d = {d} it is {(d,) * rank}")
        if rank == 2:
            check_symmetric(getattr(task, name), name)
    for name in ("noise_std", "weight_std"):
        check_spread(getattr(task, name), name)
