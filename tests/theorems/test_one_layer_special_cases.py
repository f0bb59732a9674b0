"""Published one-layer optima are special cases of one formula (THEORY II.2.4).

Zhang et al. (2306.09927), Ahn et al. (2306.00297) and Mahankali et al. (2307.03576).
"""

import hypothesis
import hypothesis.strategies as st
import jax.numpy as jnp
import numpy as np
import pytest

from lsa_lab.theory import optimum


@pytest.mark.parametrize(("n", "d"), [(5, 3), (3, 5)])
@hypothesis.given(seed=st.integers(0, 2**31 - 1))
def test_the_published_optima_are_special_cases(n, d, seed):
    rng = np.random.default_rng(seed)
    vectors, eigenvalues = np.linalg.qr(rng.standard_normal((d, d)))[0], rng.uniform(0.5, 2.0, d)
    covariance, identity, noise_var = vectors * eigenvalues @ vectors.T, np.eye(d), 0.3
    inverse = np.linalg.inv((1 + 1 / n) * covariance + np.trace(covariance) / n * identity)
    least = np.trace(covariance @ inverse @ (covariance + np.trace(covariance) * identity)) / n
    zhang = optimum.one_layer(covariance, identity, n, 0.0)
    np.testing.assert_allclose(zhang, inverse, atol=1e-10)
    risk = optimum.one_layer_risk(zhang, covariance, identity, n, 0.0)
    np.testing.assert_allclose(risk, least, rtol=1e-10)
    # Control: with noisy labels Zhang's matrix is too long a step.
    noisy = optimum.one_layer(covariance, identity, n, noise_var)
    assert np.linalg.norm(noisy) < np.linalg.norm(inverse) - 1e-3

    precision = np.linalg.inv(covariance)
    step = n / (n + 1 + d + noise_var)
    whitened = optimum.one_layer(covariance, precision, n, noise_var)
    np.testing.assert_allclose(whitened, step * precision, atol=1e-10)
    isotropic = optimum.one_layer(identity, identity, n, noise_var)
    np.testing.assert_allclose(isotropic, step * identity, atol=1e-10)
    risk = optimum.one_layer_risk(isotropic, identity, identity, n, noise_var)
    np.testing.assert_allclose(risk, d * (d + 1 + noise_var) / n * step, rtol=1e-10)
    sparse = optimum.one_layer(identity, identity / d, n, noise_var)
    np.testing.assert_allclose(sparse, n / (n + 1 + d + noise_var * d) * identity, atol=1e-10)


def test_impossible_arguments_are_refused():
    with pytest.raises(ValueError, match="at least one demonstration"):
        optimum.one_layer(jnp.eye(2), jnp.eye(2), 0, 0.1)
    with pytest.raises(ValueError, match="finite and not negative"):
        optimum.one_layer_risk(jnp.eye(2), jnp.eye(2), jnp.eye(2), 3, -0.1)
    with pytest.raises(AssertionError, match=r"task_covariance is \[d, d\]"):
        optimum.rank_limited_risk(jnp.eye(2), jnp.eye(3), 3, 0.1)
