"""The rules that a model is compared with, each a family with numbers that are fitted."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lsa_lab import estimators
from lsa_lab.estimators.prefixes import recursive_least_squares
from lsa_lab.prompts import Prompt
from lsa_lab.theory import learning_curves

_LEAST_NOISE = 1e-4  # where a prompt has none
_STEPS = 8  # of descent and of Newton's iteration, at most


@dataclass(frozen=True)
class Family:
    """A rule with free numbers: ``predict(prompt, numbers [k])`` is its ŷ after 1 to P steps [P],
    P = 1 where it has none. ``grid`` [G, k] is where the search begins, ``free`` the columns that
    it refines, and by which factor at most."""

    name: str
    words: str  # a template of the numbers and of the steps, the last: "{1:.0f} steps of {0:.3f}"
    grid: np.ndarray  # [G, k]
    free: dict[int, float]  # column: the factor between neighbours of the grid
    predict: Callable[[Prompt, Array], Array]
    steps: int = 1  # P

    def point(self, numbers: np.ndarray, step: int) -> str:
        """The numbers in words."""
        return self.words.format(*numbers, step)

    def around(self, numbers: np.ndarray) -> np.ndarray:  # [k] -> [G, k]
        """As many points as the grid has, within a factor of one and not above the grid."""
        rng, points = np.random.default_rng(len(self.grid)), np.tile(numbers, (len(self.grid), 1))
        for column, factor in self.free.items():
            points[1:, column] *= factor ** rng.uniform(-1, 1, len(points) - 1)
            points[:, column] = np.minimum(points[:, column], self.grid[:, column].max())
        return points


def families(d: int, noise_var: float) -> list[Family]:
    """The families, the simplest first, for prompts with x near N(0, I) and this noise; without
    any, penalties are in units of a small one."""
    noise_var = max(noise_var, _LEAST_NOISE)
    return [
        _mean(),
        _descent(d, noise_var),
        _least_mean_squares(d),
        _falling_steps(d, noise_var),
        _delta(),
        _ridge(d, noise_var),
        _kernel(),
        _descent_plus_plus(),
        _gated_delta(),
        _forgetting(d, noise_var),
        _newton(d, noise_var),
    ]


def online(prompt: Prompt, steps: Array, gates: Array) -> Array:  # [n] each -> [d]
    """w ← gw + β(y - gw·x)x, one demonstration after the other, from 0."""

    def write(weights: Array, row: tuple) -> tuple[Array, None]:
        x, y, step, gate = row
        weights = gate * weights
        return weights + step * (y - weights @ x) * x, None

    rows = prompt.x, prompt.y, steps, gates
    return jax.lax.scan(write, jnp.zeros_like(prompt.x_query), rows)[0]


def _grid(*axes: Sequence[float] | np.ndarray) -> np.ndarray:  # [G, k]
    return np.array(list(product(*axes)))


def _rows(prompt: Prompt, number: Array) -> Array:  # [n]
    return number * jnp.ones_like(prompt.y)


def _mean() -> Family:
    """The kernel smoother of sharpness 0, which does not look at the query: no attention."""

    def predict(prompt: Prompt, numbers: Array) -> Array:
        return (numbers[0] * prompt.y.mean())[None]

    return Family("the mean of labels", "gain {0:.3f}", _grid((1.0, 2.0, 4.0)), {0: 1.5}, predict)


def _descent(d: int, noise_var: float) -> Family:
    """w ← w + η Xᵀ(y - Xw)/(n + c) from 0; of one step it is linear attention, whose best c is
    d + 1 + dσ²."""

    def predict(prompt: Prompt, numbers: Array) -> Array:
        n = prompt.x.shape[0]
        steps = jnp.full(_STEPS, numbers[0] * n / (n + numbers[1]), prompt.x.dtype)
        return (estimators.gradient_descent(prompt, steps) @ prompt.x_query)[1:]

    grid = _grid(np.geomspace(0.06, 1.9, 20), (0, d + 1 + d * noise_var))
    words = "{2} of step {0:.3f}, over n + {1:.3g}"
    return Family("gradient descent", words, grid, {0: 1.2}, predict, _STEPS)


def _descent_plus_plus() -> Family:
    def predict(prompt: Prompt, numbers: Array) -> Array:
        schedules = (jnp.full(_STEPS, number, prompt.x.dtype) for number in numbers[:2])
        path = estimators.gradient_descent_plus_plus(prompt, *schedules) @ prompt.x_query
        return path[1:]

    grid = _grid(np.geomspace(0.2, 1.3, 8), (0.05, 0.1, 0.2, 0.35))
    words = "{2} of step {0:.3f}, γ {1:.3f}"
    return Family("GD++", words, grid, {0: 1.3, 1: 2.0}, predict, _STEPS)


def _least_mean_squares(d: int) -> Family:
    def predict(prompt: Prompt, numbers: Array) -> Array:
        steps, gates = _rows(prompt, numbers[0]), jnp.ones_like(prompt.y)
        return (online(prompt, steps, gates) @ prompt.x_query)[None]

    grid = _grid(np.geomspace(0.05, 1.7, 24) / (d + 2))
    return Family("LMS", "step {0:.4f}", grid, {0: 1.17}, predict)


def _falling_steps(d: int, noise_var: float) -> Family:
    """The best steps at every length for x ~ N(0, I), times a number."""

    def predict(prompt: Prompt, numbers: Array) -> Array:
        risks = learning_curves.delta_rule(prompt.x.shape[0], d, noise_var)[:-1]
        steps = numbers[0] * (risks / ((d + 2) * risks + d * noise_var)).astype(prompt.x.dtype)
        return (online(prompt, steps, jnp.ones_like(steps)) @ prompt.x_query)[None]

    grid = _grid((0.5, 0.7, 1.0, 1.4))
    return Family("LMS of falling steps", "{0:.2f} of the best ones", grid, {0: 1.4}, predict)


def _squares(prompt: Prompt) -> Array:  # [n]
    square = (prompt.x**2).sum(1)
    return jnp.where(square > 0, square, 1)


def _normalised(prompt: Prompt, numbers: Array) -> Array:
    """The delta rule with normalised keys, step β and gate g."""
    steps = _rows(prompt, numbers[0]) / _squares(prompt)
    return (online(prompt, steps, _rows(prompt, numbers[1])) @ prompt.x_query)[None]


def _delta() -> Family:
    grid = _grid(np.geomspace(0.05, 1.95, 24), (1.0,))
    return Family("delta rule", "β {0:.3f}", grid, {0: 1.18}, _normalised)


def _gated_delta() -> Family:
    grid = _grid(np.geomspace(0.1, 1.5, 10), (0.99, 0.97, 0.93, 0.85))
    return Family(
        "gated delta rule", "β {0:.3f}, gate {1:.3f}", grid, {0: 1.35, 1: 1.03}, _normalised
    )


def _least_squares(prompt: Prompt, penalty: Array, gate: Array) -> Array:
    """Recursive least squares, whose sums of the past a gate below 1 forgets."""
    ones = jnp.ones_like(prompt.y)
    path = recursive_least_squares(ones, gate * ones, prompt.x, prompt.y[:, None], penalty)
    return (path[-1, :, 0] @ prompt.x_query)[None]


def _ridge(d: int, noise_var: float) -> Family:
    """Penalties λ beside XᵀX, in units of dσ², which is Bayes in training."""

    def predict(prompt: Prompt, numbers: Array) -> Array:
        return _least_squares(prompt, numbers[0] * d * noise_var, jnp.ones_like(numbers[0]))

    grid = _grid(2.0 ** np.arange(-7, 6))
    return Family("ridge", "penalty {0:.3f} dσ²", grid, {0: 2.0}, predict)


def _forgetting(d: int, noise_var: float) -> Family:
    def predict(prompt: Prompt, numbers: Array) -> Array:
        return _least_squares(prompt, numbers[0] * d * noise_var, numbers[1])

    grid = _grid((0.25, 1.0, 4.0), (0.99, 0.97, 0.94, 0.88, 0.8))
    words = "penalty {0:.3f} dσ², gate {1:.3f}"
    return Family("forgetting RLS", words, grid, {0: 4.0, 1: 1.03}, predict)


def _newton(d: int, noise_var: float) -> Family:
    """M ← M(2I - AM) from I/|A|, A = XᵀX + λI, ŷ = x·MXᵀy (Newton's iteration for an inverse)."""

    def predict(prompt: Prompt, numbers: Array) -> Array:
        identity = jnp.eye(d, dtype=prompt.x.dtype)
        matrix = prompt.x.T @ prompt.x + numbers[0] * d * noise_var * identity

        moment = prompt.x.T @ prompt.y

        def iterate(inverse: Array, _: None) -> tuple[Array, Array]:
            inverse = inverse @ (2 * identity - matrix @ inverse)
            return inverse, prompt.x_query @ inverse @ moment

        first = identity / jnp.sqrt((matrix**2).sum() + 1e-12)
        return jax.lax.scan(iterate, first, length=_STEPS)[1]

    words = "{1} times, penalty {0:.3f} dσ²"
    grid = _grid((0.0, 0.5, 1.0, 2.0))
    return Family("Newton's iteration", words, grid, {0: 1.4}, predict, _STEPS)


def _kernel() -> Family:
    """c Σ k_i y_i / Σ k_i with k = exp(s x_i·x) or exp(-s |x_i - x|²/2): softmax attention."""

    def predict(prompt: Prompt, numbers: Array) -> Array:
        inner = prompt.x @ prompt.x_query
        near = -((prompt.x - prompt.x_query[None]) ** 2).sum(1) / 2
        exponents = numbers[0] * jnp.where(numbers[2] > 0, near, inner)
        return (numbers[1] * (jax.nn.softmax(exponents) @ prompt.y))[None]

    grid = _grid(np.geomspace(0.05, 3, 12), (1.0, 2.0, 4.0), (0, 1))
    words = "sharpness {0:.3f}, gain {1:.3f}, Gaussian {2:.0f}"
    return Family("kernel smoother", words, grid, {0: 1.5, 1: 1.5}, predict)


def discrete(tasks: np.ndarray, noise_var: float) -> Family:
    """The Bayes rule over the tasks of the training (docs/theory, "The discrete Bayes rule")."""

    def predict(prompt: Prompt, numbers: Array) -> Array:
        table = jnp.asarray(tasks, prompt.x.dtype)
        means = estimators.discrete_posterior_means(prompt, table, numbers[0] * noise_var)
        return (means[-1] @ prompt.x_query)[None]

    grid = _grid((0.5, 1.0, 2.0))
    return Family("Bayes over the pretraining tasks", "noise {0:.2f} σ²", grid, {0: 1.4}, predict)
