"""Does one layer trained on samples follow the closed law of gradient flow (2306.09927)?

Gradient flow on the loss of one layer of linear attention keeps all weights at 0 except the label
entry u of the value matrix and the covariate block U of the key-query matrix. From balanced small
weights and isotropic covariates the effective step a, uU = aI, follows a logistic law in time. With
several eigenvalues λ the entries of uU, called modes, grow at rates in the ratio of λ². Here every
entry of both matrices is free, and stochastic gradient descent draws a fresh batch for each step.
"""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr

from experiments import training
from lsa_lab.lab import Claim, main, plotting
from lsa_lab.models import moments
from lsa_lab.models.linear_attention import Params
from lsa_lab.tasks.linear import LinearTask, sample_moments_batch
from lsa_lab.theory import training_dynamics as theory


@dataclass(frozen=True)
class Config:
    """Time is the number of steps times the learning rate."""

    d: int = 10  # isotropic covariates
    n: int = 40  # demonstrations of a prompt
    eigenvalues: tuple[float, ...] = (2.0, 1.2, 0.7, 0.4)  # of the second covariance, falling
    runs: int = 16
    initial_step: float = 0.01  # u U, the effective step at time 0
    learning_rate: float = 2e-3
    batch: int = 1024  # prompts of a step of descent
    isotropic_time: float = 2.4  # at which a path on isotropic covariates ends
    modes_time: float = 12.0  # at which a path on several eigenvalues ends
    points: int = 100  # times at which a path is recorded; four times as many for eigenvalues
    seed: int = 1002


SMOKE = dict(d=2, n=4, runs=3, learning_rate=0.02, batch=8, points=10, modes_time=2.0)
TIERS = {
    "smoke": Config(**SMOKE, eigenvalues=(2.0, 1.2), seed=1),
    "quick": Config(runs=9, learning_rate=4e-3, batch=256, points=50, seed=2),
    "full": Config(),
}


def balanced_start(initial_step, d):
    """Return u and U with uU = initial_step times the identity and u = |U|_F."""
    u = (initial_step * d**0.5) ** 0.5
    return theory.Weights(jnp.asarray(u), jnp.eye(d) * initial_step / u)


def train(config, covariance, time, points, key, label):  # -> times [C+1], steps [R, C+1, d]
    stride = max(1, round(time / config.learning_rate / points))
    task = LinearTask(config.n, len(covariance), covariance=covariance, dtype=jnp.float32)

    def loss(params, batch):
        second_moments, x_queries, y_queries = batch
        predictions = moments.predictions_from_moments(params, second_moments, x_queries)
        return jnp.mean((predictions - y_queries) ** 2) / 2

    def read_steps(params):  # the diagonal of uU [d]
        return -params.w_pv[0, 0, -1, -1] * jnp.diagonal(params.w_kq[0, 0])[:-1]

    sample = partial(sample_moments_batch, task=task, size=config.batch)
    recipe = loss, sample, optax.sgd(config.learning_rate), points * stride
    weights = balanced_start(config.initial_step, len(covariance))
    w_kq = jnp.pad(weights.U, ((0, 1), (0, 1)))
    leaves = w_kq, jnp.zeros_like(w_kq).at[-1, -1].set(-weights.u)
    start = Params(*(jnp.stack([w[None, None].astype(jnp.float32)] * config.runs) for w in leaves))
    keys, watch = jax.random.split(key, config.runs), dict(watch=read_steps, chunk=stride)
    run = training.fit_runs(label, *recipe, start, keys, needs_all=True, **watch)
    times = np.arange(points + 1) * stride * config.learning_rate
    return times, np.asarray(run.history["watch"], float)


def compute(config, models):
    keys = jax.random.split(jax.random.key(config.seed))
    identity, eigenvalues = jnp.eye(config.d), jnp.asarray(config.eigenvalues, float)
    time, modes_time, points = config.isotropic_time, config.modes_time, config.points
    times, steps = train(config, identity, time, points, keys[0], "isotropic")
    laws = [
        theory.isotropic_step(jnp.asarray(times), config.d, n, 1.0, config.initial_step)
        for n in (config.n, 10**9)
    ]
    covariance = jnp.diag(eigenvalues)
    modes_times, modes = train(config, covariance, modes_time, 4 * points, keys[1], "eigenvalues")
    start = balanced_start(config.initial_step, len(eigenvalues))
    flow = theory.solve(jnp.asarray(modes_times), covariance, config.n, *start)
    gammas = (1 + 1 / config.n) * eigenvalues + eigenvalues.sum() / config.n
    mode_laws = flow.u[:, None] * jnp.diagonal(flow.U, axis1=1, axis2=2)
    return xr.Dataset(
        {
            "step": (("run", "time"), steps.mean(-1)),
            "law": (("demonstrations", "time"), np.stack(laws)),
            "limit": 1 / (1 + (1 + config.d) / config.n),
            "mode": (("run", "mode_time", "eigenvalue"), modes),
            "mode_law": (("mode_time", "eigenvalue"), mode_laws),
            "mode_limit": ("eigenvalue", 1 / gammas),
        },
        {"time": times, "demonstrations": ["n", "infinite"], "mode_time": modes_times}
        | {"eigenvalue": list(config.eigenvalues)},
    )


