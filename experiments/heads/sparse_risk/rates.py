"""What rules lose where one of n, s and d grows, their parameters chosen on other prompts."""

import math
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from experiments.heads.sparse_risk.config import PANELS, RATE_RULES, Rates
from experiments.heads.sparse_rules import MULTIPLES
from lsa_lab import estimators
from lsa_lab.prompts import Prompt

_POWERS = 32  # iterations for the largest eigenvalue, which a step's size is chosen by


class Place(NamedTuple):
    n: int
    d: int
    s: int


def along_axes(config: Rates):
    """The risks of every rule along each axis."""
    import xarray as xr

    panels, variables = places(config), {}
    everywhere = list(dict.fromkeys(place for row in panels.values() for place in row))
    rows = {
        place: measure(config, place, np.random.default_rng([config.seed, i]))
        for i, place in enumerate(everywhere)
    }
    for panel, row in panels.items():
        risks = np.stack([rows[place] for place in row])
        variables[panel] = ((PANELS[panel], "rule", "run"), risks)
    axes = {"n": config.lengths, "s": config.sparsities, "d": config.widths}
    coordinates = {axis: list(values) for axis, values in axes.items()}
    return xr.Dataset(variables, coordinates | {"rule": list(RATE_RULES)})


def places(config: Rates) -> dict[str, list[Place]]:
    """{panel: the place of each of its points}"""
    d, s, longest, middle = config.d, config.s, config.lengths[-1], config.middle
    return {
        "by_n": [Place(n, d, s) for n in config.lengths],
        "by_s": [Place(longest, d, s) for s in config.sparsities],
        "by_d": [Place(longest, d, s) for d in config.widths],
        "short_by_s": [Place(middle, d, s) for s in config.sparsities],
        "short_by_d": [Place(middle, d, s) for d in config.widths],
    }


def measure(config: Rates, place: Place, rng) -> np.ndarray:
    """Mean losses [RATE_RULES, R]."""
    counts = (config.runs * config.prompts, config.tuning)
    batches = [draw(rng, place, config.noise_var, count) for count in counts]
    each = losses(*batches, *penalties(place, config.noise_var), doublings=config.doublings)
    return np.asarray(each).reshape(len(RATE_RULES), config.runs, config.prompts).mean(2)


def draw(rng, place: Place, noise_var: float, size: int) -> tuple[Prompt, np.ndarray]:
    """Prompts [B] with e = d + 1 demonstrations that stand for n, and their w [B, d].

    All rules here depend on demonstrations through XᵀX/n and Xᵀy/n alone, and Bartlett's factor has
    the moments of n rows [x, ε] in e.
    """
    e = place.d + 1
    factor = np.tril(rng.standard_normal((size, e, e)), -1)
    factor[:, range(e), range(e)] = np.sqrt(rng.chisquare(place.n - np.arange(e), (size, e)))
    rows = factor.swapaxes(1, 2) * math.sqrt(e / place.n)
    rank, signs = rng.random((size, place.d)).argsort(1), rng.choice([-1, 1], (size, place.d))
    w = np.where(rank < place.s, signs, 0) * place.s**-0.5
    y = np.einsum("bnd,bd->bn", rows[..., :-1], w) + math.sqrt(noise_var) * rows[..., -1]
    return Prompt(rows[..., :-1], y, np.zeros_like(w), np.zeros(size)), w


def penalties(place: Place, noise_var: float) -> tuple[np.ndarray, float]:
    """Those of the Lasso to choose from, and that of ridge."""
    unit = math.sqrt(2 * noise_var * math.log(max(place.d, 2)) / place.n)
    return unit * np.array(MULTIPLES), noise_var * place.d / place.n


@partial(jax.jit, static_argnames="doublings")
def losses(judged: tuple, tuning: tuple, of_lasso, of_ridge, *, doublings: int) -> Array:
    """|ŵ - w|² of RATE_RULES [rules, B]."""
    batch, w = judged
    rows = []
    for rule in (descent, preprocessed):
        path = jax.vmap(partial(rule, doublings=doublings))
        steps = jnp.argmin(_distance(path(tuning[0]), tuning[1][:, None]).mean(0))
        rows.append(_distance(path(batch)[:, steps], w))

    def lasso(penalty, prompts):
        of_prompt = partial(estimators.lasso, penalty=penalty)
        return _distance(jax.vmap(of_prompt)(prompts[0]), prompts[1])

    best = jnp.argmin(jax.lax.map(lambda each: lasso(each, tuning).mean(), of_lasso))
    squares, ridged = (
        _distance(jax.vmap(partial(_ridge, penalty=penalty))(batch), w) for penalty in (0, of_ridge)
    )
    oracle = _distance(jax.vmap(on_support)(batch, w), w)
    lassoed = lasso(of_lasso[best], judged)
    return jnp.stack([squares, rows[0], ridged, rows[1], lassoed, oracle])


def descent(prompt: Prompt, doublings: int) -> Array:  # [C, d]
    """Gradient descent from 0 after 1, 2, 4, ... steps."""
    return _path(*_moments(prompt), doublings)


def preprocessed(prompt: Prompt, doublings: int) -> Array:  # [C, d]
    """The same on x̃ = Rx, in the coordinates of x: w = Rθ (docs/theory, "Preprocess then
    optimise"). The size of its steps makes R/|R| the same."""
    gram, r = _moments(prompt)
    return r[None] * _path(r[:, None] * gram * r[None], r * r, doublings)


def on_support(prompt: Prompt, w: Array) -> Array:  # [d]
    """Least squares of whoever knows which coordinates are not 0."""
    gram, r = _moments(prompt)
    inside = w != 0
    gram = jnp.where(inside[:, None] & inside[None], gram, jnp.eye(len(w)))
    return jnp.linalg.solve(gram, jnp.where(inside, r, 0))


def _ridge(prompt: Prompt, penalty) -> Array:  # [d]
    """Without a penalty least squares: there are more demonstrations than covariates."""
    gram, r = _moments(prompt)
    return jnp.linalg.solve(gram + penalty * jnp.eye(len(r)), r)


def _moments(prompt: Prompt) -> tuple[Array, Array]:  # [d, d], [d]
    n = len(prompt.y)
    return prompt.x.T @ prompt.x / n, prompt.x.T @ prompt.y / n


def _path(gram: Array, moment: Array, doublings: int) -> Array:  # [C, d]
    """θ_{t+1} = θ_t + η (m - Hθ_t) with η = 1/λ_max, by θ_{2t} = θ_t + (I - ηH)^t θ_t."""

    def power(vector, _):
        vector = gram @ vector
        return vector / jnp.linalg.norm(vector), None

    leading, _ = jax.lax.scan(power, moment, length=_POWERS)
    size = 1 / jnp.linalg.norm(gram @ leading)

    def double(state, _):
        theta, power = state
        return (theta + power @ theta, power @ power), theta

    start = size * moment, jnp.eye(len(moment)) - size * gram
    return jax.lax.scan(double, start, length=doublings + 1)[1]


def _distance(estimates: Array, truth: Array) -> Array:  # [..., d] -> [...]
    return ((estimates - truth) ** 2).sum(-1)
