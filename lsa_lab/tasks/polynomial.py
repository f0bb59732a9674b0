"""Polynomial regression: labels that are a linear function of polynomial features."""

import itertools
import math

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import DTypeLike

from lsa_lab.arguments import Real, check_at_least, check_range, check_whole
from lsa_lab.prompts import Prompt

_MOST = 4096  # features; more are a slip in d or degree


class PolynomialTask(flax.struct.PyTreeNode):
    """y_i = w·φ(z_i) + ε_i with z_i ~ N(0, I_d) and a fresh w for every prompt; noise-free target.

    φ holds the Hermite polynomials of z up to ``degree``, without the constant, E φφᵀ = I: so
    E (w·φ)² = |w|². w ~ N(0, weight_std² I), on exactly ``sparsity`` random features if given. The
    prompt shows φ(z) ("features": linear regression on uncorrelated but dependent and non-Gaussian
    covariates, which attention alone can solve) or z ("raw": a token-wise linear model cannot).
    """

    n: int = flax.struct.field(pytree_node=False)
    d: int = flax.struct.field(pytree_node=False)
    degree: int = flax.struct.field(default=2, pytree_node=False)
    sparsity: int | None = flax.struct.field(default=None, pytree_node=False)
    noise_std: Real = 0.0
    weight_std: Real = 1.0
    raw: bool = flax.struct.field(default=False, pytree_node=False)
    dtype: DTypeLike | None = flax.struct.field(default=None, pytree_node=False)

    def __post_init__(self):
        _check(self)

    @property
    def num_features(self) -> int:
        """F = C(d + degree, degree) - 1."""
        return math.comb(self.d + self.degree, self.degree) - 1

    @property
    def width(self) -> int:
        """The number of covariates that the prompt shows, F or d."""
        return self.d if self.raw else self.num_features


def sample(key: Array, task: PolynomialTask) -> Prompt:
    """One prompt."""
    key_normal, key_weights = jax.random.split(key)
    n, d = task.n, task.d
    normal = jax.random.normal(key_normal, ((n + 1) * d + n,), task.dtype)
    covariates = normal[: (n + 1) * d].reshape(n + 1, d)
    phi = features(covariates, task.degree)
    labels = phi @ sample_weights(key_weights, task)
    noise = jnp.asarray(task.noise_std, normal.dtype) * normal[(n + 1) * d :]
    x = covariates if task.raw else phi
    return Prompt(x[:-1], labels[:-1] + noise, x[-1], labels[-1])


def sample_weights(key: Array, task: PolynomialTask) -> Array:  # [F]
    """One w; its features stand in the order of ``exponents``."""
    key_values, key_support = jax.random.split(key)
    values = jax.random.normal(key_values, (task.num_features,), task.dtype)
    if task.sparsity is not None:
        chosen = jnp.arange(task.num_features) < task.sparsity
        values = jnp.where(jax.random.permutation(key_support, chosen), values, 0)
    return jnp.asarray(task.weight_std, values.dtype) * values


def features(x: Array, degree: int) -> Array:  # [..., d] -> [..., F]
    """φ_k(x) = Π_j He_{k_j}(x_j)/√(k_j!), all k with 1 ≤ Σ_j k_j ≤ degree.

    He_0 = 1, He_1 = x, He_{m+1} = x He_m - m He_{m-1} (probabilists'): orthonormal under N(0, I).
    """
    hermite = [jnp.ones_like(x), x]
    for m in range(1, degree):
        hermite.append(x * hermite[m] - m * hermite[m - 1])
    scaled = jnp.stack([he / math.factorial(m) ** 0.5 for m, he in enumerate(hermite)])
    powers = exponents(x.shape[-1], degree)  # [F, d]
    factors = scaled[powers, ..., np.arange(x.shape[-1])[None]]  # [F, d, ...]
    return jnp.moveaxis(factors.prod(1), 0, -1)


def exponents(d: int, degree: int) -> np.ndarray:  # [F, d]
    """The k of every feature: degree 1 first, in it x_1, x_2, ...; then x_1², x_1 x_2, ..."""
    rows = []
    for total in range(1, degree + 1):
        for chosen in itertools.combinations_with_replacement(range(d), total):
            rows.append(np.bincount(chosen, minlength=d))
    return np.array(rows)


def _check(task: PolynomialTask) -> None:
    for name in ("n", "d", "degree"):
        check_at_least(getattr(task, name), name)
    count, s = task.num_features, task.sparsity
    if count > _MOST:
        raise ValueError(
            f"d = {task.d}, degree = {task.degree} make {count} features, more than {_MOST}: take "
            "fewer covariates or a lower degree"
        )
    if s is not None and not 1 <= check_whole(s, "sparsity") <= count:
        raise ValueError(
            f"sparsity = {s} of {count} features: choose 1 to {count}, nearest "
            f"{min(max(s, 1), count)}"
        )
    for name in ("noise_std", "weight_std"):
        check_range(getattr(task, name), name)
