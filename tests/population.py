"""Exact averages over Gaussian prompts, for the theorem tests on risks: sums, and moments by hand.

Nothing here is used by the library, nor uses its closed forms.
"""

import itertools
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from draws import jit_numpy
from lsa_lab.models import linear_attention, recurrent, trace
from lsa_lab.models.linear_attention import Params
from lsa_lab.prompts import Prompt, tokens


def gauss_hermite(counts: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:  # [P, k], [P]
    """Return nodes and probabilities for k standard normals; c nodes are exact to degree 2c - 1."""
    rules = [np.polynomial.hermite_e.hermegauss(count) for count in counts]
    nodes = np.meshgrid(*[rule[0] for rule in rules], indexing="ij")
    weights = np.meshgrid(*[rule[1] / rule[1].sum() for rule in rules], indexing="ij")
    return np.stack(nodes, -1).reshape(-1, len(rules)), np.prod(weights, axis=0).ravel()


def predict(
    params: Params, x: Array, y: Array, x_query: Array, keys: str = "demonstrations"
) -> Array:  # []
    """Return what linear attention predicts for x [n, d], y [n] and x_query [d]."""
    rows = tokens(Prompt(x, y, x_query, jnp.zeros_like(y[0])))
    return trace.predict(linear_attention.forward(params, rows, keys=keys))


@jax.jit
def risk(params: Params, x: Array, y: Array, w: Array, mass: Array, root: Array) -> Array:  # []
    """Return E(ŷ - w·x_query)² over prompts x [P, n, d], y [P, n], w [P, d] of probabilities [P].

    The columns of the root are the queries: they sum squares as E over N(0, root rootᵀ) does.
    """

    def error(x, y, w, x_query):
        return predict(params, x, y, x_query) - w @ x_query

    over_queries = jax.vmap(error, (None, None, None, 0))
    errors = jax.vmap(over_queries, (0, 0, 0, None))(x, y, w, root.T)
    return mass @ (errors**2).sum(1)


def one_layer_loss(A: Array, covariance: Array, n: int, noise_var: Array) -> Array:  # []
    """Return ½ E(ŷ - w·x)² of ŷ = bᵀA x, b = Xᵀy/n, for x ~ N(0, Λ) and w ~ N(0, I), by moments.

    E bbᵀ = (1 + 1/n) Λ² + ((tr Λ + σ²)/n) Λ and E bwᵀ = Λ (docs/theory, "The risk of one layer").
    """
    total = jnp.trace(covariance)
    second = (1 + 1 / n) * covariance @ covariance + (total + noise_var) / n * covariance
    quadratic = jnp.trace(covariance @ A.T @ second @ A)
    return (quadratic - 2 * jnp.trace(covariance @ A.T @ covariance) + total) / 2


answer = jit_numpy(predict, static_argnames="keys")


def icosahedron() -> np.ndarray:  # [12, 3]
    """Return unit vectors on which polynomials of degree five have their mean on the sphere."""
    golden, signs = (1 + 5**0.5) / 2, np.array(list(itertools.product((1.0, -1.0), repeat=2)))
    face = np.stack([np.zeros(4), signs[:, 0], golden * signs[:, 1]], 1) / np.sqrt(1 + golden**2)
    return np.concatenate([np.roll(face, shift, axis=1) for shift in range(3)])


def _layer(kind, d, step, gate=None, scale=1.0, **choices):
    """Return a recurrent layer of tokens [x, y], its raw steps and gates the same for all."""
    rows, slot = jnp.eye(d, d + 1)[None, None], jnp.eye(d + 1)[None, None, -1:]
    zeros, ones = jnp.zeros((1, 1, 1, d + 1)), jnp.ones((1, 1, 1))
    leaves = dict(w_q=rows, w_k=rows, w_v=scale * slot, w_o=-slot.mT, w_step=zeros)
    if gate is not None:
        leaves |= dict(w_gate=zeros, b_gate=gate * ones)
    config = recurrent.Config(kind, d + 1, key_width=d, value_width=1, **choices)
    return recurrent.Params(**leaves, b_step=step * ones), config


def constant_layer(kind, d, step, gate=None, scale=1.0):
    """Return a recurrent layer with one step and one gate for all tokens, its labels scaled."""
    raw_step = jnp.log(jnp.expm1(step)) if kind == "lms" else jnp.log(step / (2 - step))
    raw_gate = None if gate is None else jnp.log(gate) - jnp.log1p(-gate)
    return _layer(kind, d, raw_step, raw_gate, scale, largest_step=2.0)


def mesa_layer(d, penalty, gate=jnp.inf, **choices):
    """Return a mesa layer of merged tokens with steps of 1, and gates that are open by default."""
    params, config = _layer("mesa", d, jnp.inf, gate, **choices)
    return params.replace(log_penalty=jnp.log(penalty) * jnp.ones((1, 1))), config


def recurrent_answer(params, config, queries):
    """Return a function of x [n, d] and y [n]: a recurrent layer's answers to queries [Q, d]."""
    lasts = jnp.concatenate([queries, jnp.zeros_like(queries[:, :1])], 1)

    def answer(x, y):  # [Q]
        rows = jnp.concatenate([x, y[:, None]], 1)
        return jax.vmap(
            lambda last: recurrent.predict(params, jnp.concatenate([rows, last[None]]), config)
        )(lasts)

    return answer


def linear_risk(answer, x, masses, noise_vars, tasks=None, queries=None):  # []
    """Return E Σ_q (ŷ_q - w·q)² of answers that are linear in the labels and in the queries.

    ``answer(x, y)`` is ŷ [Q] at the queries [Q, d], unit vectors by default. The covariates x
    [P, n, d] have the probabilities ``masses`` [P]. The squares of ``tasks`` [K, n+1, d], which
    hold for the n labels and for the queries, sum as the mean over tasks does: of E wwᵀ = I/d by
    default. A label's noise has the variance of its place in ``noise_vars`` [n].
    """
    _, n, d = x.shape
    queries = jnp.eye(d) if queries is None else queries
    still = jnp.broadcast_to(jnp.eye(d)[:, None] / d**0.5, (d, n + 1, d))
    tasks = still if tasks is None else tasks

    def errors(x):
        def error(task):
            return ((answer(x, (task[:-1] * x).sum(1)) - queries @ task[-1]) ** 2).sum()

        noise = jax.vmap(lambda unit: (answer(x, unit) ** 2).sum())(jnp.eye(n))
        return jax.vmap(error)(tasks).sum() + noise_vars @ noise

    return masses @ jax.lax.map(errors, x, batch_size=81)


def drifting_tasks(correlation: Array, d: int) -> Array:  # [(n+1) d, n+1, d]
    """Return unit tasks for E w_s·w_t = C_st, C [n+1, n+1], and isotropic w."""
    root = jnp.linalg.cholesky(correlation) / d**0.5
    units = jnp.eye(len(root) * d).reshape(-1, len(root), d)
    return jnp.einsum("st,ktd->ksd", root, units)


def token_states(
    kind: str, key_width: int, value_width: int, gate: float | None = None, **more: int
) -> Callable:
    """Return the function from tokens [T, K + 1 + V], each a key, a raw step and a value, to the
    states [T, K, V] of one recurrent layer; a step is softplus or 2 sigmoid of the raw one."""
    width = key_width + 1 + value_width
    config = recurrent.Config(
        kind, width, key_width=key_width, value_width=value_width, largest_step=2.0, **more
    )
    keys, step, values = jnp.split(jnp.eye(width)[None, None], [key_width, key_width + 1], axis=2)
    leaves = dict(w_q=keys, w_k=keys, w_v=values, w_o=values.mT, w_step=step)
    if gate is not None:
        b_gate = jnp.full((1, 1, 1), jnp.log(gate / (1 - gate)))
        leaves |= dict(b_gate=b_gate, w_gate=jnp.zeros((1, 1, 1, width)))
    params = recurrent.Params(**leaves, b_step=jnp.zeros((1, 1, 1)))
    return lambda tokens: recurrent.states(params, tokens, config)[0, 0]
