"""Ordinary inputs of the analyses: the same numbers in single and in double precision."""

import functools
from functools import partial
from types import SimpleNamespace

import jax
import jax.numpy as jnp
from jax import Array

from lsa_lab import prompts
from lsa_lab.models import linear_attention
from lsa_lab.prompts import Prompt
from lsa_lab.tasks.pools import Pool

N, D, L, H, M = 12, 4, 3, 2, 16  # demonstrations, covariates, layers, heads, pool
E = D + 1


@functools.cache
def inputs(seed: int, dtype: str) -> SimpleNamespace:
    """Draw ``seed``, in numbers that single precision has."""
    arrays = jax.tree.map(lambda x: x.astype(jnp.float32).astype(dtype), _draw(seed))
    return SimpleNamespace(**arrays, **_derive(arrays))


@jax.jit
def _draw(seed: int) -> dict[str, Array]:
    keys = iter(jax.random.split(jax.random.key(seed), 20))
    normal = partial(jax.random.normal, dtype=float)
    prompt = _regression(next(keys))
    params = linear_attention.init(next(keys), L, H, D, scale=0.3)
    return {
        "prompt": prompt,
        "params": params,
        "one_head": linear_attention.init(next(keys), L, 1, D, scale=0.3),
        "pool": normal(next(keys), (M, E)),
        "query": normal(next(keys), (E,)),
        "states": normal(next(keys), (128, E)),
        "targets": normal(next(keys), (128, 2)),
        "gradients": normal(next(keys), (M, 6)),
        "matrix": normal(next(keys), (E, E)),
        "image": normal(next(keys), (D, D)),
        "square": 0.3 * normal(next(keys), (3, E, E)),
        "prefix": normal(next(keys), (2, 3, E)),
        "covariance": _covariance(next(keys), D),
        "query_covariance": _covariance(next(keys), D),
        "task_covariance": _covariance(next(keys), D),
        "noise_cov": _covariance(next(keys), E * E),
        "updates": normal(next(keys), (L, E, E)),
        "batch_of_updates": normal(next(keys), (8, L, E, E)),
        "losses": jax.random.uniform(next(keys), (2**H,), float),
        "unit": jax.random.uniform(next(keys), (6,), float, 0.1, 0.9),
    }


def _regression(key: Array) -> Prompt:
    keys = jax.random.split(key, 3)
    x = jax.random.normal(keys[0], (N + 1, D))
    y = x @ jax.random.normal(keys[1], (D,)) + jax.random.normal(keys[2], (N + 1,))
    return Prompt(x[:-1], y[:-1], x[-1], y[-1])


def _covariance(key: Array, d: int) -> Array:  # [d, d]
    key_values, key_vectors = jax.random.split(key)
    values = jax.random.uniform(key_values, (d,), minval=0.3, maxval=3.0)
    vectors = jax.random.orthogonal(key_vectors, d)
    return vectors * values[None] @ vectors.T


def _derive(arrays: dict) -> dict:
    prompt: Prompt = arrays["prompt"]
    tokens = prompts.tokens(prompt)
    return {
        "tokens": tokens,
        "demonstrations": tokens[:-1],
        "second_moment": prompts.second_moment(prompt),
        "points": Pool(prompt.x, prompt.y),
        "trace": linear_attention.forward(arrays["params"], tokens),
    }
