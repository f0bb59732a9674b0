"""The known rules: families of predictors with numbers that are fitted to a model."""

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

_MIN_NOISE_VAR = 1e-4  # unit of penalties for prompts without noise
_MAX_STEPS = 8  # of descent and of Newton's iteration


@dataclass(frozen=True)
class Family:
    """A rule with free numbers, such as a step size or a penalty.

    ``predict(prompt, numbers [k])`` returns the predictions after 1 to P steps [P]. The search for
    the numbers begins on ``grid`` [G, k] and refines the columns in ``free``.
    """

    name: str
    template: str  # of the numbers, and of the steps as the last: "{1:.0f} steps of {0:.3f}"
    grid: np.ndarray  # [G, k]
    free: dict[int, float]  # column: the factor between neighbours of the grid
    predict: Callable[[Prompt, Array], Array]
    steps: int = 1  # P, 1 for a rule without steps

    def describe(self, numbers: np.ndarray, step: int) -> str:
        """Return the numbers as text."""
        return self.template.format(*numbers, step)

    def sample_around(self, numbers: np.ndarray) -> np.ndarray:  # [k] -> [G, k]
        """Draw G points within the factors of ``free``, not above the largest of the grid."""
        rng, points = np.random.default_rng(len(self.grid)), np.tile(numbers, (len(self.grid), 1))
        for column, factor in self.free.items():
            points[1:, column] *= factor ** rng.uniform(-1, 1, len(points) - 1)
            points[:, column] = np.minimum(points[:, column], self.grid[:, column].max())
        return points


def make_families(d: int, noise_var: float) -> list[Family]:
    """Return the families, the simplest first, for prompts with x near N(0, I).

    Penalties are in units of the noise; prompts without noise use a small unit.
    """
    noise_var = max(noise_var, _MIN_NOISE_VAR)
    return [
        _make_mean(),
        _make_descent(d, noise_var),
        _make_lms(d),
        _make_falling_lms(d, noise_var),
        _make_delta(),
        _make_ridge(d, noise_var),
        _make_kernel(),
        _make_descent_plus_plus(),
        _make_gated_delta(),
        _make_forgetting(d, noise_var),
        _make_newton(d, noise_var),
    ]


def run_online_rule(prompt: Prompt, steps: Array, gates: Array) -> Array:  # [n] each -> [d]
    """Return w after w ← gw + β(y - gw·x)x from 0, over all demonstrations in order."""

    def write(weights: Array, row: tuple) -> tuple[Array, None]:
        x, y, step, gate = row
        weights = gate * weights
        return weights + step * (y - weights @ x) * x, None

    rows = prompt.x, prompt.y, steps, gates
    return jax.lax.scan(write, jnp.zeros_like(prompt.x_query), rows)[0]


def _make_grid(*axes: Sequence[float] | np.ndarray) -> np.ndarray:  # [G, k]
    return np.array(list(product(*axes)))


def _repeat_number(prompt: Prompt, number: Array) -> Array:  # [n]
    return number * jnp.ones_like(prompt.y)


def _make_mean() -> Family:
    """Return the kernel smoother of sharpness 0, which ignores the query."""

    def predict(prompt: Prompt, numbers: Array) -> Array:
        return (numbers[0] * prompt.y.mean())[None]

    return Family(
        "the mean of labels", "gain {0:.3f}", _make_grid((1.0, 2.0, 4.0)), {0: 1.5}, predict
    )


def _make_descent(d: int, noise_var: float) -> Family:
    """Return the family w ← w + η Xᵀ(y - Xw)/(n + c) from 0.

    One step is linear attention; the best c is then d + 1 + dσ².
    """

    def predict(prompt: Prompt, numbers: Array) -> Array:
        n = prompt.x.shape[0]
        steps = jnp.full(_MAX_STEPS, numbers[0] * n / (n + numbers[1]), prompt.x.dtype)
        return (estimators.gradient_descent(prompt, steps) @ prompt.x_query)[1:]

    grid = _make_grid(np.geomspace(0.06, 1.9, 20), (0, d + 1 + d * noise_var))
    template = "{2} of step {0:.3f}, over n + {1:.3g}"
    return Family("gradient descent", template, grid, {0: 1.2}, predict, _MAX_STEPS)


def _make_descent_plus_plus() -> Family:
    def predict(prompt: Prompt, numbers: Array) -> Array:
        schedules = (jnp.full(_MAX_STEPS, number, prompt.x.dtype) for number in numbers[:2])
        path = estimators.gradient_descent_plus_plus(prompt, *schedules) @ prompt.x_query
        return path[1:]

    grid = _make_grid(np.geomspace(0.2, 1.3, 8), (0.05, 0.1, 0.2, 0.35))
    template = "{2} of step {0:.3f}, γ {1:.3f}"
    return Family("GD++", template, grid, {0: 1.3, 1: 2.0}, predict, _MAX_STEPS)


def _make_lms(d: int) -> Family:
    def predict(prompt: Prompt, numbers: Array) -> Array:
        steps, gates = _repeat_number(prompt, numbers[0]), jnp.ones_like(prompt.y)
        return (run_online_rule(prompt, steps, gates) @ prompt.x_query)[None]

    grid = _make_grid(np.geomspace(0.05, 1.7, 24) / (d + 2))
    return Family("LMS", "step {0:.4f}", grid, {0: 1.17}, predict)


