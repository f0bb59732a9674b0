"""Prompts on which a model is asked, with their targets at every place, and the rules that are best
there. All of it is drawn and solved on the host in float64, whatever the model's precision."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from lsa_lab.prompts import Prompt

_FLOOR = 0.01


@dataclass(frozen=True)
class Law:
    """How prompts are drawn: y_t = w_t·x_t + ε_t, w ~ N(0, I/d), x ~ N(0, I), ε ~ N(0, σ²).

    ``stretch`` s: x has variances from s² down to s⁻² along random axes. ``tails``: ε is Student's
    with so many degrees of freedom, of variance σ². ``correlation`` r: ε_t = r ε_{t-1} + ....
    ``keep`` ρ: weights drift, w_t = ρ w_{t-1} + N(0, (1 - ρ²) I/d). ``sparsity``: so many weights
    are not zero, E |w|² = 1 still. ``tasks`` [k, d]: w is one of these.
    """

    d: int
    noise_std: float = 0.5
    scale: float = 1.0
    stretch: float = 1.0
    tails: float | None = None
    correlation: float = 0.0
    keep: float = 1.0
    sparsity: int | None = None
    tasks: np.ndarray | None = None

    @property
    def noise_var(self) -> float:
        return self.noise_std**2

    @property
    def usual(self) -> float:
        """E |w|², in training the risk of the answer 0."""
        return 1.0 if self.tasks is None else float((self.tasks**2).sum(1).mean())

    @property
    def floor(self) -> float:
        """What is added to both risks of a ratio: where w is one of few tasks, Bayes' is near 0."""
        return 0.0 if self.tasks is None else _FLOOR


@dataclass(frozen=True)
class Batch:
    """Prompts and the noise-free targets at all n + 1 places."""

    prompt: Prompt  # leading axis B
    targets: np.ndarray  # [B, n+1]

    @property
    def x(self) -> np.ndarray:  # [B, n+1, d]
        """The covariates, the query's last."""
        return np.concatenate([self.prompt.x, self.prompt.x_query[:, None]], 1)


def drawn_batch(rng: np.random.Generator, law: Law, size: int, n: int) -> Batch:
    """A batch of prompts with n demonstrations."""
    x = law.scale * rng.normal(size=(size, n + 1, law.d))
    if law.stretch != 1:
        axes = np.linalg.qr(rng.normal(size=(size, law.d, law.d)))[0]
        spread = np.geomspace(law.stretch, 1 / law.stretch, law.d)
        x = x * spread @ axes.transpose(0, 2, 1)
    targets = (x * _weights(rng, law, size, n)).sum(-1)
    return labelled(x, targets, targets + _noise(rng, law, (size, n + 1)))


def labelled(x: np.ndarray, targets: np.ndarray, labels: np.ndarray) -> Batch:
    """The batch with these covariates [B, n+1, d], targets and labels [B, n+1]."""
    rows: tuple[Any, ...] = x[:, :-1], labels[:, :-1], x[:, -1], targets[:, -1]
    return Batch(Prompt(*rows), targets)


def _weights(rng: np.random.Generator, law: Law, size: int, n: int) -> np.ndarray:  # [B, n+1, d]
    if law.tasks is not None:
        return law.tasks[rng.integers(len(law.tasks), size=size)][:, None]
    weights = rng.normal(size=(size, 1, law.d)) / np.sqrt(law.d)
    if law.sparsity is not None:
        places = rng.permuted(np.tile(np.arange(law.d), (size, 1)), axis=1)[:, None]
        return np.where(places < law.sparsity, weights, 0) * np.sqrt(law.d / law.sparsity)
    if law.keep == 1:
        return weights
    path, fresh = [weights[:, 0]], np.sqrt((1 - law.keep**2) / law.d)
    for _ in range(n):
        path.append(law.keep * path[-1] + fresh * rng.normal(size=path[-1].shape))
    return np.stack(path, 1)


def _noise(rng: np.random.Generator, law: Law, shape: tuple[int, int]) -> np.ndarray:
    if law.tails is not None:
        heavy = rng.standard_t(law.tails, size=shape)
        return law.noise_std * heavy * np.sqrt((law.tails - 2) / law.tails)
    noise = rng.normal(size=shape)
    if law.correlation:
        for t in range(1, shape[1]):
            fresh = np.sqrt(1 - law.correlation**2) * noise[:, t]
            noise[:, t] = law.correlation * noise[:, t - 1] + fresh
    return law.noise_std * noise


def bayes_predictions(batch: Batch, law: Law) -> np.ndarray:  # [B, n+1]
    """The Bayes rule's ŷ at every place for dense Gaussian weights that keep a share ρ of
    themselves (the Kalman filter), or for weights that are one of ``tasks``:

        m ← ρm, P ← ρ²P + (1 - ρ²)I/d;  m ← m + Px(y - m·x)/(σ² + xᵀPx), P ← P - Px(Px)ᵀ/(...)

    With ρ = 1 it is ridge of penalty dσ² at every length (classical).
    """
    x, y = batch.x, np.asarray(batch.prompt.y)
    if law.tasks is not None:
        return _discrete_predictions(x, y, law.tasks, law.noise_var)
    size, places, d = x.shape
    mean, spread = np.zeros((size, d)), np.tile(np.eye(d) / d, (size, 1, 1))
    answers = np.zeros((size, places))
    for t in range(places):
        answers[:, t] = (mean * x[:, t]).sum(-1)
        if t == places - 1:
            return answers
        moved = np.einsum("bij,bj->bi", spread, x[:, t])
        variance = law.noise_var + (moved * x[:, t]).sum(-1)
        mean = mean + moved * ((y[:, t] - (mean * x[:, t]).sum(-1)) / variance)[:, None]
        spread = spread - moved[:, :, None] * moved[:, None] / variance[:, None, None]
        mean = law.keep * mean
        spread = law.keep**2 * spread + (1 - law.keep**2) * np.eye(d) / d
    return answers


def _discrete_predictions(
    x: np.ndarray, y: np.ndarray, tasks: np.ndarray, noise_var: float
) -> np.ndarray:  # [B, n+1]
    """docs/theory, "The discrete Bayes rule"."""
    every = x @ tasks.T  # [B, n+1, k]
    squares = np.cumsum((y[:, :, None] - every[:, :-1]) ** 2, 1)
    evidence = -np.pad(squares, ((0, 0), (1, 0), (0, 0))) / (2 * noise_var)
    weights = np.exp(evidence - evidence.max(-1, keepdims=True))
    return (weights * every).sum(-1) / weights.sum(-1)