def distances(result, demonstrations):  # -> [R]
    """Return |a - law| / a(∞), averaged over time; the law is that for n or for infinitely many."""
    law = result["law"].sel(demonstrations=demonstrations)
    distance = np.abs(result["step"] - law) / result["limit"]
    return distance.mean("time").values


def half_times(result):  # -> [R, modes]
    """Return the time at which each mode reaches half of its limit, by linear interpolation.

    A mode that never does has the time at which its path ends.
    """
    times = result["mode_time"].values
    levels = (result["mode"] / result["mode_limit"]).transpose("run", "eigenvalue", "mode_time")
    reached = levels.values >= 0.5
    after = np.maximum(reached.argmax(-1), 1)
    y_0, y_1 = (
        np.take_along_axis(levels.values, index[..., None], -1)[..., 0]
        for index in (after - 1, after)
    )
    t_0, t_1 = times[after - 1], times[after]
    with np.errstate(divide="ignore", invalid="ignore"):  # of a mode that stands still
        crossings = t_0 + (t_1 - t_0) * (0.5 - y_0) / (y_1 - y_0)
    return np.where(reached.any(-1), crossings, times[-1])


def delay(result, mode):  # -> [R]
    """Return a mode's half-time over that of the mode with the next larger eigenvalue."""
    if mode > result.sizes["eigenvalue"]:
        return None
    halves = half_times(result)
    return halves[:, mode - 1] / halves[:, mode - 2]


derived = partial(Claim, source="derived here")
CLAIMS = (
    derived("samples", statement="Descent on fresh samples with every entry free follows the "
            "logistic law of the flow", quantity="|a - law| / a(∞), averaged over time",
            sample=partial(distances, demonstrations="n"), at_most=0.05, null="samples_infinite"),
    derived("samples_infinite", statement="The logistic law for infinitely many demonstrations is "
            "farther from descent on samples than the law for n",
            quantity="the distance to the law for n = ∞ over the distance to the law for n",
            sample=lambda r: distances(r, "infinite") / distances(r, "n"), at_least=1.0,
            statistic="ratio", null="none: this claim is the null of another claim"),
    derived("order", statement="Mode {mode}, counted from the largest eigenvalue, is learnt later "
            "than the mode before it",
            quantity="the time to half of a mode's limit over that of the mode before it",
            sample=delay, at_least=1.0, statistic="ratio", over={"mode": (2, 3, 4)},
            null="none: modes that are learnt together have the ratio 1", simultaneous=True),
)  # fmt: skip


def plot(result, config):  # -> Figure, caption
    figure, (left, right) = plotting.figure(6.75, 2.6, (1, 2))
    color, times = plotting.METHOD["linear"]["color"], result["time"].values
    steps, laws = (100 * result[name] / result["limit"] for name in ("step", "law"))
    few, look = slice(None, None, max(1, len(times) // 16)), dict(fmt="o", color=color, mfc="white")
    plotting.line(left, times, laws.sel(demonstrations="n"), "law")
    plotting.line(left, times, laws.sel(demonstrations="infinite"), "law, n = ∞", "dimgrey", ":")
    plotting.mean_points(left, times[few], steps[:, few], "descent on samples", **look)
    left.set(xlabel="time = steps × learning rate", ylabel="effective step, % of its limit")
    left.set_title("Isotropic covariates")
    left.legend()
    from matplotlib import colormaps

    times, values = result["mode_time"].values, result["eigenvalue"].values
    modes = 100 * result["mode"].transpose("run", ...) / result["mode_limit"]
    laws = 100 * result["mode_law"] / result["mode_limit"]
    few = np.unique(np.geomspace(1, len(times) - 1, 16).astype(int))
    shades = colormaps["viridis"](np.linspace(0, 0.85, len(values)))
    for i, (value, shade) in enumerate(zip(values, shades, strict=True)):
        plotting.line(right, times, laws.isel(eigenvalue=i), f"λ = {value:g}", shade)
        points = modes.isel(eigenvalue=i, mode_time=few)
        plotting.mean_points(right, times[few], points, fmt="o", color=shade, mfc="white")
    plotting.log_axes(right, x=True)
    right.set(xlabel="time", ylabel="mode, % of its limit", xlim=(times[1], times[-1]))
    right.set_title("Several eigenvalues")
    right.legend(title="eigenvalue")
    off, infinite = (100 * distances(result, name).mean() for name in ("n", "infinite"))
    delays = [delay(result, mode) for mode in range(2, len(config.eigenvalues) + 1)]
    ratios = ", ".join(f"{np.exp(np.log(ratio).mean()):.2g}" for ratio in delays)
    return figure, (
        f"Descent on samples is {off:.2g} % of the limit away from the logistic law, averaged over "
        f"time; the law for infinitely many demonstrations is {infinite:.2g} % away. Each mode "
        f"reaches half of its limit after {ratios} times the time of the mode before. Lines are "
        "the laws, points means of runs."
    )


if __name__ == "__main__":
    main(__file__)
