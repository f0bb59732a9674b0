"""Dense and sparse linear regression as a distribution of prompts."""

from typing import Any, Literal

import flax.struct
import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike, DTypeLike

from lsa_lab import prompts, random
from lsa_lab.arguments import (
    Real,
    check_at_least,
    check_range,
    check_symmetric,
    check_whole,
    is_readable,
)
from lsa_lab.prompts import Prompt


class LinearTask(flax.struct.PyTreeNode):
    """y_i = w·x_i + ε_i with x_i ~ N(0, Λ) and a fresh w for every prompt; the target is w·x_query.

    The target carries no label noise, so a squared error on it is an excess risk (docs/theory,
    "Prompts and tokens"). The weights are w = w0 + v: v ~ N(0, weight_std² W), or, with
    ``sparsity`` s, exactly s non-zeros on a uniformly random support, each N(0, weight_std²)
    ("gaussian") or ± weight_std ("flat"). On a "sphere" v has a uniform direction, and |v| is
    weight_std times the root of the number of its non-zeros. With the labels "signs" y_i =
    sign(w·x_i + ε_i), two classes ±1 by a probit rule, and the target is sign(w·x_query). With
    ``drift`` ρ the task moves along the prompt, v_{t+1} = ρ v_t + √(1 - ρ²) times a fresh v, and
    the query is answered with the w of its own time; with ``correlation`` c so do covariates,
    x_{t+1} = c x_t + √(1 - c²) times a fresh x, but for the query, which is independent. Sizes are
    static; everything else may be traced or vmapped over.
    """

    n: int = flax.struct.field(pytree_node=False)
    d: int = flax.struct.field(pytree_node=False)
    sparsity: int | None = flax.struct.field(default=None, pytree_node=False)
    noise_std: Real = 0.0
    covariance: Array | None = None  # [d, d]  Λ; None is the identity
    task_covariance: Array | None = None  # [d, d]  W; None is the identity
    prior_mean: Array | None = None  # [d]  w0, what the model is supposed to know
    weight_std: Real = 1.0
    signal: Literal["gaussian", "flat", "sphere"] = flax.struct.field(
        default="gaussian", pytree_node=False
    )
    labels: Literal["real", "signs"] = flax.struct.field(default="real", pytree_node=False)
    drift: Real | None = None  # ρ in [0, 1]; at None and at 1 the task stands still
    correlation: Real | None = None  # c in [0, 1]; at None and at 0 covariates are independent
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
    if task.correlation is not None:
        walked = _walk(covariates[:-1], task.correlation)
        covariates = jnp.concatenate([walked, covariates[-1:]])
    if task.covariance is not None:
        covariates = covariates @ random.covariance_root(task.covariance).astype(normal.dtype).T
    active = _active_count(active, task)
    if active is not None:
        covariates = jnp.where(jnp.arange(d)[None] < active, covariates, 0)
    weights = sample_weights(key_weights, task, active)
    labels = covariates @ weights if task.drift is None else (covariates * weights).sum(1)
    noise = jnp.asarray(task.noise_std, normal.dtype) * normal[(n + 1) * d :]
    y, y_query = (_labels(task, values) for values in (labels[:-1] + noise, labels[-1]))
    return Prompt(covariates[:-1], y, covariates[-1], y_query)


def sample_batch(
    key: Array, task: LinearTask, size: int, active: ArrayLike | None = None
) -> Prompt:  # leading axis B
    """A batch of prompts from one key: the law of ``sample`` at half the cost of its ``vmap``.

    The random stream is not that of ``sample``, and every prompt's numbers depend on ``size``.
    """
    check_at_least(size, "size")
    active = _active_count(active, task)
    key_white, key_rest = jax.random.split(key)
    white = random.normal(key_white, (task.d + 1, task.n, size), task.dtype)
    return _batch(key_rest, white, task, active)


def sample_moments(key: Array, task: LinearTask) -> tuple[Array, Array, Array]:
    """(second_moment [e, e], x_query [d], y_query []) of one prompt, without drawing its tokens.

    A batch of one of ``sample_moments_batch``, which for many costs less than a ``vmap`` of this.
    """
    second_moments, x_queries, y_queries = sample_moments_batch(key, task, 1)
    return second_moments[..., 0], x_queries[..., 0], y_queries[0]


