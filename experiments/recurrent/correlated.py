"""Is a prompt of correlated covariates as good as a shorter one (derived here)?

Covariates follow one another with E x_i x_jᵀ = c^|i-j| I. One layer of linear attention is trained
on such prompts. Theory gives its risk, 1 - 1/(1 + (d + 1)/n_eff + d σ²/n): the interference between
demonstrations is that of n_eff < n independent ones, while label noise still averages over all n.
"""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from experiments import training
from lsa_lab.lab import Claim, compute_each, main, plotting
from lsa_lab.models.linear_attention import Params
from lsa_lab.models.moments import predictions_from_moments
from lsa_lab.prompts import second_moments
from lsa_lab.tasks.linear import LinearTask, sample_batch
from lsa_lab.theory import correlated_prompts


@dataclass(frozen=True)
class Config:
    d: int = 6  # covariates
    n: int = 32  # demonstrations of a prompt
    correlations: tuple[float, ...] = (0.0, 0.5, 0.8)  # values of c
    noises: tuple[float, ...] = (0.1, 1.0)  # variances of the label noise
    test_prompts: int = 20_000  # for each run
    runs: int = 16  # trainings for each correlation and noise
    steps: int = 2000
    batch: int = 128
    learning_rate: float = 0.01
    seed: int = 1031


TIERS = {
    "smoke": Config(3, 6, (0.8,), (1.0,), 50, runs=3, steps=10, batch=8, seed=1),
    "quick": Config(test_prompts=5000, runs=9, steps=500, batch=64, seed=2),
    "full": Config(),
}


def list_places(config):  # -> [P] pairs (correlation, noise)
    return [(c, noise) for c in config.correlations for noise in config.noises]


def train(config):  # -> Params [P R, ...]
    """Train ``runs`` layers of one head at each place, from a start with the sign of descent."""
    places = np.repeat(list_places(config), config.runs, axis=0).astype(np.float32)
    rng, d = np.random.default_rng(config.seed), config.d
    start = 0.1 * np.stack([np.diag([1.0] * d + [0.0]), np.diag([0.0] * d + [-1.0])])
    noise = rng.normal(size=(2, len(places), 1, 1, d + 1, d + 1))
    start = Params(*jnp.asarray(start[:, None, None, None] + 0.02 * noise, jnp.float32))

    def sample(key, place):
        spread = dict(noise_std=jnp.sqrt(place[1]), weight_std=d**-0.5, dtype=jnp.float32)
        task = LinearTask(config.n, d, correlation=place[0], **spread)
        return sample_batch(key, task, config.batch)

    def loss(params, batch, place):
        answers = predictions_from_moments(params, second_moments(batch), batch.x_query.T)
        return jnp.mean((answers - batch.y_query) ** 2)

    keys = jax.random.split(jax.random.key(config.seed), len(places))
    recipe = loss, sample, training.build_adam(config.learning_rate, config.steps), config.steps
    per_run = jnp.asarray(places)
    return training.train("correlated prompts", *recipe, start, keys, per_run, needs_all=True)


def draw_moments(rng, config, correlation, noise_var):  # -> [e, e, B], [d, B], [B]
    size, n, d = config.test_prompts, config.n, config.d
    x = rng.standard_normal((n, size, d))
    for t in range(1, n):
        x[t] = correlation * x[t - 1] + (1 - correlation**2) ** 0.5 * x[t]
    w, x_query = rng.standard_normal((size, d)) / d**0.5, rng.standard_normal((size, d))
    y = np.einsum("nbd,bd->nb", x, w) + noise_var**0.5 * rng.standard_normal((n, size))
    tokens = np.concatenate([x, y[..., None]], axis=-1)
    moments = np.einsum("nbe,nbf->efb", tokens, tokens, optimize=True) / n
    return moments, x_query.T, (w * x_query).sum(1)


