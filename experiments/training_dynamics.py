"""How does one layer learn: do its closed laws of gradient flow describe descent on samples?"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax

from experiments import style
from experiments.configs.training_dynamics import TIERS, Config
from lsa_lab import results
from lsa_lab.claims import Claim, about_the_mean, judge
from lsa_lab.models import moments
from lsa_lab.models.linear_attention import Params
from lsa_lab.tasks.linear import LinearTask, sample
from lsa_lab.theory import training_dynamics as law
from lsa_lab.training import fit

__all__ = ["TIERS", "Config", "claims", "compute", "plot"]


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


def crossings(times, paths, levels):  # [..., t], [..., 1] -> [...]
    """When each path first reaches its level, by linear interpolation; NaN if it never does."""
    above = paths >= levels
    after = np.maximum(above.argmax(-1), 1)[..., None]
    y0, y1 = (np.take_along_axis(paths, i, -1)[..., 0] for i in (after - 1, after))
    t0, t1 = times[after[..., 0] - 1], times[after[..., 0]]
    with np.errstate(divide="ignore", invalid="ignore"):
        when = t0 + (t1 - t0) * (np.broadcast_to(levels, paths.shape)[..., 0] - y0) / (y1 - y0)
    return np.where(above.any(-1), when, np.nan)


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


def plot(dataset):
    settings = results.settings(dataset)
    drawn, axes = style.figure(9.0, 3.4, (1, 3))
    limit, half = float(dataset["limit"]), float(dataset.half_time)
    ax = axes[0]
    times = dataset.step_stochastic_time.values
    every = slice(None, None, max(1, len(times) // 20))
    lost = style.band(
        ax, times, dataset.step_stochastic.mean("step_entry") / limit, "samples", marker=None
    )
    style.line(ax, times, dataset.step_stochastic_law.mean("step_entry") / limit, "logistic law")
    population = dataset.step_population.mean("step_entry") / limit
    ax.plot(
        dataset.step_population_time[every],
        population[every],
        "o",
        ms=3,
        color=style.COLOURS[1],
        label="population loss",
    )
    ax.axvline(half, color="grey", lw=0.8, ls="--", label="half-time, formula")
    ax.set(xlabel="time = steps × rate", ylabel="effective step, share of its limit")
    ax.set_title("isotropic")
    ax.legend()
    ax = axes[1]
    for i, value in enumerate(settings.eigenvalues):
        reach = float(dataset.mode_limit[i])
        color = style.COLOURS[i % len(style.COLOURS)]
        times = dataset.mode_stochastic_time.values
        paths = dataset.mode_stochastic.isel(mode_entry=i) / reach
        lost += style.band(ax, times, paths, f"λ = {value:g}", color, marker=None)
        law_ = dataset.mode_population_law.isel(mode_entry=i) / reach
        style.line(ax, dataset.mode_population_time, law_, style="--", color=style.BLACK)
    style.log_axes(ax, x=True)
    ax.set(xlabel="time", ylabel="mode, share of its limit", xlim=(times[1], times[-1]))
    ax.set_title("merged keys and queries")
    ax.legend()
    ax = axes[2]
    style.line(ax, dataset.head_time, dataset.head_loss, "separate rank-1 heads")
    for i, value in enumerate(dataset.plateau.values):
        ax.axhline(value, color="grey", lw=0.8, ls="--", label="plateaus" if i == 0 else None)
    style.log_axes(ax, x=True)
    ax.set(xlabel="time", ylabel="loss (with its factor 1/2)")
    ax.set_xlim(dataset.head_time.values[1], dataset.head_time.values[-1])
    ax.set_title("separate keys and queries")
    ax.legend()
    style.caption(
        drawn,
        f"Lines and dashes: closed laws and the matrix ODE. Bands: the middle 80 % of "
        f"{settings.runs} runs of descent on fresh batches of {settings.batch}, all entries free; "
        f"{lost} numbers left out as not finite. a: d = {settings.d}, n = {settings.n}; "
        f"b and c: eigenvalues {settings.eigenvalues}.",
    )
    return drawn


def claims(dataset):
    settings = results.settings(dataset)
    limit, half = float(dataset["limit"]), float(dataset.half_time)
    source = "derived here from Zhang et al. 2306.09927"
    mean = {
        kind: dataset[f"step_{kind}"].mean("step_entry") for kind in ("population", "stochastic")
    }
    laws = {kind: dataset[f"step_{kind}_law"].mean("step_entry") for kind in mean}
    worst = float(np.abs(mean["population"] - laws["population"]).max()) / limit
    off = np.abs(mean["stochastic"] - laws["stochastic"]).mean("step_stochastic_time") / limit
    times = dataset.step_stochastic_time.values
    halves = crossings(
        times, mean["stochastic"].transpose("run", ...).values, np.array([limit / 2])
    )
    modes = dataset.mode_stochastic.transpose("run", "mode_entry", "mode_stochastic_time").values
    reached = crossings(
        dataset.mode_stochastic_time.values, modes, dataset.mode_limit.values[None, :, None] / 2
    )
    order = np.argsort(dataset.mode_entry.values)[::-1]
    # A mode that never reaches its half is not in order: NaN compares as false.
    ordered = (np.diff(reached[:, order], axis=1) > 0).all(1)
    return [
        Claim(
            "training_dynamics.population",
            source,
            "The effective step of isotropic training follows a logistic law",
            f"largest |a - law| / a(∞) of descent on the population loss <= "
            f"{settings.population_error}",
            worst,
            (worst, worst),
            judge((worst, worst), at_most=settings.population_error),
        ),
        about_the_mean(
            "training_dynamics.samples",
            source,
            "Descent on fresh samples, with every entry free, follows the same law",
            f"mean over time of |a - law| / a(∞) <= {settings.stochastic_error}",
            off,
            at_most=settings.stochastic_error,
        ),
        about_the_mean(
            "training_dynamics.half_time",
            source,
            "Half of the limit is reached after ln(1/(γa_0) - 1) / (2λ²√d)",
            f"|measured / formula - 1| <= {settings.half_time_error}",
            np.abs(halves / half - 1),
            at_most=settings.half_time_error,
        ),
        about_the_mean(
            "training_dynamics.order",
            source,
            "Modes are learnt in the order of the squared eigenvalues",
            f"share of runs whose modes reach half of their limits in that order >= "
            f"{settings.ordered_share}",
            ordered.astype(float),
            at_least=settings.ordered_share,
        ),
    ]