def sample_moments_batch(key: Array, task: LinearTask, size: int) -> tuple[Array, Array, Array]:
    """(second_moments [e, e, B], x_queries [d, B], y_queries [B]): the law of ``sample``, at a cost
    that does not depend on n.

    With z_i = [x_i, ε_i], Σ_i z_i z_iᵀ is Wishart: C B Bᵀ Cᵀ, where C = diag(Λ^{1/2}, σ) and B is
    Bartlett's factor. A shear [x, ε] → [x, w·x + ε] turns it into n S_0.
    """
    check_at_least(size, "size")
    if task.labels != "real":
        raise ValueError(f"labels = {task.labels!r}: only moments of real labels have this law")
    if task.drift is not None or task.correlation is not None:
        raise ValueError("drift or correlation: such moments have another law; draw tokens")
    key_white, key_rest = jax.random.split(key)
    white = random.wishart_factor(key_white, task.n, task.d + 1, size, task.dtype)
    batch = _batch(key_rest, white, task)  # its demonstrations are the columns of the factor
    second_moments = white.shape[1] / task.n * prompts.second_moments(batch)
    return second_moments, batch.x_query.T, batch.y_query


def _batch(key: Array, white: Array, task: LinearTask, active: ArrayLike | None = None) -> Prompt:
    """The prompts whose demonstrations [x, ε] are, before colours and labels, N(0, 1) [e, n, B]."""
    key_query, key_weights = jax.random.split(key)
    size = white.shape[-1]
    weights = _batch_weights(key_weights, task, size, active)
    last, x = weights, white[:-1]
    if task.drift is not None:
        weights, last = weights[:, :-1], weights[:, -1]
    if task.correlation is not None:
        x = jnp.moveaxis(_walk(jnp.moveaxis(x, 1, 0), task.correlation), 0, 1)
    x = _coloured(x, task)
    y = _inner(weights, x) + jnp.asarray(task.noise_std, white.dtype) * white[-1]
    x_queries = _coloured(random.normal(key_query, (task.d, size), white.dtype), task)
    y_queries = _inner(last, x_queries)
    if active is not None:  # the labels are right: weights beyond are 0
        x, x_queries = _cut(x, active), _cut(x_queries, active)
    y, y_queries = _labels(task, y), _labels(task, y_queries)
    return Prompt(x.transpose(2, 1, 0), y.T, x_queries.T, y_queries)


def _labels(task: LinearTask, values: Array) -> Array:
    """w·x + ε as labels: themselves, or their signs, of 0 the positive one."""
    if task.labels == "real":
        return values
    return jnp.where(values < 0, -1, 1).astype(values.dtype)


def _coloured(white: Array, task: LinearTask) -> Array:  # [d, ...] -> the same, Λ^{1/2} times it
    if task.covariance is None:
        return white
    factor = random.covariance_root(task.covariance).astype(white.dtype)
    return (factor @ white.reshape(task.d, -1)).reshape(white.shape)


def _inner(weights: Array, x: Array) -> Array:  # [d, ..., B] x 2 -> [..., B]
    """w·x for every prompt, written out: on CPU a sum over the first axis is far slower."""
    weights = jnp.expand_dims(weights, range(1, 1 + x.ndim - weights.ndim))
    return sum(w * row for w, row in zip(weights, x, strict=True))


def _cut(rows: Array, active: ArrayLike) -> Array:  # [d, ...] -> the same, 0 beyond the active
    places = jnp.arange(len(rows)).reshape(-1, *[1] * (rows.ndim - 1))
    return jnp.where(places < active, rows, 0)


def sample_weights(
    key: Array, task: LinearTask, active: ArrayLike | None = None
) -> Array:  # [d] or [n+1, d]
    """One regression vector w, zero beyond the first ``active`` coordinates if they are given; of
    a task with ``drift`` [n+1, d], those of all demonstrations and of the query."""
    active = _active_count(active, task)
    key_values, key_support = jax.random.split(key)
    values = jax.random.normal(key_values, (task.d,), task.dtype)
    if task.drift is not None:
        return _path(key, values[:, None], task, active)[..., 0].T
    support = None
    if task.sparsity is not None:
        support = jax.random.permutation(key_support, jnp.arange(task.d) < task.sparsity)
        if active is not None:
            support = _places(key_support, task, active) < task.sparsity
    return _weights(values, support, task, active)


