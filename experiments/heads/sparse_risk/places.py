"""Tasks of sparse regression on common random numbers, and what every rule loses there."""

import math
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.heads import sparse_rules
from experiments.heads.sparse_risk.config import BAYES, RULES, SIGNALS, Config
from lsa_lab import estimators
from lsa_lab.prompts import Prompt
from lsa_lab.tasks.linear import LinearTask
from lsa_lab.theory import risk


@dataclass(frozen=True)
class Place:
    """The task of one point in a figure; E |w|² = 1."""

    n: int
    d: int
    s: int
    noise_var: float
    signal: str = "gaussian"

    @property
    def condensed(self) -> LinearTask:
        """The task, with its noise, of the e = d + 1 rows that stand for n demonstrations."""
        e = self.d + 1
        return LinearTask(
            e,
            self.d,
            sparsity=self.s,
            noise_std=math.sqrt(self.noise_var * e / self.n),
            weight_std=self.s**-0.5,
            signal=self.signal,
        )


def places(config: Config) -> dict:  # {panel: the task of each of its points}
    d, s, n, loud = config.d, config.s, config.n, config.loud
    return {
        "by_n": [Place(n, d, s, config.noise_var) for n in config.lengths],
        "by_noise": [Place(n, d, s, noise_var) for noise_var in config.noise_vars],
        "by_s": [Place(n, d, s, loud) for s in config.sparsities],
        "by_law": [Place(n, d, s, loud), Place(n, d, s, loud, "flat"), Place(n, d, d, loud)],
        "long": [Place(n, d, s, loud, kind) for kind in SIGNALS for n in config.long_lengths],
        "wide": [Place(n, config.wide_d, s, loud, "flat") for n in config.wide_lengths],
    }


class Draws:
    """Prompts whose first n demonstrations, weights and noise are the same at every place.

    All rules depend on demonstrations through XᵀX/n, Xᵀy/n and y·y/n alone. So e rows [x, ε] with
    the moments of n rows stand for them, times √(e/n), and every n has one shape.
    """

    def __init__(self, seed: int, tag: int, count: int, longest: int, d: int):
        rng = np.random.default_rng([seed, tag])
        self.rows = rng.standard_normal((count, longest, d + 1))
        self.values = rng.standard_normal((count, d))
        self.rank = rng.random((count, d)).argsort(axis=1)  # of a coordinate: the first s are kept
        self._roots = {}

    def at(self, place: Place) -> tuple[Prompt, np.ndarray]:  # [B], and w [B, d]
        if place.n not in self._roots:
            self._roots[place.n] = _root(self.rows[:, : place.n])
        values = np.sign(self.values) if place.signal == "flat" else self.values
        w = np.where(self.rank < place.s, values, 0) * place.s**-0.5
        x, noise = np.split(self._roots[place.n], [place.d], axis=2)
        y = np.einsum("bnd,bd->bn", x, w) + place.noise_var**0.5 * noise[:, :, 0]
        return Prompt(x, y, np.zeros_like(w), np.zeros(len(w))), w


def measure(config: Config, panels: dict, prompts: int, tuning: int, tag: int) -> dict:
    """{panel: (losses [place, rules, run], bounds [place])}, panels of one d."""
    everywhere = [place for points in panels.values() for place in points]
    longest, d = max(place.n for place in everywhere), everywhere[0].d
    judged = Draws(config.seed, tag, config.runs * prompts, longest, d)
    others = Draws(config.seed, tag + 1, tuning, longest, d)
    rows = {}
    for panel, points in panels.items():
        for place in (place for place in points if place not in rows):
            enumerable = math.comb(place.d, place.s) <= config.supports
            bayes = () if panel in ("long", "wide") else BAYES if enumerable else BAYES[:1]
            each = losses(place, judged, others, config.steps, bayes)
            each = each.reshape(len(each), config.runs, prompts).mean(2)
            # A rule that is not to be had has no number.
            each = np.pad(each, ((0, len(RULES) - len(each)), (0, 0)), constant_values=np.nan)
            bound = risk.rotation_invariant_bound(place.n, place.d, place.noise_var)
            rows[place] = each, bound
    return {
        panel: [np.stack(values) for values in zip(*map(rows.get, points), strict=True)]
        for panel, points in panels.items()
    }


