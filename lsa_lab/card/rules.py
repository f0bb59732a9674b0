"""The known rules: families of predictors with numbers that are fitted to a model.

A family computes N prompts of R runs at once, for G choices of its numbers. A prompt with fewer
demonstrations than the longest begins with rows of zeros, which count as no demonstrations.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy.special import softmax

from lsa_lab.theory import learning_curves

_MIN_NOISE_VAR = 1e-4  # unit of penalties for prompts without noise
_STEPS = (1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 64)  # of descent and of GD++
_NEWTON_STEPS = tuple(range(1, 9))
_UNCOUNTED = 1e6  # an offset c for which Σ/(m + c) is a sum and not a mean


class PromptTable:
    """Prompts of all runs: x [R, N, n, d], y [R, N, n], query [R, N, d], and what families need."""

    def __init__(self, x: np.ndarray, y: np.ndarray, query: np.ndarray) -> None:
        self.x, self.y, self.query = x, y, query
        square_norms = (x**2).sum(-1)[:, :, None]  # [R, N, 1, n]
        self.mask = (square_norms > 0).astype(float)  # 0 for a row of zeros
        self.square_norms = np.where(square_norms > 0, square_norms, 1)
        self.count = self.mask.sum(-1)  # [R, N, 1] demonstrations
        self.ages = np.arange(y.shape[-1])[::-1]  # the number of later rows, [n]
        self.inner = (x @ query[..., None])[..., 0][:, :, None]  # x_i·x, [R, N, 1, n]
        moments, outer = y[..., None] * x, x[..., :, None] * x[..., None, :]
        self.products = np.concatenate([moments, outer.reshape(*y.shape, -1)], -1)  # [.., d + d²]
        values, vectors = np.linalg.eigh(x.swapaxes(-1, -2) @ x)
        self.eigenvalues = values[:, :, None]  # λ of XᵀX, [R, N, 1, d]
        parts = np.stack([moments.sum(-2), query], -2) @ vectors
        self.parts = parts.prod(-2)  # x·v v·Xᵀy for each eigenvector v, [R, N, d]


Predict = Callable[[PromptTable, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Family:
    """A rule with free numbers, such as a step size or a penalty.

    ``predict(table, numbers [R, G, k])`` returns predictions [R, N, G, P], those after each number
    of steps in ``steps`` [P]. The search for the numbers begins on ``grid`` [G, k], and refines
    the columns in ``free``.
    """

    name: str
    template: str  # of the numbers, and of the steps as the last
    grid: np.ndarray  # [G, k]
    free: dict[int, float]  # column: the factor between neighbours of the grid
    predict: Predict
    steps: Sequence[int] = (1,)

    def sample_around(self, numbers: np.ndarray, width: float) -> np.ndarray:
        """Draw G points [R, G, k] around some points [R, m, k], within powers of the factors."""
        size, num_starts = len(self.grid), numbers.shape[1]
        points, rng = numbers[:, np.arange(size) % num_starts], np.random.default_rng(size)
        for column, factor in self.free.items():
            draws = factor ** rng.uniform(-width, width, size - num_starts)
            points[:, num_starts:, column] *= draws[None]
            points[..., column] = np.minimum(points[..., column], self.grid[:, column].max())
        return points


def make_families(d: int, noise_var: float, tasks: np.ndarray | None = None) -> list[Family]:
    """Return the families for prompts with x near N(0, I).

    A table of training ``tasks`` adds the Bayes rule over them. Penalties are in units of dσ², that
    of the Bayes rule in training, or of a small number without noise. Offsets c of a mean Σ/(m + c)
    are 0, the best one d + 1 + dσ² of linear attention, and one that leaves a sum.
    """
    noise_var = max(noise_var, _MIN_NOISE_VAR)
    unit, offsets = d * noise_var, (0, d + 1 + d * noise_var, _UNCOUNTED)
    gates = (1.0, 0.98, 0.94, 0.86)
    discrete = [] if tasks is None else [
        Family("Bayes over the pretraining tasks", "noise {0:.2f} σ²", _make_grid((0.5, 1.0, 2.0)),
               {0: 1.4}, lambda table, scale: _predict_discrete(table, noise_var * scale, tasks))
    ]  # fmt: skip
    return [
        *discrete,
        Family("a constant", "{0:.3f}", _make_grid(np.outer((1, -1), np.geomspace(1e-3, 1e3, 40))
               .ravel()), {0: 1.45}, lambda table, c: c[:, None] + 0 * table.count[..., None]),
        Family("the mean of labels", "gain {1:.3f}", _make_grid((0,), (1.0, 2.0, 4.0), (0,)),
               {1: 1.5}, _predict_kernel),
        Family("linear attention", "gain {0:.3f}", _make_grid(np.geomspace(0.1, 2, 8), offsets),
               {0: 1.3}, _predict_attention),
        Family("LMS", "step {0:.4f}", _make_grid(np.geomspace(0.05, 1.7, 24) / (d + 2)), {0: 1.17},
               _make_online(lambda table, step: step)),
        Family("implicit step", "step {0:.4f}", _make_grid(np.geomspace(0.3, 30, 24) / (d + 2)),
               {0: 1.23}, _make_online(lambda table, step: step / (1 + step * table.square_norms))),
        Family("delta rule", "β {0:.3f}", _make_grid(np.geomspace(0.05, 1.95, 24)), {0: 1.18},
               _make_online(lambda table, step: step / table.square_norms)),
        Family("ridge", "penalty {0:.3f} dσ²", _make_grid(2.0 ** np.arange(-9, 7)), {0: 2.0},
               lambda table, p: _filter(table, [1 / (table.eigenvalues + unit * p[:, None])])),
        Family("LMS of falling steps", "{0:.2f} of the best ones",
               _make_grid(np.geomspace(0.4, 2, 24)), {0: 1.1},
               _make_online(lambda table, scale: scale * _find_best_steps(table, noise_var))),
        Family("kernel smoother", "sharpness {0:.3f}, gain {1:.3f}, Gaussian {2:.0f}",
               _make_grid(np.geomspace(0.05, 3, 8), (1.0, 2.0, 4.0), (0, 1)), {0: 1.8, 1: 1.5},
               _predict_kernel),
        Family("gradient descent", "{2} steps of {0:.3f}",
               _make_grid(np.geomspace(0.03, 1.9, 16), offsets), {0: 1.32},
               lambda table, numbers: _descend(table, np.insert(numbers, 1, 0, -1)), _STEPS),
        Family("gated linear attention", "gain {0:.3f}, gate {2:.3f}",
               _make_grid(np.geomspace(0.1, 2, 6), offsets, gates), {0: 1.4, 2: 1.08},
               _predict_attention),
        Family("gated delta rule", "β {0:.3f}, gate {1:.3f}",
               _make_grid(np.geomspace(0.1, 1.5, 8), gates), {0: 1.5, 1: 1.08},
               _make_online(lambda table, step: step / table.square_norms)),
        Family("GD++", "{3} steps of {0:.3f}, γ {1:.3f}",
               _make_grid(np.geomspace(0.2, 1.3, 12), (0.05, 0.1, 0.2, 0.35), (0,)),
               {0: 1.2, 1: 1.8}, _descend, _STEPS),
        Family("forgetting RLS", "penalty {0:.3f} dσ², gate {1:.3f}",
               _make_grid((0.25, 1.0, 4.0), gates), {0: 4.0, 1: 1.08},
               lambda table, numbers: _forget(table, numbers * np.array([unit, 1.0]))),
        Family("Newton's iteration", "{1} steps, penalty {0:.3f} dσ²",
               _make_grid((0.0, 0.25, 0.5, 1.0, 2.0)), {0: 2.0},
               lambda table, numbers: _iterate_newton(table, unit * numbers), _NEWTON_STEPS),
    ]  # fmt: skip


def _predict_discrete(table: PromptTable, noise_vars: np.ndarray, tasks: np.ndarray) -> np.ndarray:
    """Return the Bayes predictions over training tasks (docs/theory, "The discrete Bayes rule")."""
    errors = ((table.y[..., None] - table.x @ tasks.T) ** 2).sum(2)[:, :, None]  # [R, N, 1, k]
    weights = softmax(-errors / (2 * noise_vars[:, None]), -1)
    return np.einsum("rngk,rnk->rng", weights, table.query @ tasks.T)[..., None]


@jax.jit
def _run_online_rule(x: Array, y: Array, query: Array, steps: Array, gates: Array) -> Array:
    """Return the predictions of w ← gw + β(y - gw·x)x for steps [R, N, G, n] and gates [R, G]."""

    def write(weights: Array, row: tuple) -> tuple[Array, None]:  # [R, N, G, d]
        x, y, step = row
        weights = gates[:, None, :, None] * weights
        errors = y[:, :, None] - (weights * x[:, :, None]).sum(-1)
        return weights + (step * errors)[..., None] * x[:, :, None], None

    rows = jnp.moveaxis(x, 2, 0), jnp.moveaxis(y, 2, 0), jnp.moveaxis(steps, 3, 0)
    first = jnp.zeros((*steps.shape[:3], x.shape[-1]), x.dtype)
    return (jax.lax.scan(write, first, rows)[0] * query[:, :, None]).sum(-1)


def _make_online(find_steps: Callable[[PromptTable, np.ndarray], np.ndarray]) -> Predict:
    """Return an online rule from its steps [R, N, G, n]; a second number is the gate."""

    def predict(table: PromptTable, numbers: np.ndarray) -> np.ndarray:
        steps = find_steps(table, numbers[:, None, :, :1]) * np.ones_like(table.mask)
        gates = numbers[..., 1] if numbers.shape[-1] > 1 else np.ones(numbers.shape[:2])
        arrays = table.x, table.y, table.query, steps, gates
        predictions = _run_online_rule(*(jnp.asarray(array, float) for array in arrays))
        return np.asarray(predictions, float)[..., None]

    return predict


def _find_best_steps(table: PromptTable, noise_var: float) -> np.ndarray:  # [R, N, 1, n]
    """Return the best steps of the delta rule at every length for x ~ N(0, I)."""
    n, d = table.x.shape[2:]
    risks = np.asarray(learning_curves.delta_rule(n, d, noise_var), float)[:-1]
    steps = risks / ((d + 2) * risks + d * noise_var)
    return steps[np.maximum(table.mask.cumsum(-1) - 1, 0).astype(int)]


def _predict_attention(table: PromptTable, numbers: np.ndarray) -> np.ndarray:
    """Return gain (1 + c/n)/(m + c) Σ g^{m-i} y_i x_i·x; m is Σ g^{m-i} with a gate g."""
    gain, offset, *gates = np.moveaxis(numbers[:, None], -1, 0)
    powers = (gates[0] if gates else np.ones_like(gain))[..., None] ** table.ages  # [R, 1, G, n]
    total, count = (
        (rows @ powers.swapaxes(-1, -2))[..., 0, :]
        for rows in (table.inner * table.y[:, :, None], table.mask)
    )
    return (gain * (1 + offset / len(table.ages)) * total / (count + offset))[..., None]


def _predict_kernel(table: PromptTable, numbers: np.ndarray) -> np.ndarray:
    """Return c Σ k_i y_i / Σ k_i with k = exp(s x_i·x), attention, or exp(-s |x_i - x|²/2)."""
    sharpness, gain, gaussian = np.moveaxis(numbers[:, None, :, None], -1, 0)
    exponents = sharpness * (table.inner - gaussian * table.square_norms / 2)
    weights = softmax(np.where(table.mask > 0, exponents, -np.inf), -1)
    return gain * (weights * table.y[:, :, None]).sum(-1, keepdims=True)


def _filter(table: PromptTable, filters: Iterable[np.ndarray]) -> np.ndarray:
    """Return x·φ(XᵀX)Xᵀy for each filter φ of the eigenvalues, [R, N, G, d] -> [R, N, G, P]."""
    return np.stack([np.einsum("rngd,rnd->rng", f, table.parts) for f in filters], -1)


def _descend(table: PromptTable, numbers: np.ndarray) -> np.ndarray:
    """Return the predictions of descent that contracts x ← (I - γXᵀX/m)x after each step, GD++.

    In each eigenvector the residual is ρ ← ρ(1 - ηλs), s ← s(1 - γsλ/m)² from ρ = s = 1.
    """
    step, gamma, offset = np.moveaxis(numbers[:, None, :, None], -1, 0)
    eigenvalues, count = np.maximum(table.eigenvalues, 1e-9), table.count[..., None]
    step = eigenvalues * step * (1 + offset / len(table.ages)) / (count + offset)
    contraction = eigenvalues * gamma / count

    def iterate() -> Iterable[np.ndarray]:
        residual, factor, square = 1.0, 1 - step, np.ones_like(step)
        for k in range(1, _STEPS[-1] + 1):
            residual = residual * factor
            if gamma.any():
                square = square * (1 - contraction * square) ** 2
                factor = 1 - step * square
            if k in _STEPS:
                yield (1 - residual) / eigenvalues

    return _filter(table, iterate())


def _iterate_newton(table: PromptTable, penalties: np.ndarray) -> np.ndarray:
    """Return the predictions of M ← M(2I - AM) from I/|A|, A = XᵀX + λI, with ŷ = x·MXᵀy."""
    matrix = table.eigenvalues + penalties[:, None]

    def iterate() -> Iterable[np.ndarray]:
        inverse = np.ones_like(matrix) / np.sqrt((matrix**2).sum(-1, keepdims=True) + 1e-12)
        for _ in _NEWTON_STEPS:
            inverse = inverse * (2 - matrix * inverse)
            yield inverse

    return _filter(table, iterate())


def _forget(table: PromptTable, numbers: np.ndarray) -> np.ndarray:
    """Return x·(Σ g^{m-i} x_i x_iᵀ + λ g^m I)⁻¹ Σ g^{m-i} x_i y_i: gates forget the penalty too."""
    penalty, gate = np.moveaxis(numbers[:, None], -1, 0)
    sums = gate[..., None] ** table.ages @ table.products
    d = table.query.shape[-1]
    matrix = sums[..., d:].reshape(*sums.shape[:-1], d, d)
    scale = (penalty * gate**table.count)[..., None, None]
    solved = np.linalg.solve(matrix + (scale + 1e-12) * np.eye(d), sums[..., :d, None])
    return np.einsum("rngd,rnd->rng", solved[..., 0], table.query)[..., None]


def _make_grid(*axes: Sequence[float] | np.ndarray) -> np.ndarray:  # [G, k]
    return np.array(list(product(*axes)), float)