def _path(
    key: Array, values: Array, task: LinearTask, active: ArrayLike | None
) -> Array:  # [d, B] -> [d, n+1, B]
    """The weights of every demonstration and of the query of tasks that drift, from N(0, 1) for the
    first ones."""
    fresh = random.normal(jax.random.fold_in(key, 1), (task.n, *values.shape), values.dtype)
    drift = 1.0 if task.drift is None else task.drift
    walked = jnp.moveaxis(_walk(jnp.concatenate([values[None], fresh]), drift), 0, 1)
    return _weights(walked.reshape(task.d, -1), None, task, active).reshape(walked.shape)


def _walk(fresh: Array, coefficient: Real) -> Array:  # [t, ...] -> the same
    """z_{t+1} = ρ z_t + √(1 - ρ²) times the fresh row t + 1, from the first row on."""
    rho = jnp.asarray(coefficient, fresh.dtype)
    spread = jnp.sqrt(1 - rho**2)

    def step(value: Array, row: Array) -> tuple[Array, Array]:
        value = rho * value + spread * row
        return value, value

    return jnp.concatenate([fresh[:1], jax.lax.scan(step, fresh[0], fresh[1:])[1]])


def _batch_weights(
    key: Array, task: LinearTask, size: int, active: ArrayLike | None = None
) -> Array:  # [d, B] or, of tasks that drift, [d, n+1, B]
    key_values, key_support = jax.random.split(key)
    values = random.normal(key_values, (task.d, size), task.dtype)
    if task.drift is not None:
        return _path(key, values, task, active)
    support = None
    if task.sparsity is not None:
        support = random.subsets(key_support, task.d, size, task.sparsity, active)
    return _weights(values, support, task, active)


def _weights(
    values: Array, support: Array | None, task: LinearTask, active: ArrayLike | None
) -> Array:  # [d] or [d, B]
    """w from N(0, 1) and the places of its non-zeros."""
    for name in ("noise_std", "weight_std"):
        if shape := jnp.shape(getattr(task, name)):
            raise ValueError(f"{name} has shape {shape}: it is one number; vmap over many tasks")
    if task.signal == "flat":
        values = jnp.where(values < 0, -1, 1).astype(values.dtype)
    if support is not None:
        values = jnp.where(support, values, 0)
    if task.signal == "sphere":
        values = values if active is None else _cut(values, active)
        count = (values != 0).sum(0).astype(values.dtype)
        values = values * jnp.sqrt(count / (values**2).sum(0))[None]
    if task.task_covariance is not None:
        values = random.covariance_root(task.task_covariance).astype(values.dtype) @ values
    weights = jnp.asarray(task.weight_std, values.dtype) * values
    if task.prior_mean is not None:
        mean = task.prior_mean.astype(values.dtype)
        weights = weights + (mean if values.ndim == 1 else mean[:, None])
    return weights if active is None else _cut(weights, active)


def _places(key: Array, task: LinearTask, active: ArrayLike) -> Array:  # [d]
    """Places of the coordinates in a uniformly random order that begins with the active ones."""
    scores = jax.random.uniform(key, (task.d,), task.dtype)
    scores = jnp.where(jnp.arange(task.d) < active, scores, 2)
    return jnp.argsort(jnp.argsort(scores))


def _check(task: LinearTask) -> None:
    for name in ("n", "d"):
        check_at_least(getattr(task, name), name)
    s, d = task.sparsity, task.d
    if s is not None and not 1 <= check_whole(s, "sparsity") <= d:
        raise ValueError(
            f"sparsity = {s} with d = {d}: choose 1 to {d}, nearest {min(max(s, 1), d)}"
        )
    if task.signal not in ("gaussian", "flat", "sphere"):
        raise ValueError(f"signal = {task.signal!r}: choose 'gaussian', 'flat' or 'sphere'")
    if task.labels not in ("real", "signs"):
        raise ValueError(f"labels = {task.labels!r}: choose 'real' or 'signs'")
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


def _active_count(active: Any, task: LinearTask) -> Any:  # [] or None
    """``active`` checked, and of a schedule's fraction the whole number below it."""
    if active is None:
        return None
    if jnp.ndim(active) or (is_readable(active) and not 1 <= active < task.d + 1):
        raise ValueError(f"active = {active}: it is one number from 1 to d = {task.d}, no mask")
    return jnp.asarray(active, int)
