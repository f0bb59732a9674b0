"""How many times may a layer that was trained for one step be applied (2502.21212)?

One layer of linear attention, trained on prompts of n demonstrations, is one step of gradient
descent with the step size a = 1/(1 + (1 + d + d σ²)/n). The same layer is applied k times here, as
in a looped model or a chain of thought: k steps of descent. Their mean risk has a closed form at
finite n and d; it is least at a finite k if labels are noisy. Rare prompts whose covariates have an
eigenvalue above 2/a diverge, so that the mean over prompts explodes with k while the median tends
to the risk of least squares.
"""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from experiments import training
from experiments.descent.linear_stacks import repeat
from lsa_lab.lab import Claim, compute_each, main, plotting, stack_rows
from lsa_lab.models.linear_attention import Params
from lsa_lab.models.moments import compiler_options, layer_maps, predictions_from_moments
from lsa_lab.tasks.linear import LinearTask, sample_moments_batch
from lsa_lab.theory.depth import iterated

MODELS = ("one layer", "loop")  # trained for one step, and for ``loops`` steps


@dataclass(frozen=True)
class Config:
    d: int = 8  # covariates
    n: int = 40  # demonstrations of a prompt
    noises: tuple[float, ...] = (0.02, 0.1, 0.5)  # variances of the label noise
    loops: int = 3  # times that the looped stack applies its layer in training
    most: int = 64  # times that a layer is applied in the test
    test_prompts: int = 20_000  # for each run
    runs: int = 16  # trainings for each noise
    steps: int = 3000
    batch: int = 128
    learning_rate: float = 0.01
    seed: int = 1011


TIERS = {
    "smoke": Config(3, 8, (0.1,), 2, 8, 64, runs=3, steps=20, batch=16, seed=1),
    "quick": Config(test_prompts=1000, runs=9, steps=600, batch=64, seed=2),
    "full": Config(),
}


def train(config, loops):  # -> Params [noises R, ...]
    count, e = len(config.noises) * config.runs, config.d + 1
    rng = np.random.default_rng([config.seed, loops])
    # A start with the sign of descent: from others a layer may end at a worse minimum
    # (one_layer_optimum).
    signs = [1.0] * config.d + [0.0], [0.0] * config.d + [-1.0]
    descent = 0.1 * np.stack([np.diag(row) for row in signs])
    noise = 0.02 * rng.normal(size=(2, count, 1, 1, e, e))
    w_kq, w_pv = descent[:, None, None, None] + noise
    # One step never reads the label slot of the query and writes nothing else that is read: these
    # entries have no gradient, and would act from the second step on.
    w_kq[..., -1], w_pv[..., :-1, :] = 0.0, 0.0

    def sample(key, noise_std):
        task = LinearTask(config.n, config.d, noise_std=noise_std, weight_std=config.d**-0.5)
        return sample_moments_batch(key, task.replace(dtype=jnp.float32), config.batch)

    def loss(params, batch, noise_std):
        moments, x_queries, targets = batch
        errors = predictions_from_moments(repeat(params, loops), moments, x_queries) - targets
        return jnp.mean(errors**2)

    noise_stds = jnp.repeat(jnp.sqrt(jnp.asarray(config.noises, jnp.float32)), config.runs)
    keys = jax.random.split(jax.random.key(rng.integers(2**31)), count)
    start = Params(jnp.asarray(w_kq, jnp.float32), jnp.asarray(w_pv, jnp.float32))
    optimizer = training.build_adam(config.learning_rate, config.steps, clip=0.1)
    recipe = loss, sample, optimizer, config.steps
    return training.train(f"{loops} steps", *recipe, start, keys, noise_stds, needs_all=True)


def draw_prompts(rng, config, noise_var):  # -> moments [B, e, e], w [B, d]
    size, n, d = config.test_prompts, config.n, config.d
    x, w = rng.standard_normal((size, n, d)), rng.standard_normal((size, d)) / d**0.5
    y = np.einsum("bnd,bd->bn", x, w) + noise_var**0.5 * rng.standard_normal((size, n))
    tokens = np.concatenate([x, y[..., None]], axis=-1)
    return tokens.transpose(0, 2, 1) @ tokens / n, w


