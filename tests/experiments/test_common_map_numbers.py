"""`common_map`: what one matrix for all tokens misses, beside least squares."""

import jax
import jax.numpy as jnp
import numpy as np

from experiments.descent.common_map.compute import measure


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
