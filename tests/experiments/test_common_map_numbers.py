"""`common_map`: what one matrix for all tokens misses, beside least squares."""

import jax
import jax.numpy as jnp
import numpy as np

from experiments.descent.common_map.compute import architecture, draw, measure, only, streams
from experiments.descent.common_map.config import MODELS, Config
from lsa_lab.prompts import tokens

CONFIG = Config(
    d=2,
    n=4,
    layers=2,
    heads=1,
    key_width=2,
    mlp_width=3,
    scales=(1.0, 2.0),
    runs=2,
    prompts=1,
    queries=4,
)
PARAMS, BATCH, QUERIES = jax.jit(draw, static_argnums=1)(jax.random.key(0), CONFIG)


def missed(before, after):
    """The norm of what no matrix explains of the rows after a layer."""
    return np.linalg.norm(after - before @ np.linalg.lstsq(before, after, rcond=None)[0])


def test_what_a_common_map_misses_is_the_residual_of_least_squares():
    stream = np.random.default_rng(0).normal(size=(1 + 4, 3, 5, 3))  # 1 + m, L + 1, T, e
    values = jax.jit(measure)(jnp.asarray(stream))
    for t in (1, 2):
        of_tokens = missed(stream[0, 0], stream[0, t])
        of_queries = missed(stream[1:, 0, -1], stream[1:, t, -1])
        expected = (
            of_tokens / np.linalg.norm(stream[0, t]),
            of_queries / np.linalg.norm(stream[1:, t, -1]),
            of_tokens / np.linalg.norm(stream[0, t] - stream[0, 0]),
        )
        np.testing.assert_allclose(values[:, t - 1], expected)


def test_weights_grow_with_the_scale_and_a_model_has_no_others_than_its_own():
    np.testing.assert_allclose(PARAMS.w_q[:, 1], 2 * PARAMS.w_q[:, 0])
    np.testing.assert_allclose(PARAMS.mlp_out[:, 1], 2 * PARAMS.mlp_out[:, 0])
    linear = only(PARAMS, architecture(CONFIG, MODELS["linear"]))
    assert linear.mlp_in is None
    np.testing.assert_array_equal(linear.w_v, PARAMS.w_v)


def test_a_linear_layer_adds_what_the_sum_over_demonstrations_says_to_every_query():
    model = architecture(CONFIG, MODELS["linear"])
    many = jax.jit(streams, static_argnums=3)(PARAMS, BATCH, QUERIES, model)
    run, scale = 1, 1
    prompt = jax.tree.map(lambda leaf: leaf[run, 0], BATCH)
    w_q, w_k, w_v, w_o = (
        np.asarray(getattr(PARAMS, name)[run, scale, 0, 0]) for name in ("w_q", "w_k", "w_v", "w_o")
    )
    for i, x_query in enumerate([prompt.x_query, *QUERIES[run, 0]]):
        rows = np.asarray(tokens(prompt.replace(x_query=x_query)))
        pairs = [np.outer(w_o @ w_v @ h, w_k @ h) @ w_q for h in rows[:-1]]
        expected = rows + rows @ (sum(pairs) / 4).T
        np.testing.assert_allclose(many[run, scale, 0, i, 0], rows)
        np.testing.assert_allclose(many[run, scale, 0, i, 1], expected)
