"""Deep layers A_l = a_l Σ⁻¹, B_l = b_l I have slopes that are multiples of Σ in A and of I in B.

Ahn et al. (2306.00297) work with x ~ N(0, Σ), w ~ N(0, Σ⁻¹). Any few prompts, turned by the 48
signed permutations O of R³ (x = Σ^{1/2} O z, w = Σ^{-1/2} O v), have the symmetry that the argument
needs. docs/theory, "The symmetric critical family".
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize

import population
from draws import draw_root, jit_numpy, seeds
from lsa_lab.models import linear_attention

D, L, N = 3, 3, 4
EYE = np.eye(D)
FLIPS = [np.diag(signs) for signs in itertools.product([1.0, -1.0], repeat=D)]
GROUP = np.stack([f @ EYE[list(p)] for p in itertools.permutations(range(D)) for f in FLIPS])  # 48


@jit_numpy
def gradients(root, group, z, v, a, b):
    """d/dW of the mean squared error over all turned prompts, each [L, e, e], and the error.

    W_kq = diag(-a_l Σ⁻¹, 0), W_pv = diag(b_l I, 1); the minus sign is that of the read-out.
    """
    x = jnp.einsum("df,gfe,pne->gpnd", root, group, z).reshape(-1, N + 1, D)
    w = jnp.einsum("fd,gfe,pe->gpd", jnp.linalg.inv(root), group, v).reshape(-1, D)

    def loss(params):
        def error(x, w):
            return population.predict(params, x[:-1], x[:-1] @ w, x[-1]) - x[-1] @ w

        return (jax.vmap(error)(x, w) ** 2).mean()

    scores, writes = (
        jnp.multiply.outer(-a, jnp.linalg.inv(root @ root.T)),
        jnp.multiply.outer(b, EYE),
    )
    w_kq, w_pv = (jnp.pad(w[:, None], [(0, 0), (0, 0), (0, 1), (0, 1)]) for w in (scores, writes))
    params = linear_attention.Params(w_kq, w_pv.at[..., D, D].set(1.0))
    value, slopes = jax.value_and_grad(loss)(params)
    return slopes.w_kq[:, 0], slopes.w_pv[:, 0], value


def draw(seed):
    """A root of Σ, what is standard normal in covariates and tasks of eight prompts, a and b."""
    rng = np.random.default_rng(seed)
    root = draw_root(rng, D, 0.5, 2.0)
    prompts = rng.normal(size=(8, N + 1, D)), rng.normal(size=(8, D))
    return root, prompts, rng.uniform(-0.3, 0.3, (2, L))


def errors(seed, group):
    """dL/dQ_xx from a multiple of Σ, its off-blocks from 0; dL/dP_xx from one of I, and again."""
    root, prompts, factors = draw(seed)
    slope_q, slope_p, _ = gradients(root, group, *prompts, *factors)
    scale, found = max(np.abs(slope_q).max(), np.abs(slope_p).max()), []
    for slope, shape in ((slope_q, root @ root.T), (slope_p, EYE)):
        block = slope[:, :D, :D]
        multiples = np.einsum("lde,ed->l", block, np.linalg.inv(shape)) / D
        found.append(np.abs(block - multiples[:, None, None] * shape).max() / scale)
        found.append(max(np.abs(slope[:, :D, D]).max(), np.abs(slope[:, D, :D]).max()) / scale)
    return np.array(found)


@seeds
def test_the_gradient_is_a_multiple_of_the_covariance_and_of_the_identity(seed):
    assert errors(seed, GROUP).max() < 1e-10
    # Control: without permutations the x-blocks leave the shape, without flips the off-blocks too.
    assert errors(0, np.tile(FLIPS, (6, 1, 1)))[[0, 2]].min() > 1e-3
    assert errors(0, np.tile(EYE, (48, 1, 1))).min() > 1e-3


def test_entries_outside_the_family_have_slopes_of_which_one_vanishes_where_it_is_stationary():
    """dL/dQ_yy and, for any a and b, dL/dP_yy do not vanish; where the family is, the latter."""
    root, prompts, factors = draw(0)  # too many prompts to fit
    slope_q, slope_p, _ = gradients(root, GROUP, *prompts, *factors)
    assert min(np.abs(slope_q[1:, D, D]).min(), np.abs(slope_p[:, D, D]).min()) > 1e-3

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
