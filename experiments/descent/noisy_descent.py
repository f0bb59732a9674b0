"""Is the noise of implicit updates Gaussian, and does descent with it test alike (A2, Remark 3)?

A stack of linear attention descends on a matrix W from I by W_t = W_{t-1} + G_t, and S, the second
moment of the demonstrations, is all that G_t sees of them. The noise of G_t is its spread over
prompts of one task. A2 takes it as Gaussian (Assumption 1), and descent with that noise, a fresh
draw for each layer (Eq. 4), as a model of the stack and of stochastic gradient descent (Remark 3).
Descent here has the weights of trained stacks; only S differs. S of n demonstrations is Wishart;
the Gaussian S has the same mean and covariance. Stochastic descent reads fresh demonstrations in
each layer, the stack the same ones in all.
"""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from experiments.descent import linear_stacks
from lsa_lab import random
from lsa_lab.lab import Claim, geometric_mean, main, plotting
from lsa_lab.models import linear_attention
from lsa_lab.tasks.linear import LinearTask, sample_moments_batch

MODEL, SGD, EQ4 = "the stack", "fresh demonstrations", "Eq. 4"
PATHS = (MODEL, "one Gaussian draw", SGD, EQ4, "no noise")  # what S is in each layer
STATES = ("trained", "untrained")


@dataclass(frozen=True)
class Config:
    d: int = 6  # covariates
    n: int = 16  # demonstrations of a prompt
    noise_var: float = 0.1  # of a label, where E |w|² = 1
    depth: int = 4  # layers
    tasks: int = 24  # of each run
    prompts: int = 512  # of each task
    runs: int = 32  # trainings
    steps_per_layer: int = 1200
    batch: int = 128
    learning_rate: float = 0.1  # the largest of one layer; L layers have an L-th of it
    seed: int = 1043


SMOKE = dict(d=2, n=4, depth=2, tasks=3, prompts=16, runs=3, steps_per_layer=10, batch=8)
QUICK = dict(depth=3, tasks=8, prompts=256, runs=9, steps_per_layer=400)
TIERS = {
    "smoke": Config(**SMOKE, seed=1),
    "quick": Config(**QUICK, seed=2),
    "full": Config(),
}


def train(config):  # -> Params [states, R', ...]
    """Return the R' stacks whose training did not diverge, and as many untrained ones."""
    task = LinearTask(config.n, config.d, noise_std=config.noise_var**0.5)
    task = task.replace(weight_std=config.d**-0.5, dtype=jnp.float32)

    def sample(key, _):
        return sample_moments_batch(key, task, config.batch)

    keys, nothing = jax.random.split(jax.random.key(config.seed)), jnp.zeros(config.runs)
    shape = dict(d=config.d, layers=config.depth)
    trained, diverged = linear_stacks.train("stacks", keys[0], sample, nothing, config, **shape)
    init = partial(linear_attention.init, num_layers=config.depth, num_heads=1, d=config.d)
    untrained = jax.vmap(partial(init, scale=0.1))(jax.random.split(keys[1], config.runs))
    return jax.tree.map(lambda *leaves: np.stack(leaves)[:, ~diverged], trained, untrained)


def draw_task(key, config):  # -> w [d], C [e, e]
    """Draw a task, and C with C Cᵀ = E e_i e_iᵀ for its tokens e_i, x ~ N(0, I)."""
    d = config.d
    w = jax.random.normal(key, (d,)) / d**0.5
    rows = jnp.concatenate([jnp.eye(d), w[None]])
    return w, jnp.concatenate([rows, config.noise_var**0.5 * jnp.eye(d + 1)[:, d:]], axis=1)


def draw_moments(key, n, e, size, gaussian):  # -> [B, e, e]
    """Draw S for n tokens N(0, I), or a Gaussian matrix with the same mean and covariance."""
    if not gaussian:
        factor = jnp.moveaxis(random.wishart_factor(key, n, e, size), -1, 0)
        return factor @ factor.mT / n
    normal = jax.random.normal(key, (size, e, e))
    return jnp.eye(e)[None] + (normal + normal.mT) / (2 * n) ** 0.5


def descend(params, moments):  # [L, e, e], S of each layer -> W_0 to W_L [L+1, e, e]
    maps = [jnp.eye(moments.shape[-1])]
    for w_kq, w_pv, moment in zip(params.w_kq[:, 0], params.w_pv[:, 0], moments, strict=True):
        w = maps[-1]
        maps.append(w + w_pv @ w @ moment @ w.T @ w_kq @ w)
    return jnp.stack(maps)


def excess_kurtosis(values):  # [B, ...] -> [...]
    centred = values - values.mean(0, keepdims=True)
    return (centred**4).mean(0) / (centred**2).mean(0) ** 2 - 3


