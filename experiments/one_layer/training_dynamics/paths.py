"""Paths of a layer's effective step a = u diag(U): by law, on the population loss, on samples."""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax

from lsa_lab.models import moments
from lsa_lab.models.linear_attention import Params
from lsa_lab.tasks.linear import LinearTask, sample
from lsa_lab.theory import training_dynamics
from lsa_lab.theory.training_dynamics import Weights
from lsa_lab.training import Training, fit
from lsa_lab.training.status import refuse_divergence


@dataclass(frozen=True)
class Case:
    """Where a path begins, on which covariates, and how long and how closely it is followed."""

    name: str
    covariance: jax.Array  # [d, d]
    start: Weights
    time: float
    points: int

    def times(self, rate: float) -> tuple[np.ndarray, int]:
        """points + 1 times up to about ``time``, and the steps of size ``rate`` between two."""
        stride = max(1, round(self.time / rate / self.points))
        return np.arange(self.points + 1) * stride * rate, stride


def balanced(step: float, d: int) -> Weights:
    """u = |U|_F with uU = step times the identity."""
    u = (step * d**0.5) ** 0.5
    return Weights(jnp.asarray(u), jnp.eye(d) * step / u)


def law_path(config, case, times):  # -> a [points + 1, d]
    """The matrix ODE of gradient flow."""
    exact = training_dynamics.solve(jnp.asarray(times), case.covariance, config.n, *case.start)
    return exact.u[:, None] * jnp.diagonal(exact.U, axis1=1, axis2=2)


def population_path(config, case, stride):  # -> a [points + 1, d]
    """Gradient descent on the population loss, read every ``stride`` steps."""

    def step(weights, _):
        field = training_dynamics.vector_field(*weights, case.covariance, config.n)
        return jax.tree.map(lambda w, f: w + config.population_rate * f, weights, field), None

    def stretch(weights, _):
        weights = jax.lax.scan(step, weights, None, length=stride)[0]
        return weights, weights.u * jnp.diagonal(weights.U)

    start = case.start
    path = jax.lax.scan(stretch, start, None, length=case.points)[1]
    return jnp.concatenate([(start.u * jnp.diagonal(start.U))[None], path])


def stochastic_paths(config, case, stride, key, files, progress):  # -> a [R, points + 1, d]
    """Descent on fresh batches with every entry of both matrices free."""
    covariance = case.covariance
    task = LinearTask(config.n, len(covariance), covariance=covariance, dtype=jnp.float32)

    def draw(key):
        keys = jax.random.split(key, config.batch)
        return jax.vmap(partial(sample, task=task))(keys)

    def loss(params, batch):
        return jnp.mean((moments.predictions(params, batch) - batch.y_query) ** 2) / 2

    def effective_step(params):
        return -params.w_pv[0, 0, -1, -1] * jnp.diagonal(params.w_kq[0, 0])[:-1]

    training = Training(
        loss=loss,
        sample=draw,
        optimizer=optax.sgd(config.stochastic_rate),
        steps=case.points * stride,
        label=f"training_dynamics: {case.name}s",
    )
    run = fit(
        training,
        jax.tree.map(
            lambda w: jnp.repeat(w.astype(jnp.float32)[None], config.runs, axis=0),
            as_attention(case.start),
        ),
        jax.random.split(key, config.runs),
        watch=effective_step,
        files=files,
        chunk=stride,
        progress=progress,
    )
    refuse_divergence(run.status, training.label, needs_all=True)
    return run.history["watch"]


def as_attention(weights: Weights) -> Params:
    """u and U as the label and covariate entries of one layer that reads out with a minus."""
    w_kq = jnp.pad(weights.U, ((0, 1), (0, 1)))
    w_pv = jnp.zeros_like(w_kq).at[-1, -1].set(-weights.u)
    return Params(w_kq[None, None], w_pv[None, None])