def _make_falling_lms(d: int, noise_var: float) -> Family:
    """Return the delta rule with the best steps at every length for x ~ N(0, I), scaled."""

    def predict(prompt: Prompt, numbers: Array) -> Array:
        risks = learning_curves.delta_rule(prompt.x.shape[0], d, noise_var)[:-1]
        steps = numbers[0] * (risks / ((d + 2) * risks + d * noise_var)).astype(prompt.x.dtype)
        return (run_online_rule(prompt, steps, jnp.ones_like(steps)) @ prompt.x_query)[None]

    grid = _make_grid((0.5, 0.7, 1.0, 1.4))
    return Family("LMS of falling steps", "{0:.2f} of the best ones", grid, {0: 1.4}, predict)


def _square_norms(prompt: Prompt) -> Array:  # [n]
    square = (prompt.x**2).sum(1)
    return jnp.where(square > 0, square, 1)


def _predict_normalised(prompt: Prompt, numbers: Array) -> Array:
    """Return the prediction of the delta rule with normalised keys, step β and gate g."""
    steps = _repeat_number(prompt, numbers[0]) / _square_norms(prompt)
    return (run_online_rule(prompt, steps, _repeat_number(prompt, numbers[1])) @ prompt.x_query)[
        None
    ]


def _make_delta() -> Family:
    grid = _make_grid(np.geomspace(0.05, 1.95, 24), (1.0,))
    return Family("delta rule", "β {0:.3f}", grid, {0: 1.18}, _predict_normalised)


def _make_gated_delta() -> Family:
    grid = _make_grid(np.geomspace(0.1, 1.5, 10), (0.99, 0.97, 0.93, 0.85))
    return Family(
        "gated delta rule", "β {0:.3f}, gate {1:.3f}", grid, {0: 1.35, 1: 1.03}, _predict_normalised
    )


def _predict_rls(prompt: Prompt, penalty: Array, gate: Array) -> Array:
    """Return the prediction of recursive least squares with a gate, which forgets if below 1."""
    ones = jnp.ones_like(prompt.y)
    path = recursive_least_squares(ones, gate * ones, prompt.x, prompt.y[:, None], penalty)
    return (path[-1, :, 0] @ prompt.x_query)[None]


def _make_ridge(d: int, noise_var: float) -> Family:
    """Return ridge with penalty λ, in units of dσ², the penalty of the Bayes rule in training."""

    def predict(prompt: Prompt, numbers: Array) -> Array:
        return _predict_rls(prompt, numbers[0] * d * noise_var, jnp.ones_like(numbers[0]))

    grid = _make_grid(2.0 ** np.arange(-7, 6))
    return Family("ridge", "penalty {0:.3f} dσ²", grid, {0: 2.0}, predict)


def _make_forgetting(d: int, noise_var: float) -> Family:
    def predict(prompt: Prompt, numbers: Array) -> Array:
        return _predict_rls(prompt, numbers[0] * d * noise_var, numbers[1])

    grid = _make_grid((0.25, 1.0, 4.0), (0.99, 0.97, 0.94, 0.88, 0.8))
    template = "penalty {0:.3f} dσ², gate {1:.3f}"
    return Family("forgetting RLS", template, grid, {0: 4.0, 1: 1.03}, predict)


def _make_newton(d: int, noise_var: float) -> Family:
    """Return Newton's iteration M ← M(2I - AM) from I/|A|, A = XᵀX + λI, with ŷ = x·MXᵀy."""

    def predict(prompt: Prompt, numbers: Array) -> Array:
        identity = jnp.eye(d, dtype=prompt.x.dtype)
        matrix = prompt.x.T @ prompt.x + numbers[0] * d * noise_var * identity

        moment = prompt.x.T @ prompt.y

        def iterate(inverse: Array, _: None) -> tuple[Array, Array]:
            inverse = inverse @ (2 * identity - matrix @ inverse)
            return inverse, prompt.x_query @ inverse @ moment

        first = identity / jnp.sqrt((matrix**2).sum() + 1e-12)
        return jax.lax.scan(iterate, first, length=_MAX_STEPS)[1]

    template = "{1} times, penalty {0:.3f} dσ²"
    grid = _make_grid((0.0, 0.5, 1.0, 2.0))
    return Family("Newton's iteration", template, grid, {0: 1.4}, predict, _MAX_STEPS)


def _make_kernel() -> Family:
    """Return c Σ k_i y_i / Σ k_i with k = exp(s x_i·x), attention, or exp(-s |x_i - x|²/2)."""

    def predict(prompt: Prompt, numbers: Array) -> Array:
        inner = prompt.x @ prompt.x_query
        near = -((prompt.x - prompt.x_query[None]) ** 2).sum(1) / 2
        exponents = numbers[0] * jnp.where(numbers[2] > 0, near, inner)
        return (numbers[1] * (jax.nn.softmax(exponents) @ prompt.y))[None]

    grid = _make_grid(np.geomspace(0.05, 3, 12), (1.0, 2.0, 4.0), (0, 1))
    template = "sharpness {0:.3f}, gain {1:.3f}, Gaussian {2:.0f}"
    return Family("kernel smoother", template, grid, {0: 1.5, 1: 1.5}, predict)


def make_discrete_bayes(tasks: np.ndarray, noise_var: float) -> Family:
    """Return the Bayes rule over the training tasks (docs/theory, "The discrete Bayes rule")."""

    def predict(prompt: Prompt, numbers: Array) -> Array:
        table = jnp.asarray(tasks, prompt.x.dtype)
        means = estimators.discrete_posterior_means(prompt, table, numbers[0] * noise_var)
        return (means[-1] @ prompt.x_query)[None]

    grid = _make_grid((0.5, 1.0, 2.0))
    return Family("Bayes over the pretraining tasks", "noise {0:.2f} σ²", grid, {0: 1.4}, predict)
