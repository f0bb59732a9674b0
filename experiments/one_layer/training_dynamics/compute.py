"""The closed laws of one layer's training beside descent on the population loss and on samples."""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr

from experiments.one_layer.training_dynamics.config import Config
from lsa_lab.models import moments
from lsa_lab.models.linear_attention import Params
from lsa_lab.tasks.linear import LinearTask, sample
from lsa_lab.theory import training_dynamics
from lsa_lab.theory.training_dynamics import Weights
from lsa_lab.training import Files, Training, fit
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
    draw = partial(
        sample, task=LinearTask(config.n, len(covariance), covariance=covariance, dtype=jnp.float32)
    )
    training = Training(
        loss=lambda params, batch: (
            jnp.mean((moments.predictions(params, batch) - batch.y_query) ** 2) / 2
        ),
        sample=lambda key: jax.vmap(draw)(jax.random.split(key, config.batch)),
        optimizer=optax.sgd(config.stochastic_rate),
        steps=case.points * stride,
        label=f"training_dynamics: {case.name}s",
    )
    start = jax.tree.map(lambda w: w.astype(jnp.float32)[None], attention_params(case.start))
    run = fit(
        training,
        jax.tree.map(lambda w: jnp.repeat(w, config.runs, axis=0), start),
        jax.random.split(key, config.runs),
        watch=lambda own: -own.w_pv[0, 0, -1, -1] * jnp.diagonal(own.w_kq[0, 0])[:-1],
        files=files,
        chunk=stride,
        progress=progress,
    )
    refuse_divergence(run.status, training.label, needs_all=True)
    return run.history["watch"]


def attention_params(weights: Weights) -> Params:
    """u and U as the label and covariate entries of one layer that reads out with a minus."""
    w_kq = jnp.pad(weights.U, ((0, 1), (0, 1)))
    w_pv = jnp.zeros_like(w_kq).at[-1, -1].set(-weights.u)
    return Params(w_kq[None, None], w_pv[None, None])


def compute(config: Config, *, progress=None, checkpoints=None):
    half_time = float(training_dynamics.half_time(config.d, config.n, 1.0, config.initial_step))
    limit = 1 / ((1 + 1 / config.n) + config.d / config.n)  # a(∞) = 1/γ at Λ = I
    data, coordinates = {"half_time": half_time, "limit": limit}, {}
    keys = jax.random.split(jax.random.key(config.seed))
    rates = {"population": config.population_rate, "stochastic": config.stochastic_rate}
    for case, key in zip(cases(config, half_time), keys, strict=True):
        files = Files(checkpoints and checkpoints / f"{case.name}.ckpt")
        for kind, rate in rates.items():
            name, (times, stride) = f"{case.name}_{kind}", case.times(rate)
            axes = (f"{name}_time", f"{case.name}_entry")
            coordinates[axes[0]] = times
            data[f"{name}_law"] = (axes, law_path(config, case, times))
            if kind == "population":
                data[name] = (axes, population_path(config, case, stride))
            else:
                paths = stochastic_paths(config, case, stride, key, files, progress)
                data[name] = (("run", *axes), paths)
    times, loss = head_loss(config)
    eigenvalues = jnp.asarray(config.eigenvalues)
    data["head_loss"] = ("head_time", loss)
    data["plateau"] = ("plateau_index", training_dynamics.plateaus(eigenvalues, config.n))
    data["mode_limit"] = ("mode_entry", 1 / gammas(config))
    coordinates |= {"head_time": times, "mode_entry": np.asarray(config.eigenvalues)}
    return xr.Dataset(data, coordinates)


def cases(config, half_time) -> tuple[Case, Case]:
    """Isotropic covariates, and modes: these span decades of time and are read more often."""
    eigenvalues, points = jnp.asarray(config.eigenvalues), config.points
    start, few = (balanced(config.initial_step, d) for d in (config.d, len(eigenvalues)))
    return (
        Case("step", jnp.eye(config.d), start, config.horizon * half_time, points),
        Case("mode", jnp.diag(eigenvalues), few, config.mode_time, 4 * points),
    )


def head_loss(config):  # -> times, losses, [20 points] both
    """(Σλ - Σ λ² (2a³ - γa⁶)) / 2 with separate keys, queries and values of size a each."""
    times = np.linspace(0, config.head_time, 20 * config.points)
    eigenvalues = jnp.asarray(config.eigenvalues)
    start = jnp.full(len(eigenvalues), config.head_size)
    sizes = training_dynamics.solve_heads(jnp.asarray(times), eigenvalues, config.n, start)
    gains = (eigenvalues**2)[None] * (2 * sizes**3 - gammas(config)[None] * sizes**6)
    return times, (eigenvalues.sum() - gains.sum(1)) / 2


def gammas(config):  # -> [modes]
    """γ = (1 + 1/n) λ + tr Λ / n of each mode, one over its limit."""
    eigenvalues = jnp.asarray(config.eigenvalues)
    return (1 + 1 / config.n) * eigenvalues + eigenvalues.sum() / config.n
