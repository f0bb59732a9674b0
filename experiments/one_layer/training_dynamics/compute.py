"""How does one layer learn: do its closed laws of gradient flow describe descent on samples?"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax

from experiments.one_layer.training_dynamics.config import Config
from lsa_lab.models import moments
from lsa_lab.models.linear_attention import Params
from lsa_lab.tasks.linear import LinearTask, sample
from lsa_lab.theory import training_dynamics as law
from lsa_lab.training import fit


def as_attention(weights: law.Weights) -> Params:
    """u and U as the label and covariate entries of one layer that reads out with a minus."""
    w_kq = jnp.pad(weights.U, ((0, 1), (0, 1)))
    w_pv = jnp.zeros_like(w_kq).at[-1, -1].set(-weights.u)
    return Params(w_kq[None, None], w_pv[None, None])


def population_path(config, covariance, start, points, stride):  # -> a [points + 1, d]
    """Gradient descent on the population loss, looked at every ``stride`` steps."""

    def step(weights, _):
        field = law.vector_field(*weights, covariance, config.n)
        return jax.tree.map(lambda w, f: w + config.population_rate * f, weights, field), None

    def stretch(weights, _):
        weights = jax.lax.scan(step, weights, None, length=stride)[0]
        return weights, weights.u * jnp.diagonal(weights.U)

    path = jax.lax.scan(stretch, start, None, length=points)[1]
    return jnp.concatenate([(start.u * jnp.diagonal(start.U))[None], path])


def stochastic_paths(config, covariance, start, points, stride, key, **fitting):
    """Descent on fresh batches with every entry of both matrices free: a [R, points + 1, d]."""
    task = LinearTask(config.n, len(covariance), covariance=covariance, dtype=jnp.float32)

    def draw(key):
        keys = jax.random.split(key, config.batch)
        return jax.vmap(partial(sample, task=task))(keys)

    def loss(params, batch):
        return jnp.mean((moments.predictions(params, batch) - batch.y_query) ** 2) / 2

    def effective_step(params):
        return -params.w_pv[0, 0, -1, -1] * jnp.diagonal(params.w_kq[0, 0])[:-1]

    run = fit(
        loss,
        jax.tree.map(
            lambda w: jnp.repeat(w.astype(jnp.float32)[None], config.runs, axis=0),
            as_attention(start),
        ),
        optax.sgd(config.stochastic_rate),
        draw,
        jax.random.split(key, config.runs),
        points * stride,
        chunk=stride,
        watch=effective_step,
        **fitting,
    )
    return run.history["watch"]


def balanced(step: float, d: int) -> law.Weights:
    """u = |U|_F with uU = step times the identity."""
    u = (step * d**0.5) ** 0.5
    return law.Weights(jnp.asarray(u), jnp.eye(d) * step / u)


def grid(time: float, rate: float, points: int) -> tuple[np.ndarray, int]:
    """Times of points + 1 looks up to about ``time``, and the steps of size ``rate`` between."""
    stride = max(1, round(time / rate / points))
    return np.arange(points + 1) * stride * rate, stride


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    keys = jax.random.split(jax.random.key(config.seed))
    d, points = config.d, config.points
    limit = 1 / ((1 + 1 / config.n) + d / config.n)  # a(∞) = 1/γ at Λ = I
    half = float(law.half_time(d, config.n, 1.0, config.initial_step))
    data, coordinates = {"half_time": half, "limit": limit}, {}
    start = balanced(config.initial_step, d)
    eigenvalues = jnp.asarray(config.eigenvalues)
    modes, few = jnp.diag(eigenvalues), balanced(config.initial_step, len(eigenvalues))
    cases = (
        ("step", jnp.eye(d), start, config.horizon * half, keys[0]),
        ("mode", modes, few, config.mode_time, keys[1]),
    )
    for name, covariance, begin, time, key in cases:
        for kind, rate in (
            ("population", config.population_rate),
            ("stochastic", config.stochastic_rate),
        ):
            # Modes span decades of time, and are shown on a logarithmic axis.
            times, stride = grid(time, rate, points * (4 if name == "mode" else 1))
            coordinates[f"{name}_{kind}_time"] = times
            axes = (f"{name}_{kind}_time", f"{name}_entry")
            exact = law.solve(jnp.asarray(times), covariance, config.n, *begin)
            steps = exact.u[:, None] * jnp.diagonal(exact.U, axis1=1, axis2=2)
            data[f"{name}_{kind}_law"] = (axes, steps)
            if kind == "population":
                path = population_path(config, covariance, begin, len(times) - 1, stride)
                data[f"{name}_{kind}"] = (axes, path)
            else:
                fitting = {"progress": progress, "label": f"training_dynamics: {name}s"}
                if checkpoints:
                    fitting["checkpoint"] = checkpoints / f"{name}.ckpt"
                paths = stochastic_paths(
                    config, covariance, begin, len(times) - 1, stride, key, **fitting
                )
                data[f"{name}_{kind}"] = (("run", *axes), paths)
    times = np.linspace(0, config.head_time, 20 * points)
    sizes = jnp.full(len(eigenvalues), config.head_size)
    sizes = law.solve_heads(jnp.asarray(times), eigenvalues, config.n, sizes)
    gammas = (1 + 1 / config.n) * eigenvalues + eigenvalues.sum() / config.n
    gains = (eigenvalues**2)[None] * (2 * sizes**3 - gammas[None] * sizes**6)
    data["head_loss"] = ("head_time", (eigenvalues.sum() - gains.sum(1)) / 2)
    data["plateau"] = ("plateau_index", law.plateaus(eigenvalues, config.n))
    data["mode_limit"] = ("mode_entry", 1 / gammas)
    coordinates |= {"head_time": times, "mode_entry": np.asarray(config.eigenvalues)}
    return xr.Dataset(data, coordinates)
