"""Layers that also move the covariates are steps with a preconditioner that the prompt chooses.

GD++ of von Oswald et al. 2212.07677; docs/theory, "GD++": after l layers x has become T_l x,
T_{l+1} = (I - γ_l T_l H T_l) T_l, and w_{l+1} = w_l + η_l T_l² Xᵀ(y - Xw_l)/n. For arbitrary
matrices, derived here: T_{l+1} = (I + B_l T_l H T_lᵀ A_l) T_l and w_{l+1} = w_l + T_lᵀ A_lᵀ T_l
Xᵀ(y - Xw_l)/n. Sides: the stream of the constructions; the spectrum of H, and those recursions.
"""

import numpy as np

from draws import jit_numpy, relative_error, seeds
from lsa_lab.models import constructions, linear_attention

N, D, NUM_LAYERS = 5, 3, 4


def draw(seed):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (N + 1, D))
    y = x[:-1] @ rng.normal(size=D) + rng.normal(size=N)
    step_sizes, gammas = rng.uniform(0.1, 1, (2, NUM_LAYERS))
    A, B = rng.normal(size=(2, NUM_LAYERS, D, D)) / D
    return np.column_stack([x, np.append(y, 0.0)]), step_sizes, gammas, A, B


@jit_numpy
def run_plus_plus(tokens, step_sizes, gammas):
    params = constructions.gradient_descent_plus_plus(step_sizes, gammas, tokens.shape[1] - 1)
    return linear_attention.forward(params, tokens).stream


@jit_numpy
def run_matrices(tokens, A, B):
    params = constructions.preconditioned(A)
    w_pv = params.w_pv.at[:, 0, :-1, :-1].set(B)
    return linear_attention.forward(params.replace(w_pv=w_pv), tokens).stream


def spectral_form(tokens, step_sizes, gammas):
    """The stream from the spectrum of H: t ← t (1 - γ t²h), the residual shrinks by 1 - η t²h."""
    x, y = tokens[:, :-1], tokens[:-1, -1]
    values, basis = np.linalg.eigh(x[:-1].T @ x[:-1] / len(y))
    least_squares = basis.T @ np.linalg.lstsq(x[:-1], y)[0]
    t, left, stream = np.ones_like(values), np.ones_like(values), [tokens]
    for step_size, gamma in zip(step_sizes, gammas, strict=True):
        left = left * (1 - step_size * t**2 * values)
        t = t * (1 - gamma * t**2 * values)
        slots = np.append(y, 0.0) - x @ basis @ ((1 - left) * least_squares)
        stream.append(np.column_stack([x @ (basis * t) @ basis.T, slots]))
    return np.stack(stream)


def matrix_form(tokens, A, B, late=False):
    """The stream [L+1, T, e] that T_l and w_l predict; ``late`` moves the covariates first."""
    x, y = tokens[:, :-1], tokens[:-1, -1]
    n, d = len(y), x.shape[1]
    H = sum(np.outer(x[i], x[i]) for i in range(n)) / n
    T, w, stream = np.eye(d), np.zeros(d), [tokens]
    for step, move in zip(A, B, strict=True):
        moved = T + move @ T @ H @ T.T @ step @ T
        reading = moved if late else T
        w = w + reading.T @ step.T @ reading @ x[:-1].T @ (y - x[:-1] @ w) / n
        T = moved
        stream.append(np.column_stack([x @ T.T, np.append(y, 0.0) - x @ w]))
    return np.stack(stream)


@seeds
def test_covariates_and_weights_move_together(seed):
    tokens, step_sizes, gammas, A, B = draw(seed)
    stream = run_plus_plus(tokens, step_sizes, gammas)
    assert relative_error(stream, spectral_form(tokens, step_sizes, gammas)) < 1e-10
    assert relative_error(run_matrices(tokens, A, B), matrix_form(tokens, A, B)) < 1e-10


def test_control_covariates_that_stand_still_or_move_too_early_break_it():
    tokens, step_sizes, gammas, A, B = draw(0)
    stream = run_plus_plus(tokens, step_sizes, gammas)
    assert relative_error(stream, spectral_form(tokens, step_sizes, np.zeros(4))) > 1e-2
    assert relative_error(run_matrices(tokens, A, B), matrix_form(tokens, A, B, late=True)) > 1e-2
