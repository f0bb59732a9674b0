"""Exact averages over Gaussian prompts, for the theorem tests on risks: sums, and moments by hand.

Nothing here is used by the library, nor uses its closed forms.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lsa_lab.models import linear_attention, trace
from lsa_lab.models.linear_attention import Params
from lsa_lab.prompts import Prompt, tokens


def gauss_hermite(counts: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:  # [P, k], [P]
    """Nodes and probabilities for k standard normals; c nodes are exact up to degree 2c - 1."""
    rules = [np.polynomial.hermite_e.hermegauss(count) for count in counts]
    nodes = np.meshgrid(*[rule[0] for rule in rules], indexing="ij")
    weights = np.meshgrid(*[rule[1] / rule[1].sum() for rule in rules], indexing="ij")
    return np.stack(nodes, -1).reshape(-1, len(rules)), np.prod(weights, axis=0).ravel()


def predict(
    params: Params, x: Array, y: Array, x_query: Array, keys: str = "demonstrations"
) -> Array:  # []
    """What linear attention predicts for x [n, d], y [n] and x_query [d]."""
    rows = tokens(Prompt(x, y, x_query, jnp.zeros_like(y[0])))
    return trace.predict(linear_attention.forward(params, rows, keys=keys))


@jax.jit
def risk(params: Params, x: Array, y: Array, w: Array, mass: Array, root: Array) -> Array:  # []
    """E(ŷ - w·x_query)² over prompts x [P, n, d], y [P, n], w [P, d] of probabilities [P].

    The columns of the root are the queries: they sum squares as E over N(0, root rootᵀ) does.
    """

    def error(x, y, w, x_query):
        return predict(params, x, y, x_query) - w @ x_query

    over_queries = jax.vmap(error, (None, None, None, 0))
    errors = jax.vmap(over_queries, (0, 0, 0, None))(x, y, w, root.T)
    return mass @ (errors**2).sum(1)


def one_layer_loss(A: Array, covariance: Array, n: int, noise_var: Array) -> Array:  # []
    """½ E(ŷ - w·x)² of ŷ = bᵀA x, b = Xᵀy/n, for x ~ N(0, Λ) and w ~ N(0, I), by moments.

    E bbᵀ = (1 + 1/n) Λ² + ((tr Λ + σ²)/n) Λ and E bwᵀ = Λ (docs/theory, "The risk of one layer").
    """
    total = jnp.trace(covariance)
    second = (1 + 1 / n) * covariance @ covariance + (total + noise_var) / n * covariance
    quadratic = jnp.trace(covariance @ A.T @ second @ A)
    return (quadratic - 2 * jnp.trace(covariance @ A.T @ covariance) + total) / 2
