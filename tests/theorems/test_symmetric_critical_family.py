"""Deep layers A_l = a_l Σ⁻¹, B_l = b_l I have slopes that are multiples of Σ in A and of I in B.

Ahn et al. (2306.00297) work with x ~ N(0, Σ), w ~ N(0, Σ⁻¹). Any few prompts, turned by the 48
signed permutations O of R³ (x = Σ^{1/2} O z, w = Σ^{-1/2} O v), have the symmetry that the argument
needs: the gradient of the *empirical* loss has the shape of the population's. docs/theory, "The
symmetric critical family".
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize

import population
from draws import draw_root, jit_numpy, seeds
from lsa_lab.models import linear_attention

D, L, N, PROMPTS = 3, 3, 4, 2
EYE = np.eye(D)
FLIPS = [np.diag(signs) for signs in itertools.product([1.0, -1.0], repeat=D)]
GROUP = np.stack([f @ EYE[list(p)] for p in itertools.permutations(range(D)) for f in FLIPS])  # 48


def family(root, a, b):
    """W_kq = diag(-a_l Σ⁻¹, 0), W_pv = diag(b_l I, 1); the minus sign is that of the read-out."""
    inverse = jnp.linalg.inv(root @ root.T)
    w_kq = jnp.zeros((L, 1, D + 1, D + 1)).at[:, 0, :D, :D].set(-a[:, None, None] * inverse[None])
    w_pv = jnp.zeros_like(w_kq).at[:, 0, :D, :D].set(b[:, None, None] * jnp.eye(D)[None])
    return linear_attention.Params(w_kq, w_pv.at[:, 0, D, D].set(1.0))


@jit_numpy
def gradients(root, group, z, v, a, b):
    """d/dW of the mean squared error over all turned prompts, each [L, e, e], and the error."""
    x = jnp.einsum("df,gfe,pne->gpnd", root, group, z).reshape(-1, N + 1, D)
    w = jnp.einsum("fd,gfe,pe->gpd", jnp.linalg.inv(root), group, v).reshape(-1, D)

    def loss(params):
        def error(x, w):
            return population.predict(params, x[:-1], x[:-1] @ w, x[-1]) - x[-1] @ w

        return (jax.vmap(error)(x, w) ** 2).mean()

    value, slopes = jax.value_and_grad(loss)(family(root, a, b))
    return slopes.w_kq[:, 0], slopes.w_pv[:, 0], value


def random_gradients(seed, group):
    """The slopes in W_kq and W_pv, and Σ, for random prompts, factors a, b and spectrum."""
    rng = np.random.default_rng(seed)
    root = draw_root(rng, D, 0.5, 2.0)
    prompts = rng.normal(size=(PROMPTS, N + 1, D)), rng.normal(size=(PROMPTS, D))
    slopes = gradients(root, group, *prompts, *rng.uniform(-0.3, 0.3, (2, L)))[:2]
    return *slopes, root @ root.T


def errors(seed, group):
    """dL/dQ_xx from a multiple of Σ, its off-blocks from 0; dL/dP_xx from one of I, and again."""
    slope_q, slope_p, covariance = random_gradients(seed, group)
    scale, found = max(np.abs(slope_q).max(), np.abs(slope_p).max()), []
    for slope, shape in ((slope_q, covariance), (slope_p, EYE)):
        block = slope[:, :D, :D]
        factors = np.einsum("lde,ed->l", block, np.linalg.inv(shape)) / D
        found.append(np.abs(block - factors[:, None, None] * shape).max() / scale)
        found.append(max(np.abs(slope[:, :D, D]).max(), np.abs(slope[:, D, :D]).max()) / scale)
    return np.array(found)


@seeds
def test_the_gradient_is_a_multiple_of_the_covariance_and_of_the_identity(seed):
    assert errors(seed, GROUP).max() < 1e-10


def test_control_half_the_symmetry_is_not_enough():
    """Without permutations the x-blocks leave the shape, without flips the off-blocks too."""
    assert errors(0, np.tile(FLIPS, (6, 1, 1)))[[0, 2]].min() > 1e-3
    assert errors(0, np.tile(EYE, (48, 1, 1))).min() > 1e-3


def test_a_model_with_all_entries_free_leaves_the_family():
    """dL/dQ_yy and, for such a and b, dL/dP_yy do not vanish."""
    slope_q, slope_p, _ = random_gradients(0, GROUP)
    assert min(np.abs(slope_q[1:, D, D]).min(), np.abs(slope_p[:, D, D]).min()) > 1e-3


def test_where_the_family_is_stationary_only_the_first_of_the_two_does_not_vanish():
    rng = np.random.default_rng(1)
    root = draw_root(rng, D, 0.5, 2.0)
    prompts = rng.normal(size=(8, N + 1, D)), rng.normal(size=(8, D))  # too many to fit

    def objective(ab):
        slope_q, slope_p, value = gradients(root, GROUP, *prompts, *ab.reshape(2, L))
        by_a = -np.einsum("lde,de->l", slope_q[:, :D, :D], np.linalg.inv(root @ root.T))
        return float(value), np.r_[by_a, np.einsum("ldd->l", slope_p[:, :D, :D])]

    start, options = np.repeat([0.2, -0.05], L), {"gtol": 1e-9}
    end = scipy.optimize.minimize(objective, start, jac=True, method="BFGS", options=options)
    slope_q, slope_p, _ = gradients(root, GROUP, *prompts, *end.x.reshape(2, L))
    for vanishes in (end.jac, slope_q[:, :D, :D], slope_p[:, :D, :D], slope_p[:, D, D]):
        assert np.abs(vanishes).max() < 1e-6
    assert np.abs(slope_q[1:, D, D]).max() > 1e-3