def losses(place: Place, draws: Draws, tuning: Draws, steps: int, bayes: tuple) -> np.ndarray:
    """|ŵ - w|² of PLAIN and the rules in ``bayes`` [rules, B]."""
    task = place.condensed
    batch, w = draws.at(place)
    penalties = sparse_rules.lasso_penalties(task)
    ridge = task.noise_std**2 * task.d / task.n
    plain = _plain(tuning.at(place), (batch, w), penalties, ridge, steps)
    rest = [_distance(_bayes(rule, batch, task), w) for rule in bayes]
    return np.stack([*plain, *rest])


def descent(prompt: Prompt, steps: int):  # -> [steps+1, d]
    """Gradient descent with steps 1/λ_max(H)."""
    size = prompt.x.shape[0] / jnp.linalg.norm(prompt.x, ord=2) ** 2
    return estimators.gradient_descent(prompt, jnp.full(steps, size))


def preprocessed(prompt: Prompt, steps: int):  # -> [steps+1, d]
    """Preprocessed descent with steps 1/λ_max(RHR); its predictions at unit vectors are weights."""
    size = estimators.preprocessed_step_limit(prompt, normalise=True) / 2

    def predict(query):
        turned = prompt.replace(x_query=query)
        return estimators.preprocessed_gradient_descent(turned, size, steps, normalise=True)

    return jax.vmap(predict, out_axes=1)(jnp.eye(len(prompt.x_query), dtype=prompt.x.dtype))


@partial(jax.jit, static_argnames="steps")
def _plain(tuning: tuple, judged: tuple, penalties, ridge, steps: int):
    """PLAIN [5, B], with the numbers of steps and the penalty that are best on other prompts."""
    prompts, w = judged
    paths = []
    for rule in (descent, preprocessed):
        on_tuning, on_judged = (_along(rule, steps, samples) for samples in (tuning, judged))
        paths.append(on_judged[:, jnp.argmin(jnp.mean(on_tuning, axis=0))])

    def lasso(penalty, sample):
        batch, truth = sample
        return _distance(jax.vmap(partial(estimators.lasso, penalty=penalty))(batch), truth)

    risks = jax.lax.map(lambda penalty: jnp.mean(lasso(penalty, tuning)), penalties)
    least_squares = _distance(jax.vmap(estimators.ols)(prompts), w)
    ridged = _distance(jax.vmap(partial(estimators.ridge, penalty=ridge))(prompts), w)
    lassoed = lasso(penalties[jnp.argmin(risks)], judged)
    return jnp.stack([least_squares, paths[0], ridged, paths[1], lassoed])


_bayes = jax.jit(sparse_rules.weights, static_argnums=0)


def _along(rule, steps: int, samples: tuple):  # -> [B, steps+1]
    """|ŵ - w|² along a descent, of 2048 prompts at a time, for the memory."""

    def of_prompt(sample):
        prompt, truth = sample
        return _distance(rule(prompt, steps), truth[None])

    return jax.lax.map(of_prompt, samples, batch_size=2048)


def _distance(estimates, truth):  # [..., d] -> [...]
    return ((estimates - truth) ** 2).sum(-1)


def _root(rows: np.ndarray) -> np.ndarray:  # [B, n, e] -> [B, e, e]
    n, e = rows.shape[1:]
    root = np.linalg.qr(rows, mode="r")
    return np.pad(root, ((0, 0), (0, e - root.shape[1]), (0, 0))) * math.sqrt(e / n)
