"""The closed laws of one layer's training beside descent on the population loss and on samples."""

import jax
import jax.numpy as jnp
import numpy as np

from experiments.one_layer.training_dynamics.config import Config
from experiments.one_layer.training_dynamics.paths import (
    Case,
    balanced,
    law_path,
    population_path,
    stochastic_paths,
)
from lsa_lab.theory import training_dynamics
from lsa_lab.training import Files


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    half_time = float(training_dynamics.half_time(config.d, config.n, 1.0, config.initial_step))
    limit = 1 / ((1 + 1 / config.n) + config.d / config.n)  # a(∞) = 1/γ at Λ = I
    data, coordinates = {"half_time": half_time, "limit": limit}, {}
    keys = jax.random.split(jax.random.key(config.seed))
    for case, key in zip(cases(config, half_time), keys, strict=True):
        paths, times = follow(config, case, key, progress, checkpoints)
        data, coordinates = data | paths, coordinates | times
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


def follow(config, case, key, progress, checkpoints):  # -> variables, coordinates
    """The paths of one case beside the law at the same times, at the two learning rates."""
    data, coordinates = {}, {}
    rates = {"population": config.population_rate, "stochastic": config.stochastic_rate}
    for kind, rate in rates.items():
        name, (times, stride) = f"{case.name}_{kind}", case.times(rate)
        axes = (f"{name}_time", f"{case.name}_entry")
        coordinates[f"{name}_time"] = times
        data[f"{name}_law"] = (axes, law_path(config, case, times))
        if kind == "population":
            data[name] = (axes, population_path(config, case, stride))
        else:
            files = Files(checkpoints and checkpoints / f"{case.name}.ckpt")
            paths = stochastic_paths(config, case, stride, key, files, progress)
            data[name] = (("run", *axes), paths)
    return data, coordinates


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