@partial(jax.jit, static_argnames="times", compiler_options=compiler_options())
def iterate(params, moments, w, times):  # -> [B, times + 1]
    """Return |ŵ_k - w|² after 0 to ``times`` applications of a layer, the risk over x ~ N(0, I)."""

    def one(prompt):
        moment, target = prompt
        weights = -layer_maps(repeat(params, times), moment)[:, -1, :-1]
        return jnp.sum((weights - target[None]) ** 2, axis=-1)

    return jax.lax.map(one, (moments, w), batch_size=100)


def measure(config, params, item):  # -> a dictionary of summaries of one run
    """Return mean, median and maximum over prompts of the risk after each number of steps."""
    noise, run = item
    rng = np.random.default_rng([config.seed, 7, noise, run])
    moments, w = draw_prompts(rng, config, config.noises[noise])
    row = noise * config.runs + run
    layers = [jax.tree.map(lambda leaf: jnp.asarray(leaf[row]), each) for each in params]
    risks = np.stack([iterate(layer, moments, w, config.most) for layer in layers])
    risks = np.where(np.isfinite(risks), risks, np.inf)  # of prompts that diverge
    least_squares = np.linalg.solve(moments[:, :-1, :-1], moments[:, :-1, -1:])[..., 0]
    end = np.sum((least_squares - w) ** 2, axis=-1)
    return {
        "mean": risks.mean(1),
        "median": np.median(risks, axis=1),
        "diverged": (risks[..., -1] > 1).mean(1),
        "least_squares": np.array([end.mean(), np.median(end)]),
    }


def compute(config, models):
    params = [train(config, loops) for loops in (1, config.loops)]
    items = [(i, r) for i in range(len(config.noises)) for r in range(config.runs)]
    rows = compute_each("test prompts", items, partial(measure, config, params))
    grid = "noise", "run"
    dims = dict.fromkeys(("mean", "median"), (*grid, "model", "steps"))
    dims |= {"diverged": (*grid, "model"), "least_squares": (*grid, "statistic")}
    data = stack_rows(rows, dims, (len(config.noises), config.runs))
    closed = [iterated(config.n, config.d, noise, config.most) for noise in config.noises]
    data["closed_form"] = (("noise", "steps"), np.stack(closed))
    coordinates = {"noise": list(config.noises), "model": list(MODELS)}
    coordinates |= {"steps": np.arange(config.most + 1), "statistic": ["mean", "median"]}
    return xr.Dataset(data, coordinates)


def predictions(config):
    curves = {noise: iterated(config.n, config.d, noise, 16) for noise in config.noises}
    return {
        f"noise {noise}": {"best": int(curve.argmin()), "risks": [float(r) for r in curve]}
        for noise, curve in curves.items()
    }


def select(result, noise, model="one layer", name="mean"):  # -> [R, steps + 1], or None
    if noise not in result["noise"]:
        return None
    return result[name].sel(noise=noise, model=model).transpose("run", "steps").values


def best_length(result, noise):
    return int(result["closed_form"].sel(noise=noise).values.argmin())


def over_closed_form(result, noise, steps):  # -> [R]
    values = select(result, noise)
    if values is None or steps >= values.shape[1]:
        return None
    return values[:, steps] / result["closed_form"].sel(noise=noise).values[steps]


def best_over_least(result, noise):  # -> [R]
    values = select(result, noise)
    return None if values is None else values[:, best_length(result, noise)] / values.min(1)


def end_over_least_squares(result, noise):  # -> [R]
    values = select(result, noise, name="median")
    if values is None:
        return None
    return values[:, -1] / result["least_squares"].sel(noise=noise, statistic="median").values


def end_over_least(result, noise):  # -> [R]
    values = select(result, noise, name="median")
    return None if values is None else values[:, -1] / values.min(1)


def diverged(result, noise):  # -> [R]
    if noise not in result["noise"]:
        return None
    return result["diverged"].sel(noise=noise, model="one layer").values


def loop_over_best(result, noise):  # -> [R]
    """Return the looped stack's least risk over that of the layer trained for one step."""
    values = select(result, noise)
    return None if values is None else select(result, noise, "loop").min(1) / values.min(1)


