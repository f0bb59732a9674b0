"""Dense and sparse linear regression as a distribution of prompts."""

from typing import Literal

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike, DTypeLike

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


def sample_moments(key: Array, task: LinearTask) -> tuple[Array, Array, Array]:
    """(second_moment [e, e], x_query [d], y_query []) of one prompt, without drawing its tokens.

    With z_i = [x_i, ε_i], Σ_i z_i z_iᵀ is Wishart: C B Bᵀ Cᵀ, where C = diag(Λ^{1/2}, σ) and B is
    Bartlett's factor, e × min(n, e), lower trapezoidal, χ_{n-j} on the diagonal and N(0, 1) below
    (Bartlett 1933). A shear [x, ε] → [x, w·x + ε] turns it into n S_0. The cost does not depend on
    n, and the random stream is not that of ``sample``.
    """
    key_normal, key_chi, key_weights = jax.random.split(key, 3)
    n, d = task.n, task.d
    rank = min(n, d + 1)
    normal = jax.random.normal(key_normal, ((d + 1) * rank + d,), task.dtype)
    shape = (n - jnp.arange(rank, dtype=normal.dtype)) / 2
    chi = jnp.sqrt(2 * jax.random.gamma(key_chi, shape, dtype=normal.dtype))
    below = jnp.tril(normal[: (d + 1) * rank].reshape(d + 1, rank), -1)
    factor = below + jnp.eye(d + 1, rank, dtype=normal.dtype) * chi[None]
    x_query, covariates = normal[(d + 1) * rank :], factor[:d]
    if task.covariance is not None:
        root = _root(task.covariance).astype(normal.dtype)
        x_query, covariates = root @ x_query, root @ covariates
    weights = sample_weights(key_weights, task)
    labels = weights @ covariates + jnp.asarray(task.noise_std, normal.dtype) * factor[d]
    factor = jnp.concatenate([covariates, labels[None]])
    return factor @ factor.T / n, x_query, weights @ x_query


def sample_weights(key: Array, task: LinearTask, active: ArrayLike | None = None) -> Array:  # [d]
    """One regression vector w, zero beyond the first ``active`` coordinates if they are given."""
    key_values, key_support = jax.random.split(key)
    values = jax.random.normal(key_values, (task.d,), task.dtype)
    if task.signal == "flat":
        values = jnp.where(values < 0, -1, 1).astype(values.dtype)
    if task.sparsity is not None:
        support = jax.random.permutation(key_support, jnp.arange(task.d) < task.sparsity)
        if active is not None:
            support = _places(key_support, task, active) < task.sparsity
        values = jnp.where(support, values, 0)
    if task.task_covariance is not None:
        values = _root(task.task_covariance).astype(values.dtype) @ values
    weights = jnp.asarray(task.weight_std, values.dtype) * values
    if task.prior_mean is not None:
        weights = weights + task.prior_mean.astype(values.dtype)
    return weights if active is None else jnp.where(jnp.arange(task.d) < active, weights, 0)


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