def compute(config, models):
    params, places = train(config), list_places(config)

    def measure(item):
        place, run = item
        rng = np.random.default_rng([config.seed, place, run])
        moments, x_queries, targets = draw_moments(rng, config, *places[place])
        layer = jax.tree.map(lambda leaf: leaf[place * config.runs + run], params)
        answers = predictions_from_moments(layer, moments, x_queries)
        return np.mean((np.asarray(answers) - targets) ** 2)

    items = [(i, r) for i in range(len(places)) for r in range(config.runs)]
    risks = np.array(compute_each("test prompts", items, measure))
    shape = (len(config.correlations), len(config.noises))
    closed = np.array([predict(config, *place) for place in places]).reshape(*shape, 2)
    axes = ("correlation", "noise")
    data = {"risk": ((*axes, "run"), risks.reshape(*shape, config.runs))}
    data["closed_form"] = ((*axes, "form"), closed)
    coordinates = {"correlation": list(config.correlations), "noise": list(config.noises)}
    return xr.Dataset(data, coordinates | {"form": ["theory", "shorter prompt"]})


def predict(config, correlation, noise_var):  # -> [2]
    """Return the risk that theory predicts, and that of n_eff independent demonstrations."""
    n, d = config.n, config.d
    lags = correlation ** np.arange(n)
    theory = float(correlated_prompts.additive(n, d, noise_var, lags)[-1])
    share = 1 + 2 * np.sum((1 - np.arange(1, n) / n) * lags[1:] ** 2)  # n / n_eff
    shorter = share * (d + 1 + d * noise_var) / n
    return np.array([theory, shorter / (1 + shorter)])


def predictions(config):
    return {
        f"correlation {c}, noise {noise}": float(predict(config, c, noise)[0])
        for c, noise in list_places(config)
    }


def over_form(result, correlation, noise, form):  # -> [R]
    if correlation not in result["correlation"] or noise not in result["noise"]:
        return None
    place = {"correlation": correlation, "noise": noise}
    return (result["risk"] / result["closed_form"].sel(form=form)).sel(place).values


FULL = TIERS["full"]
derived = partial(Claim, source="derived here", statistic="ratio")
CLAIMS = (
    derived("risk", statement="At correlation {correlation} and label noise {noise} a trained "
            "layer has the risk that theory predicts", quantity="the risk over its prediction",
            sample=partial(over_form, form="theory"), at_least=0.98, at_most=1.02,
            over={"correlation": FULL.correlations, "noise": FULL.noises}, simultaneous=True,
            null="shorter"),
    derived("shorter", statement="At correlation {correlation} and label noise {noise} a trained "
            "layer has less risk than n_eff independent demonstrations would give",
            quantity="the risk over that of n_eff independent demonstrations",
            sample=partial(over_form, form="shorter prompt"), at_most=1.0,
            over={"correlation": FULL.correlations[1:], "noise": FULL.noises}, simultaneous=True,
            null="none: this claim is the null of another claim"),
)  # fmt: skip


def plot(result, config):  # -> Figure, caption
    figure, (ax,) = plotting.figure(3.6, 2.6)
    grid = np.linspace(0, 0.95, 50)
    for noise, color in zip(config.noises, plotting.COLOURS, strict=False):
        curves = np.array([predict(config, c, noise) for c in grid]).T
        plotting.line(ax, grid, curves[0], f"noise {noise:g}", color)
        plotting.line(ax, grid, curves[1], None, color, ":")
        runs = result["risk"].sel(noise=noise).transpose("run", "correlation")
        plotting.mean_points(ax, config.correlations, runs, fmt="o", color=color, mfc="white")
    ax.set(xlabel="correlation c", ylabel="risk", title="Risk of one layer")
    ax.legend()
    ratios = np.log(result["risk"] / result["closed_form"].sel(form="theory")).mean("run")
    off = 100 * float(np.abs(np.expm1(ratios)).max())
    last = over_form(result, config.correlations[-1], config.noises[-1], "shorter prompt")
    return figure, (
        f"One trained layer (points) has the risk that theory predicts (lines), within {off:.2g} "
        f"%. Were correlated prompts just shorter (dotted), it would be higher: at correlation "
        f"{config.correlations[-1]:g} and noise {config.noises[-1]:g} the layer has "
        f"{np.exp(np.log(last).mean()):.3g} times that risk."
    )


if __name__ == "__main__":
    main(__file__)
