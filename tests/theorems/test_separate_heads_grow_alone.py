"""A head with separate key, query and value, aligned with an eigenvector, obeys m' = λ²m²(1 - γm³);
heads escape small weights one by one, and between escapes the loss stands still.

Half-way to the next escape the next head, still of the order of its initial size m, has changed the
loss by O(m³). Derived here (agrees in outline with 2501.16265). docs/theory, "Separate heads grow
alone", "Training halts at plateaus".
"""

import hypothesis
import jax
import jax.numpy as jnp
import numpy as np

import population
from draws import draw_eigensystem, jit_numpy, seed_and
from lsa_lab.theory import plateaus, training_dynamics

D, N = 3, 5
SPECTRUM = np.array([2.0, 1.0, 0.5])
growth = jit_numpy(plateaus.head_growth, static_argnums=2)
solve_heads = jit_numpy(plateaus.solve_heads, static_argnums=2)


@jit_numpy
@jax.grad
def slopes(heads, covariance, noise_var):  # of the loss with A = Σ_h v_h k_h q_hᵀ
    A = jnp.einsum("h,hd,he->de", *heads)
    return population.one_layer_loss(A, covariance, N, noise_var)


def draw(seed):
    """Eigenvalues and eigenvectors of Λ, Λ, and v, k, q of d heads."""
    rng = np.random.default_rng(seed)
    eigenvalues, basis = draw_eigensystem(rng, D, 0.3, 2.0)
    heads = rng.normal(size=D), *rng.normal(size=(2, D, D))
    return eigenvalues, basis, basis * eigenvalues @ basis.T, heads


def growth_error(seed, noise_var, tilt):
    """How far the heads' slopes are from the stated growth; a ``tilt`` turns the queries away."""
    eigenvalues, basis, covariance, (values, _, queries) = draw(seed)
    sizes = np.abs(values)
    aligned = sizes[:, None] * basis.T
    uphill = slopes((sizes, aligned, aligned + tilt * queries), covariance, noise_var)
    stated = growth(sizes, eigenvalues, N, noise_var)
    along = stated[:, None] * basis.T
    return max(np.abs(a + b).max() for a, b in zip(uphill, (stated, along, along), strict=True))


def imbalance(seed, noise_var, shared_key):
    """d/dt of v_h² - |k_h|² and of |k_h|² - |q_h|², halved, at arbitrary heads."""
    *_, covariance, (values, keys, queries) = draw(seed)
    heads = values, np.repeat(keys[:1], D, 0) if shared_key else keys, queries
    uphill = list(slopes(heads, covariance, noise_var))
    if shared_key:  # the first key in place of all, and moved by all
        uphill[1] = np.eye(D)[:, :1] * uphill[1].sum(0)
    rates = [(a * b).reshape(D, -1).sum(1) for a, b in zip(heads, uphill, strict=True)]
    return np.abs(np.diff(rates, axis=0)).max()


@seed_and(noise_var=(0.0, 2.0))
def test_aligned_heads_grow_alone_and_every_head_keeps_its_balance(seed, noise_var):
    assert growth_error(seed, noise_var, tilt=0.0) < 1e-10
    assert imbalance(seed, noise_var, shared_key=False) < 1e-10


def arrivals(eigenvalues, noise_var, size):
    """90 % of each head's limit, and the time to it, ∫ dm/(λ² m² (1 - γ m³)), by nodes in 1/m."""
    nodes, weights = np.polynomial.legendre.leggauss(200)
    limits = np.cbrt(N / ((N + 1) * eigenvalues + eigenvalues.sum() + noise_var))
    low, high = 1 / (0.9 * limits), 1 / size
    inverse = low + (high - low) * (nodes[:, None] + 1) / 2
    speed = eigenvalues**2 * (1 - 1 / (limits * inverse) ** 3)
    return 0.9 * limits, (high - low) / 2 * (weights @ (1 / speed))


def arrival_error(seed, noise_var, size, clock):
    eigenvalues = np.sort(np.random.default_rng(seed).uniform(0.3, 2, 3))[::-1]  # the first arrives
    ends, times = arrivals(eigenvalues, noise_var, size)
    sizes = solve_heads(clock * times, eigenvalues, N, np.full(3, size), noise_var)
    return np.abs(np.diag(sizes) / ends - 1).max()


def distance_from_plateaus(size, noise_var):
    """How far the loss is half-way between escapes, at the worst plateau but the last."""
    _, escapes = arrivals(SPECTRUM, noise_var, size)
    times = (np.append(0, escapes[:-1]) + escapes) / 2
    sizes = solve_heads(times, SPECTRUM, N, np.full(3, size), noise_var)
    case = np.diag(SPECTRUM), N, noise_var
    losses = [training_dynamics.loss(1.0, np.diag(m**3), *case) for m in sizes]
    return np.abs(np.array(losses) - plateaus.plateaus(SPECTRUM, N, noise_var)[:-1]).max()


@hypothesis.settings(max_examples=5)
@seed_and(noise_var=(0.0, 2.0), size=(0.02, 0.2))
def test_a_head_arrives_when_the_integral_says(seed, noise_var, size):
    assert arrival_error(seed, noise_var, size, clock=1.0) < 1e-7


def test_the_loss_halts_at_the_plateaus_the_smaller_the_weights_start():
    near, nearer = distance_from_plateaus(0.01, 0.5), distance_from_plateaus(0.005, 0.5)
    assert nearer < 1e-5
    assert abs(np.log2(near / nearer) - 3.0) < 0.1


def test_control_tilted_queries_a_shared_key_another_clock_and_large_weights_break_it():
    assert growth_error(0, 0.5, tilt=0.1) > 1e-2
    assert imbalance(0, 0.5, shared_key=True) > 1e-2
    assert arrival_error(0, 0.5, 0.1, clock=0.5) > 1e-2
    assert distance_from_plateaus(0.3, 0.5) > 1e-2
