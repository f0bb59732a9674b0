"""Prompts for the probes, with targets at every place, and the Bayes predictions for them.

NumPy draws and solves everything in float64, whatever the precision of the model.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from lsa_lab.prompts import Prompt

_RISK_OFFSET = 0.01


@dataclass(frozen=True)
class PromptDistribution:
    """The distribution of prompts: y_t = w_t·x_t + ε_t, w ~ N(0, I/d), x ~ N(0, I), ε ~ N(0, σ²).

    ``scale`` multiplies x. ``stretch`` s gives x variances from s² down to s⁻² along random axes.
    ``degrees_of_freedom`` draws ε from Student's distribution with variance σ². ``correlation`` r
    gives ε_t = r ε_{t-1} + .... ``persistence`` ρ lets weights drift, w_t = ρ w_{t-1} +
    N(0, (1 - ρ²) I/d). ``sparsity`` is the number of nonzero weights, with E |w|² = 1 as before.
    ``tasks`` [k, d] is a table, one row of which is w.
    """

    d: int
    noise_std: float = 0.5
    scale: float = 1.0
    stretch: float = 1.0
    degrees_of_freedom: float | None = None
    correlation: float = 0.0
    persistence: float = 1.0
    sparsity: int | None = None
    tasks: np.ndarray | None = None

    @property
    def noise_var(self) -> float:
        """Return σ²."""
        return self.noise_std**2

    @property
    def zero_risk(self) -> float:
        """Return E |w|², the risk of predicting 0 on training prompts."""
        return 1.0 if self.tasks is None else float((self.tasks**2).sum(1).mean())

    @property
    def risk_offset(self) -> float:
        """Return the number added to both risks of a ratio.

        It is positive for a table of tasks, whose Bayes risk is close to 0.
        """
        return 0.0 if self.tasks is None else _RISK_OFFSET


@dataclass(frozen=True)
class Batch:
    """Prompts and the noise-free targets at all n + 1 places."""

    prompt: Prompt  # leading axis B
    targets: np.ndarray  # [B, n+1]

    @property
    def x(self) -> np.ndarray:  # [B, n+1, d]
        """Return the covariates; those of the query are last."""
        return np.concatenate([self.prompt.x, self.prompt.x_query[:, None]], 1)


def draw_batch(
    rng: np.random.Generator, distribution: PromptDistribution, size: int, n: int
) -> Batch:
    """Draw a batch of prompts with n demonstrations."""
    x = distribution.scale * rng.normal(size=(size, n + 1, distribution.d))
    if distribution.stretch != 1:
        axes = np.linalg.qr(rng.normal(size=(size, distribution.d, distribution.d)))[0]
        scales = np.geomspace(distribution.stretch, 1 / distribution.stretch, distribution.d)
        x = x * scales @ axes.transpose(0, 2, 1)
    targets = (x * _draw_weights(rng, distribution, size, n)).sum(-1)
    return make_batch(x, targets, targets + _draw_noise(rng, distribution, (size, n + 1)))


def make_batch(x: np.ndarray, targets: np.ndarray, labels: np.ndarray) -> Batch:
    """Return the batch with covariates [B, n+1, d], targets [B, n+1] and labels [B, n+1]."""
    leaves: tuple[Any, ...] = x[:, :-1], labels[:, :-1], x[:, -1], targets[:, -1]
    return Batch(Prompt(*leaves), targets)


def _draw_weights(
    rng: np.random.Generator, distribution: PromptDistribution, size: int, n: int
) -> np.ndarray:  # [B, n+1, d], or [B, 1, d] if all places share one w
    d = distribution.d
    if distribution.tasks is not None:
        return distribution.tasks[rng.integers(len(distribution.tasks), size=size)][:, None]
    weights = rng.normal(size=(size, 1, d)) / np.sqrt(d)
    if distribution.sparsity is not None:
        ranks = rng.permuted(np.tile(np.arange(d), (size, 1)), axis=1)[:, None]
        sparse_weights = np.where(ranks < distribution.sparsity, weights, 0)
        return sparse_weights * np.sqrt(d / distribution.sparsity)
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
    if distribution.degrees_of_freedom is not None:
        dof = distribution.degrees_of_freedom
        return distribution.noise_std * rng.standard_t(dof, size=shape) * np.sqrt((dof - 2) / dof)
    noise = rng.normal(size=shape)
    if distribution.correlation:
        for t in range(1, shape[1]):
            innovation = np.sqrt(1 - distribution.correlation**2) * noise[:, t]
            noise[:, t] = distribution.correlation * noise[:, t - 1] + innovation
    return distribution.noise_std * noise


def bayes_predictions(batch: Batch, distribution: PromptDistribution) -> np.ndarray:  # [B, n+1]
    """Return the Bayes prediction ŷ at every place.

    For dense Gaussian weights with persistence ρ it is the Kalman filter:

        m ← ρm, P ← ρ²P + (1 - ρ²)I/d;  m ← m + Px(y - m·x)/(σ² + xᵀPx), P ← P - Px(Px)ᵀ/(...)

    With ρ = 1 it is ridge regression of penalty dσ² at every length (classical). For a table of
    tasks it is the discrete Bayes rule.
    """
    x, y = batch.x, np.asarray(batch.prompt.y)
    if distribution.tasks is not None:
        return _discrete_predictions(x, y, distribution.tasks, distribution.noise_var)
    size, places, d = x.shape
    mean, covariance = np.zeros((size, d)), np.tile(np.eye(d) / d, (size, 1, 1))
    predictions = np.zeros((size, places))
    for t in range(places):
        predictions[:, t] = (mean * x[:, t]).sum(-1)
        if t == places - 1:
            return predictions
        gain = np.einsum("bij,bj->bi", covariance, x[:, t])
        variance = distribution.noise_var + (gain * x[:, t]).sum(-1)
        mean = mean + gain * ((y[:, t] - (mean * x[:, t]).sum(-1)) / variance)[:, None]
        covariance = covariance - gain[:, :, None] * gain[:, None] / variance[:, None, None]
        rho = distribution.persistence
        mean, covariance = rho * mean, rho**2 * covariance + (1 - rho**2) * np.eye(d) / d
    return predictions


def _discrete_predictions(
    x: np.ndarray, y: np.ndarray, tasks: np.ndarray, noise_var: float
) -> np.ndarray:  # [B, n+1]
    """Return the posterior mean over a table of tasks (docs/theory, "The discrete Bayes rule")."""
    task_predictions = x @ tasks.T  # [B, n+1, k]
    squared_errors = np.cumsum((y[:, :, None] - task_predictions[:, :-1]) ** 2, 1)
    log_likelihoods = -np.pad(squared_errors, ((0, 0), (1, 0), (0, 0))) / (2 * noise_var)
    weights = np.exp(log_likelihoods - log_likelihoods.max(-1, keepdims=True))
    return (weights * task_predictions).sum(-1) / weights.sum(-1)
