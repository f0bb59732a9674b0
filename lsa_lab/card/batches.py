"""Prompts for the probes, with targets at every place, and the Bayes predictions for them.

They are float64, whatever the precision of the model.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lsa_lab import estimators
from lsa_lab.card.tasks import SYMBOLIC, count_simple
from lsa_lab.prompts import Prompt

_RISK_OFFSET = 0.01


@dataclass(frozen=True)
class PromptDistribution:
    """The distribution of prompts: y_t = w_t·x_t + ε_t, w ~ N(0, I/d), x ~ N(0, I), ε ~ N(0, σ²).

    The fields ``task`` "recall" and "bigrams" have no w, and use no other fields.
    """

    d: int
    noise_std: float = 0.5  # σ
    task: str = "regression"
    simple_share: float = 0.5  # probability of the smaller class of "nested" weights
    scale: float = 1.0  # a factor of x
    stretch: float = 1.0  # s: variances of x from s² down to s⁻² along random axes
    degrees_of_freedom: float | None = None  # of Student's distribution of ε, with variance σ²
    correlation: float = 0.0  # r of ε_t = r ε_{t-1} + ...
    persistence: float = 1.0  # ρ of weights that drift, w_t = ρ w_{t-1} + N(0, (1 - ρ²) I/d)
    sparsity: int | None = None  # number of nonzero weights, with E |w|² = 1 as before
    tasks: np.ndarray | None = None  # [k, d], a table with w as one of its rows

    @property
    def noise_var(self) -> float:
        """Return σ²."""
        return self.noise_std**2

    @property
    def risk_offset(self) -> float:
        """Return the number added to both risks of a ratio.

        Bayes risks of recall and of a table of tasks are close to 0.
        """
        return 0.0 if self.tasks is None and self.task != "recall" else _RISK_OFFSET


@dataclass(frozen=True)
class Batch:
    """Prompts and the noise-free targets at all n + 1 places."""

    prompt: Prompt  # leading axis B
    targets: np.ndarray  # [B, n+1]

    @property
    def x(self) -> np.ndarray:  # [B, n+1, d]
        """Return the covariates; those of the query are last."""
        return np.concatenate([self.prompt.x, self.prompt.x_query[:, None]], 1)


def make_batch(x: np.ndarray, targets: np.ndarray, labels: np.ndarray) -> Batch:
    """Return the batch with covariates [B, n+1, d], targets [B, n+1] and labels [B, n+1]."""
    leaves: tuple[Any, ...] = x[:, :-1], labels[:, :-1], x[:, -1], targets[:, -1]
    return Batch(Prompt(*leaves), targets)


def draw_batch(
    rng: np.random.Generator, distribution: PromptDistribution, size: int, n: int
) -> Batch:
    """Draw a batch of prompts with n demonstrations."""
    d = distribution.d
    if distribution.task in SYMBOLIC:
        key = jax.random.key(rng.integers(2**31))
        drawn = SYMBOLIC[distribution.task](key, size, n, d, float)
        return Batch(*jax.tree.map(lambda leaf: np.asarray(leaf, float), drawn))
    x = distribution.scale * rng.normal(size=(size, n + 1, d))
    if distribution.stretch != 1:
        axes = np.linalg.qr(rng.normal(size=(size, d, d)))[0]
        scales = np.geomspace(distribution.stretch, 1 / distribution.stretch, d)
        x = x * scales @ axes.transpose(0, 2, 1)
    targets = (x * _draw_weights(rng, distribution, size, n)).sum(-1)
    return make_batch(x, targets, targets + _draw_noise(rng, distribution, (size, n + 1)))


def _draw_weights(
    rng: np.random.Generator, distribution: PromptDistribution, size: int, n: int
) -> np.ndarray:  # [B, n+1, d], or [B, 1, d] if all places share one w
    d, counts, ranks = distribution.d, np.asarray(distribution.d), np.arange(distribution.d)
    if distribution.tasks is not None:
        return distribution.tasks[rng.integers(len(distribution.tasks), size=size)][:, None]
    weights = rng.normal(size=(size, 1, d)) / np.sqrt(d)
    if distribution.task == "nested":
        is_simple = rng.random((size, 1, 1)) < distribution.simple_share
        counts = np.where(is_simple, count_simple(d), d)
    elif distribution.sparsity is not None:
        counts = np.asarray(distribution.sparsity)
        ranks = rng.permuted(np.tile(ranks, (size, 1)), axis=1)[:, None]
    if (counts < d).any():
        return np.where(ranks < counts, weights, 0) * np.sqrt(d / counts)
    if distribution.persistence == 1:
        return weights
    path, step_std = [weights[:, 0]], np.sqrt((1 - distribution.persistence**2) / d)
    for _ in range(n):
        step = step_std * rng.normal(size=path[-1].shape)
        path.append(distribution.persistence * path[-1] + step)
    return np.stack(path, 1)


def _draw_noise(
    rng: np.random.Generator, distribution: PromptDistribution, shape: tuple[int, int]
) -> np.ndarray:
    dof, correlation = distribution.degrees_of_freedom, distribution.correlation
    if dof is not None:
        return distribution.noise_std * rng.standard_t(dof, size=shape) * np.sqrt((dof - 2) / dof)
    noise = rng.normal(size=shape)
    for t in range(1, shape[1]) if correlation else ():
        innovation = np.sqrt(1 - correlation**2) * noise[:, t]
        noise[:, t] = correlation * noise[:, t - 1] + innovation
    return distribution.noise_std * noise


def draw_repeated_keys(
    rng: np.random.Generator, distribution: PromptDistribution, size: int, pairs: int
) -> Batch:
    """Draw prompts whose second half repeats the keys of the first, with labels of another w."""
    d = distribution.d
    half = draw_batch(rng, replace(distribution, tasks=None), size, pairs)
    old, new = (rng.normal(size=(size, 1, d)) / np.sqrt(d) for _ in range(2))
    x = np.concatenate([half.x[:, :-1], half.x], 1)
    weights = np.concatenate([np.repeat(old, pairs, 1), np.repeat(new, pairs + 1, 1)], 1)
    targets = (x * weights).sum(-1)
    return make_batch(x, targets, targets + distribution.noise_std * rng.normal(size=targets.shape))


def permute(batch: Batch, order: np.ndarray) -> Batch:
    """Return the batch with its demonstrations in another order."""
    prompt = batch.prompt
    return replace(batch, prompt=prompt.replace(x=prompt.x[:, order], y=prompt.y[:, order]))


def bayes_predictions(batch: Batch, distribution: PromptDistribution) -> np.ndarray:  # [B, n+1]
    """Return the Bayes prediction ŷ at every place.

    It is the Kalman filter for Gaussian weights with persistence ρ, and ridge regression of penalty
    dσ² if ρ = 1; the discrete Bayes rule for a table of tasks; the means of both classes weighted
    by their evidence for nested weights; Σ y_i/(count + 1) over the earlier places with the same x
    for bigrams, and their mean for recall.
    """
    noise_var = distribution.noise_var
    if distribution.task in SYMBOLIC:
        pairs = zip(batch.x, batch.prompt.y, strict=True)
        return np.stack([_average_repeats(*pair, distribution.task == "bigrams") for pair in pairs])
    if distribution.tasks is not None:
        return _predict(estimators.discrete_posterior_means, batch, distribution.tasks, noise_var)
    if distribution.task == "nested":
        return _predict(_nested_means, batch, noise_var)
    return _predict(estimators.kalman_filter, batch, noise_var, distribution.persistence)


def baseline_predictions(batch: Batch, distribution: PromptDistribution) -> np.ndarray:  # [B, n+1]
    """Return the predictions of the baseline of a task at every place."""
    d, count = distribution.d, count_simple(distribution.d)
    if distribution.task == "bigrams":
        sums = np.pad(np.cumsum(batch.prompt.y, 1), ((0, 0), (1, 0)))
        return sums / (1 + np.arange(sums.shape[1]))
    if distribution.task == "nested":  # ridge with the variances of both classes together
        scaled = batch.x * np.sqrt((1 + (np.arange(d) < count) * d / count) / 2)
        batch = make_batch(scaled, batch.targets, np.pad(batch.prompt.y, ((0, 0), (0, 1))))
    return _predict(estimators.kalman_filter, batch, distribution.noise_var, 1.0)


def _predict(rule: Callable, batch: Batch, *arguments: Any) -> np.ndarray:  # [B, n+1]
    """Return the predictions of a rule that returns weights [n+1, d] for one prompt."""
    with jax.enable_x64(True):
        prompts = jax.tree.map(lambda leaf: jnp.asarray(leaf, float), batch.prompt)
        weights = _map_rule(rule, prompts, *map(jnp.asarray, arguments))
    return (np.asarray(weights) * batch.x).sum(-1)


@partial(jax.jit, static_argnums=0)
def _map_rule(rule: Callable, prompts: Prompt, *arguments: Array) -> Array:  # [B, n+1, d]
    return jax.vmap(lambda prompt: rule(prompt, *arguments))(prompts)


def _nested_means(prompt: Prompt, noise_var: Array) -> Array:  # [n+1, d]
    d = prompt.x.shape[1]
    return estimators.nested_posterior_means(prompt, (count_simple(d), d), noise_var)


def _average_repeats(x: np.ndarray, y: np.ndarray, prior_count: int) -> np.ndarray:  # [n+1]
    """Return Σ y_i/(count + prior_count) over the earlier places with the same x [n+1, d]."""
    same = np.tril(x @ x[:-1].T > (1 - 1e-5) * (x[0] ** 2).sum(), -1)  # all |x|² are equal
    return same @ y / np.maximum(same.sum(1) + prior_count, 1)