def measure_noise(config, n, params, key):
    """Return of one task [L] the excess kurtosis of what an update adds to an answer, [] the same
    of one step of descent, and [L] the share of noise, E|G - E G|² / E|G|²."""
    key_task, key_query, key_prompts = jax.random.split(key, 3)
    _, root = draw_task(key_task, config)
    white = draw_moments(key_prompts, n, config.d + 1, config.prompts, gaussian=False)
    moments = root @ white @ root.T
    repeated = jnp.repeat(moments[:, None], config.depth, axis=1)
    updates = jnp.diff(jax.vmap(partial(descend, params))(repeated), axis=1)  # [B, L, e, e]
    x_query = jax.random.normal(key_query, (config.d,))
    added, step = updates[:, :, -1, :-1] @ x_query, moments[:, :-1, -1] @ x_query
    spread = ((updates - updates.mean(0, keepdims=True)) ** 2).sum((2, 3)).mean(0)
    share = spread / (updates**2).sum((2, 3)).mean(0)
    return excess_kurtosis(added), excess_kurtosis(step), share


def measure_risks(config, params, key):  # -> [paths]
    """Return of one task the mean over prompts of |w_L - w|², each at most |w|²: that of 0."""
    key_task, key_wishart, key_gaussian = jax.random.split(key, 3)
    w, root = draw_task(key_task, config)
    depth, e, size = config.depth, config.d + 1, config.prompts
    draws = [
        draw_moments(key, config.n, e, size * (depth + 1), kind).reshape(size, depth + 1, e, e)
        for key, kind in ((key_wishart, False), (key_gaussian, True))
    ]
    (same, fresh), (one_draw, eq4) = ((x[:, :1], x[:, 1:]) for x in draws)
    kinds = same, one_draw, fresh, eq4, jnp.eye(e)
    kinds = jnp.stack([jnp.broadcast_to(x, fresh.shape) for x in kinds])
    maps = jax.vmap(jax.vmap(partial(descend, params)))(root @ kinds @ root.T)
    errors = ((-maps[:, :, -1, -1, :-1] - w[None, None]) ** 2).sum(-1)  # [paths, B]
    return jnp.minimum(jnp.where(jnp.isnan(errors), jnp.inf, errors), w @ w).mean(1)


def over_tasks(function, config, params, key):  # params [R, ...] -> the results [R, ...]
    def measure_run(row):
        values = jax.lax.map(partial(function, row[0]), row[1])
        return jax.tree.map(lambda value: value.mean(0), values)

    keys = jax.random.split(key, (len(params.w_kq), config.tasks))
    return jax.jit(partial(jax.lax.map, measure_run))((params, keys))


def compute(config, models):
    params, keys = train(config), jax.random.split(jax.random.key(config.seed + 1), 3)
    shots, shares = (config.n, 2 * config.n), []
    for n, key in zip(shots, keys, strict=False):
        for state in range(len(STATES)):
            stacks = jax.tree.map(lambda leaf, state=state: leaf[state], params)
            noise = over_tasks(partial(measure_noise, config, n), config, stacks, key)
            shares.append(noise[2])
            if (n, state) == (config.n, 0):
                excess, step = noise[:2]
    trained = jax.tree.map(lambda leaf: leaf[0], params)
    risks = over_tasks(partial(measure_risks, config), config, trained, keys[2])
    shape = (len(shots), len(STATES), *excess.shape)
    data = {
        "excess": (("run", "layer"), np.asarray(excess)),
        "step_excess": (("run",), np.asarray(step)),
        "share": (("shots", "state", "run", "layer"), np.reshape(shares, shape)),
        "risk": (("run", "path"), np.asarray(risks)),
    }
    layers = np.arange(1, config.depth + 1)
    coordinates = {"shots": ["n", "2n"], "state": list(STATES), "path": list(PATHS)}
    return xr.Dataset(data, coordinates | {"layer": layers})


def excess_less_step(result):  # -> [R]
    return (result["excess"].mean("layer") - result["step_excess"]).values


def risk_ratio(result, path, base):  # -> [R]
    return (result["risk"].sel(path=path) / result["risk"].sel(path=base)).values


def share_by_shots(result):  # -> [R]
    share = result["share"].sel(state="trained").mean("layer")
    return (share.sel(shots="2n") / share.sel(shots="n")).values


def share_by_training(result):  # -> [R]
    share = result["share"].sel(shots="n").mean("layer")
    return (share.sel(state="trained") - share.sel(state="untrained")).values