FULL = TIERS["full"]
NOISE = {"noise": FULL.noises}
ratio = partial(Claim, source="derived here", statistic="ratio")
CLAIMS = (
    ratio("curve", statement="With label noise {noise} a layer trained for one step has, applied "
          "{steps} times, the mean risk that theory gives {steps} steps of descent",
          quantity="the mean risk over prompts over its closed form", sample=over_closed_form,
          at_least=0.95, at_most=1.05, over={**NOISE, "steps": (1, 2, 4)}, simultaneous=True,
          null="none: the closed form has no free parameter"),
    ratio("best", statement="With label noise {noise} theory names the best number of applications",
          quantity="the mean risk at the length that theory names over the least along the curve",
          sample=best_over_least, at_most=1.1, over=NOISE,
          null="none: any other length has a larger ratio, which is at least 1"),
    ratio("end", statement="With label noise {noise} the typical prompt ends at least squares",
          quantity="the median risk after all applications over that of least squares on the same "
          "prompts", sample=end_over_least_squares, at_least=0.9, at_most=1.1, over=NOISE,
          null="none: least squares on the same prompts is the comparison"),
    ratio("cost", statement="With label noise {noise} the price of thinking to the end, on the "
          "typical prompt", quantity="the median risk after all applications over the least median "
          "along the curve", sample=end_over_least, over=NOISE, null="none: an estimate"),
    Claim("rare", "derived here", "With label noise {noise} the layer diverges on rare prompts, "
          "which make the mean risk explode", "the share of prompts whose risk after all "
          "applications is above that of predicting zero", diverged, over=NOISE,
          null="none: an estimate"),
    ratio("loop", statement="With label noise {noise} a stack trained in a loop of "
          f"{FULL.loops} has a lower least risk than the layer trained for one step",
          quantity="the least mean risk of the looped stack over that of the layer",
          sample=loop_over_best, at_most=1.0, over=NOISE,
          null="none: the ratio is paired, and 1 without a difference"),
)  # fmt: skip


def plot(result, config):  # -> Figure, caption
    figure, (left, right) = plotting.figure(6.75, 2.6, (1, 2), sharey=True)
    steps = result["steps"].values
    shown = 2 ** np.arange(int(np.log2(config.most)) + 1)
    for noise, color in zip(config.noises, plotting.COLOURS[3:], strict=False):
        label, closed = f"noise {noise:g}", result["closed_form"].sel(noise=noise)
        end = result["least_squares"].sel(noise=noise, statistic="median").mean()
        plotting.line(left, steps[1:], closed[1:], label, color)
        plotting.line(right, steps[1:], np.full(len(steps) - 1, end), None, color, ":")
        for ax, name in zip((left, right), ("mean", "median"), strict=True):
            runs = select(result, noise, name=name)[:, shown]
            finite = np.isfinite(runs).all(0) & (runs.mean(0) < 1e3)
            look = {"fmt": "o", "color": color, "mfc": "white"}
            own = label if ax is right else None
            plotting.mean_points(ax, shown[finite], runs[:, finite], own, "ratio", **look)
    lowest = min(float(result[name].min()) for name in ("closed_form", "median"))
    for ax, title in zip((left, right), ("Mean over prompts", "Median over prompts"), strict=True):
        plotting.log_axes(ax, x=True, y=True, ticks=shown)
        ax.set(xlabel="times that the layer is applied", title=title, ylim=(lowest / 2, 10))
        ax.legend()
    left.set_ylabel("risk")
    noise = config.noises[-1]
    best, cost = best_length(result, noise), end_over_least(result, noise)
    return figure, (
        f"A layer trained for one step and applied k times follows the closed form of k steps of "
        f"descent (lines in a). At noise {noise:g} theory predicts that k = {best} is best. The "
        "mean risk diverges because of rare prompts; the risk of the typical prompt tends to that "
        f"of least squares (dotted in b), {np.exp(np.log(cost).mean()):.3g} times its least risk. "
        "Points are geometric means of runs."
    )


if __name__ == "__main__":
    main(__file__)
