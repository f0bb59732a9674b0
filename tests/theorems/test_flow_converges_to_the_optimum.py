"""Training from small balanced weights ends at the best layer: uU → Γ^{-1}, u → tr(Γ^{-2})^{1/4}.

Zhang et al. 2306.09927, Theorem 4.1; docs/theory, "Training ends at the optimum". Hypotheses:
U = cΘΘᵀ, u = c, |ΘΘᵀ|_F = 1, c²|Γ|√d < 2. Sides: the matrix ODE after a long time; the limit from
the spectrum of Λ. The noise only enlarges Γ.
"""

import numpy as np

import draws
import population

D, N = 3, 5


def best_layer(covariance, noise_var):
    """A = Γ^{-1} and the balanced u, from the spectrum."""
    eigenvalues, basis = np.linalg.eigh(covariance)
    steps = N / ((N + 1) * eigenvalues + eigenvalues.sum() + noise_var)
    return basis * steps @ basis.T, (steps**2).sum() ** 0.25


def distance(covariance, root, size, noise_var, sign, imbalance, time):
    """How far the effective step and u are from the best layer's at that time.

    ``size`` in (0, 1) is c² as a share of its bound; ``root`` is Θ before it is normalised.
    """
    A, balanced_u = best_layer(covariance, noise_var)
    bound = 2 * np.linalg.eigvalsh(A)[0] / len(A) ** 0.5
    scale = np.sqrt(size * bound)
    initial = sign * scale * root @ root.T / np.linalg.norm(root @ root.T)
    times, u = np.linspace(0, time, 10), imbalance * scale
    u, U = population.train_flow(times, covariance, N, u, initial, noise_var)
    return np.abs(u[-1] * U[-1] - A).max(), abs(u[-1] - balanced_u)


@draws.seed_and(size=(0.01, 0.99), noise_var=(0.0, 1.0))
def test_training_ends_at_the_one_layer_optimum(seed, size, noise_var):
    rng = np.random.default_rng(seed)
    start = draws.draw_covariance(rng, D, 0.7, 2.0), rng.normal(size=(D, D)), size, noise_var
    assert max(distance(*start, sign=1.0, imbalance=1.0, time=60.0)) < 1e-7


def test_the_condition_on_the_size_is_not_necessary():
    start = np.eye(D), np.eye(D), 4.0, 0.5
    assert max(distance(*start, sign=1.0, imbalance=1.0, time=20.0)) < 1e-7


def test_control_a_negative_or_an_unbalanced_start_ends_elsewhere():
    """Isotropic -ΘΘᵀ runs into the saddle at zero; from a larger u only the product is right.

    Rounding errors grow like e^{λ²√d t} at the saddle, hence the shorter time.
    """
    start = np.eye(D), np.eye(D), 0.5, 0.5
    assert max(distance(*start, sign=1.0, imbalance=1.0, time=7.0)) < 1e-7
    assert min(distance(*start, sign=-1.0, imbalance=1.0, time=7.0)) > 0.1
    of_step, of_u = distance(*start, sign=1.0, imbalance=2.0, time=60.0)
    assert of_step < 1e-7
    assert of_u > 0.1