ALIKE = dict(statistic="ratio", at_least=1 / 1.1, at_most=1.1)
PAIRED = "none: the ratio is paired, and 1 without a difference"
RISK = "the risk |w_L - w|², of each prompt at most that of the answer 0, of"
SHARE = "the share of noise, E|G - E G|² / E|G|² over prompts of a task, mean over layers and tasks"
CLAIMS = (
    Claim("gaussian", "A2, Assumption 1", "The noise of updates in trained linear stacks is as "
          "near to Gaussian as that of one step of descent", "the excess kurtosis, over prompts of "
          "a task, of what an update adds to an answer, mean over layers and tasks, less that of "
          "one step of descent", excess_less_step, at_least=-0.1, at_most=0.1, statistic="median",
          null="none: the difference is paired, and 0 without one"),
    Claim("tests_like_the_stack", "A2, Remark 3", "Descent with Gaussian noise, a draw for each "
          "layer (Eq. 4), tests like the trained stack", f"{RISK} that descent over that of the "
          "stack", partial(risk_ratio, path=EQ4, base=MODEL), **ALIKE, null=PAIRED),
    Claim("tests_like_sgd", "A2, Remark 3",
          "Descent with Gaussian noise, a draw for each layer (Eq. 4), tests like stochastic "
          "gradient descent", f"{RISK} that descent over that of descent with fresh demonstrations "
          "in each layer", partial(risk_ratio, path=EQ4, base=SGD), **ALIKE, null=PAIRED),
    Claim("stack_like_sgd", "A2, Remark 3", "The trained stack tests like stochastic gradient "
          "descent", f"{RISK} the stack over that of descent with fresh demonstrations in each "
          "layer", partial(risk_ratio, path=MODEL, base=SGD), **ALIKE, null=PAIRED),
    Claim("less_with_shots", "A2, Appendix C.4", "With twice the demonstrations there is less "
          "noise in the updates", f"{SHARE}, at 2n over that at n", share_by_shots, at_most=1.0,
          statistic="ratio", null="none: the ratio is paired, and 1 without a difference"),
    Claim("less_with_training", "A2, Appendix C.4", "Training takes noise out of the updates",
          f"{SHARE}, after training less before", share_by_training, at_most=0.0,
          null="none: the difference is paired, and 0 without one"),
)  # fmt: skip


def plot(result, config):  # -> Figure, caption
    figure, (left, right) = plotting.figure(6.75, 2.5, (1, 2))
    for x in result["layer"].values:
        runs = result["excess"].sel(layer=x).values
        left.plot(x + 0.2 * np.linspace(-1, 1, len(runs)), runs, **DOTS)
        left.plot(x, np.median(runs), "_", color="black", ms=16)
    step = float(result["step_excess"].median())
    left.axhline(step, color=plotting.METHOD["descent"]["color"], label="one step of descent")
    left.axhline(0, color="grey", lw=0.8, ls=":", label="Gaussian")
    left.set_yscale("symlog", linthresh=1.0)
    left.set_yticks((0, 1, 10, 100), ("0", "1", "10", "100"))
    left.set_ylim(-0.6, None)
    left.set(xlabel="layer", ylabel="excess kurtosis", xticks=result["layer"])
    left.set_title("Noise of the updates")
    left.legend(loc="upper left")
    for row, path in enumerate(PATHS[1:]):
        runs = risk_ratio(result, path, MODEL)
        right.plot(runs, row + 0.2 * np.linspace(-1, 1, len(runs)), **DOTS)
        right.plot(np.median(runs), row, "|", color="black", ms=14)
    right.axvline(1, color="grey", lw=0.8, ls=":")
    plotting.log_axes(right, x=True)
    right.set(yticks=range(len(PATHS) - 1), yticklabels=PATHS[1:], ylim=(len(PATHS) - 1.4, -0.6))
    right.set(xlabel="risk / that of the stack", title="Descent with other noise")
    last = float(result["excess"].isel(layer=-1).median())
    step = float(result["step_excess"].median())
    eq4, sgd = (geometric_mean(risk_ratio(result, path, MODEL)) for path in (EQ4, SGD))
    return figure, (
        f"The noise of the last layer's update has an excess kurtosis of {last:.3g}, that of one "
        f"step of descent {step:.2g}; Gaussian noise has 0. Descent with the stack's weights that "
        f"adds fresh Gaussian noise (Eq. 4) has {eq4:.3g} times the stack's risk, descent that "
        f"reads fresh demonstrations {sgd:.3g} times. Points are the {result.sizes['run']} of "
        f"{config.runs} trainings that did not diverge, bars medians."
    )


DOTS = dict(marker="o", ls="", color=plotting.BLUE, mfc="none", ms=3, mew=0.6)


if __name__ == "__main__":
    main(__file__)
