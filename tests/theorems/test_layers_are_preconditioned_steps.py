"""L layers with matrices A_l are L steps of descent preconditioned by A_lᵀ, and layers that also
move the covariates, by B_l, are steps with a preconditioner that the prompt chooses:

    T_{l+1} = (I + B_l T_l H T_lᵀ A_l) T_l,   w_{l+1} = w_l + T_lᵀ A_lᵀ T_l Xᵀ(y - Xw_l)/n.

The query is no key. Heads of one layer that write the label slot alone are one head Σ_h v_h A_h.
Ahn et al. 2306.00297; with A = η I, B = -γ I GD++ of von Oswald et al. 2212.07677. docs/theory,
"Layers are preconditioned steps", "GD++", "Heads merge in one layer".
"""

import numpy as np

import draws
from draws import forward, jit_numpy, relative_error, seeds, sizes
from lsa_lab.models import constructions
from lsa_lab.models.linear_attention import Params

LAYERS = 4
plus_plus = jit_numpy(constructions.gradient_descent_plus_plus, static_argnums=2)


def network(tokens, A, B, keys="demonstrations"):
    params = draws.preconditioned(A)
    w_pv = params.w_pv.copy()
    w_pv[:, 0, :-1, :-1] = B
    return forward(params.replace(w_pv=w_pv), tokens, keys=keys).stream


def descend(tokens, A, B, late=False, transposed=True):
    """The stream [L+1, T, e] that T_l and w_l predict; ``late`` moves the covariates first."""
    x, y = tokens[:, :-1], tokens[:-1, -1]
    n, d = len(y), x.shape[1]
    H, T, w, stream = x[:-1].T @ x[:-1] / n, np.eye(d), np.zeros(d), [tokens]
    for step, move in zip(A, B, strict=True):
        moved = T + move @ T @ H @ T.T @ step @ T
        reading, left = moved if late else T, (y - x[:-1] @ w) @ x[:-1] / n
        w = w + reading.T @ (step.T if transposed else step) @ reading @ left
        T = moved
        stream.append(np.column_stack([x @ T.T, np.append(y, 0.0) - x @ w]))
    return np.stack(stream)


def descend_on_the_spectrum(tokens, step_sizes, gammas):
    """GD++ from the spectrum of H: t ← t (1 - γ t²h), the residual shrinks by 1 - η t²h."""
    x, y = tokens[:, :-1], tokens[:-1, -1]
    values, basis = np.linalg.eigh(x[:-1].T @ x[:-1] / len(y))
    least_squares = basis.T @ np.linalg.lstsq(x[:-1], y)[0]
    t, left, stream = np.ones_like(values), np.ones_like(values), [tokens]
    for step_size, gamma in zip(step_sizes, gammas, strict=True):
        left, t = left * (1 - step_size * t**2 * values), t * (1 - gamma * t**2 * values)
        slots = np.append(y, 0.0) - x @ basis @ ((1 - left) * least_squares)
        stream.append(np.column_stack([x @ (basis * t) @ basis.T, slots]))
    return np.stack(stream)


@sizes
@seeds
def test_layers_are_preconditioned_steps_and_covariates_move_as_stated(n, d, seed):
    rng = np.random.default_rng(seed)
    tokens = draws.as_tokens(draws.draw_prompt(rng, n, d))
    tokens /= np.abs(tokens).max()
    A, B = rng.normal(size=(2, LAYERS, d, d)) / d
    for move in (0 * B, B):
        assert relative_error(network(tokens, A, move), descend(tokens, A, move)) < 1e-10
    factors = rng.uniform(0.1, 1, (2, LAYERS))  # step sizes and γ
    stream = forward(plus_plus(*factors, d), tokens).stream
    assert relative_error(stream, descend_on_the_spectrum(tokens, *factors)) < 1e-10
    one_layer = network(tokens, A[:1], 0 * B[:1], "all")  # the query's slot is still empty
    assert relative_error(one_layer, descend(tokens, A[:1], 0 * B[:1])) < 1e-10
    if seed == 0 and d == 3:  # Controls: no transposition, a query that is a key, a late step
        fixed = network(tokens, A, 0 * B)
        assert relative_error(fixed, descend(tokens, A, 0 * B, transposed=False)) > 1e-3
        assert relative_error(fixed, network(tokens, A, 0 * B, "all")) > 1e-3
        assert relative_error(network(tokens, A, B), descend(tokens, A, B, late=True)) > 1e-3


@sizes
@seeds
def test_many_heads_are_their_weighted_sum(n, d, seed):
    """Heads with key-query matrix diag(A_h, 0) write u_h·x_i - v_h y_i to the label slot."""
    rng = np.random.default_rng(seed)
    prompt, matrices = draws.draw_prompt(rng, n, d), rng.normal(size=(2, d, d))
    scales, tokens = rng.normal(size=2), draws.as_tokens(prompt)
    w_kq, w_pv = np.zeros((2, 1, 2, d + 1, d + 1))
    w_kq[0, :, :d, :d], w_pv[0, :, d, d] = matrices, -scales
    merged = np.einsum("h,hde->de", scales, matrices)
    formula = prompt.y @ prompt.x @ merged @ prompt.x_query / n

    def answer(params):
        return -forward(params, tokens).stream[-1, -1, -1]

    stated = [answer(draws.preconditioned(merged[None])), formula]
    tolerance = 1e-10 * max(1.0, abs(formula))
    np.testing.assert_allclose(answer(Params(w_kq, w_pv)), stated, rtol=0, atol=tolerance)
    if seed == 0 and d == 3:
        # Control: u_h adds u_hᵀ (XᵀX/n) A_h x_query, which no choice of one matrix on Xᵀy is.
        w_pv[0, :, d, :d] = rng.normal(size=(2, d))
        assert abs(answer(Params(w_kq, w_pv)) - formula) > 1e-3 * max(1.0, abs(formula))
