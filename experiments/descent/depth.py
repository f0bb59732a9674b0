"""Do L trained layers predict better than L steps of gradient descent (2212.07677)?

Stacks of L layers of linear attention are trained on prompts of y = w·x + noise with E |w|² = 1.
Covariates are N(0, Σ) and w is N(0, Σ^{-1} / d), so that the best L steps of descent
w ← w + a_l Σ^{-1} Xᵀ(y - Xw)/n that all prompts share have one risk for every Σ, in closed form
(docs/theory, "The best steps at finite sizes"). GD++ moves the covariates as well, by γ_l; its 2L
numbers are tuned. Tied layers share their weights. All risks are excess risks. A training that
diverged, or is worse than the answer 0, counts as the answer 0, of risk 1.
"""

from dataclasses import dataclass
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from scipy.optimize import minimize

from experiments.descent import linear_stacks
from lsa_lab.lab import Claim, compute_each, main, plotting, stack_rows
from lsa_lab.models import constructions
from lsa_lab.models.moments import compiled, predictions_from_moments
from lsa_lab.tasks.linear import LinearTask, sample_moments_batch
from lsa_lab.theory.depth import best_descent_at

TASKS = ("white", "rotated", "noisy")  # Σ = I; U D² Uᵀ (Ahn et al.); I with noise in the labels
KINDS = ("free", "tied")


@dataclass(frozen=True)
class Config:
    d: int = 6  # covariates
    n: int = 24  # demonstrations of a prompt
    depths: tuple[int, ...] = (1, 2, 3, 4)  # layers of a stack
    tied_depth: int = 2  # times that a tied layer runs
    noise_var: float = 0.5  # of a label, in the task "noisy"
    runs: int = 24  # trainings for each task and depth
    steps_per_layer: int = 1200  # of a training; L layers are trained for L times as many
    batch: int = 128
    learning_rate: float = 0.1  # the largest of one layer; L layers have an L-th of it
    tuning_prompts: int = 20_000  # on which GD++ is tuned
    test_prompts: int = 20_000  # for each run
    seed: int = 1031


SMOKE = dict(d=2, n=6, depths=(1, 2), runs=2, steps_per_layer=10, batch=8)
TIERS = {
    "smoke": Config(**SMOKE, tuning_prompts=64, test_prompts=64, seed=1),
    "quick": Config(depths=(1, 2), runs=9, steps_per_layer=600, tuning_prompts=4000,
                    test_prompts=4000, seed=2),
    "full": Config(),
}  # fmt: skip


def list_tasks(config):  # -> [3, d, d], [3]
    """Return a root C of Σ = C Cᵀ and the standard deviation of the noise, for every task."""
    d = config.d
    rotation = np.linalg.qr(np.random.default_rng(0).standard_normal((d, d)))[0]
    rotated = rotation * np.resize([1.0, 1.0, 0.5, 0.25, 1.0], d)
    return np.stack([np.eye(d), rotated, np.eye(d)]), np.sqrt([0.0, 0.0, config.noise_var])


def draw_white(key, noise_std, config, size, dtype=float):  # -> [e, e, B], [d, B], [B]
    """Draw second moments, queries and targets of prompts with Σ = I."""
    task = LinearTask(config.n, config.d, noise_std=noise_std, weight_std=config.d**-0.5)
    return sample_moments_batch(key, task.replace(dtype=dtype), size)


def colour(batch, root):
    """Turn the covariates x of white prompts into C x; the labels stay."""
    moments, x_queries, targets = batch
    extended = jnp.pad(root, ((0, 1), (0, 1))).at[-1, -1].set(1)
    return jnp.einsum("ij,jkb,lk->ilb", extended, moments, extended), root @ x_queries, targets


draw = jax.jit(draw_white, static_argnums=(2, 3))
paint = jax.jit(colour)


def train(config, depth, kind):  # -> Params [T R, ...], which diverged [T R]
    roots, noise_stds = (np.repeat(leaf, config.runs, axis=0) for leaf in list_tasks(config))
    per_run = tuple(jnp.asarray(leaf, jnp.float32) for leaf in (roots, noise_stds))
    shape = dict(layers=depth) if kind == "free" else dict(layers=1, loops=depth)

    def sample(key, leaves):
        root, noise_std = leaves
        return colour(draw_white(key, noise_std, config, config.batch, jnp.float32), root)

    key = jax.random.fold_in(jax.random.key(config.seed), depth)
    label = f"{depth} {kind} layers"
    return linear_stacks.train(label, key, sample, per_run, config, d=config.d, **shape)


def mean_squared_error(params, batch):  # -> []
    moments, x_queries, targets = batch
    return jnp.mean((predictions_from_moments(params, moments, x_queries) - targets) ** 2)


measure_risk = compiled(mean_squared_error)


def build_plus_plus(theta, d):  # step sizes and γ [2, L] -> Params [L, ...]
    return constructions.gradient_descent_plus_plus(*theta, d)


def tune_plus_plus(config, depth, noise_std):  # -> [2, L]
    """Return the numbers of GD++ that have the least risk on one set of white prompts."""
    key = jax.random.fold_in(jax.random.key(config.seed), 1000 + depth)
    batch = draw(key, noise_std, config, config.tuning_prompts)
    objective = tuning_objective(depth, config.d)
    starts = [  # unequal step sizes: equal ones are a saddle
        np.concatenate([np.linspace(0.3, last, depth), np.full(depth, gamma)])
        for last, gamma in ((0.9, 0.1), (0.9, 0.4), (3.0, 0.4))
    ]
    ends = [minimize(objective, start, (batch,), "L-BFGS-B", jac=True) for start in starts]
    return np.reshape(min(ends, key=lambda end: end.fun).x, (2, depth))


@cache
def tuning_objective(depth, d):
    def risk(theta, batch):
        return mean_squared_error(build_plus_plus(theta.reshape(2, depth), d), batch)

    return compiled(jax.value_and_grad(risk))


def measure(config, depth, stacks, plus_plus, item):  # -> {name: []}
    """Return risks on test prompts of the run; GD++ reads the same prompts, but white."""
    task, run = item
    roots, noise_stds = list_tasks(config)
    key = jax.random.fold_in(jax.random.key(config.seed + 1), 1000 * depth + 100 * task + run)
    white = draw(key, noise_stds[task], config, config.test_prompts)
    batch, row, risks = paint(white, roots[task]), task * config.runs + run, {}
    for kind, (params, diverged) in stacks.items():
        risk = float(measure_risk(jax.tree.map(lambda leaf: leaf[row], params), batch))
        risks[kind] = risk if risk < 1 and not diverged[row] else 1.0
    return risks | {"plus_plus": float(measure_risk(plus_plus[task], white))}


def compute(config, models):
    noise_vars, rows = list_tasks(config)[1] ** 2, []
    items = [(task, run) for task in range(len(TASKS)) for run in range(config.runs)]
    for depth in config.depths:
        kinds = KINDS if depth == config.tied_depth else KINDS[:1]
        stacks = {kind: train(config, depth, kind) for kind in kinds}
        tuned = {v: tune_plus_plus(config, depth, v**0.5) for v in set(noise_vars.tolist())}
        plus_plus = [build_plus_plus(jnp.asarray(tuned[v]), config.d) for v in noise_vars.tolist()]
        function = partial(measure, config, depth, stacks, plus_plus)
        risks = compute_each(f"risks of {depth} layers", items, function)
        dims = dict.fromkeys(risks[0], ("task", "run"))
        rows.append(stack_rows(risks, dims, (len(TASKS), config.runs)))
    depths, axes = list(config.depths), ("depth", "task", "run")
    best = [best_descent_at(config.n, config.d, v, depths[-1])[depths] for v in noise_vars]
    data = {
        "risk": (axes, np.stack([row["free"][1] for row in rows])),
        "plus_plus": (axes, np.stack([row["plus_plus"][1] for row in rows])),
        "tied": rows[depths.index(config.tied_depth)]["tied"],
        "descent": (("task", "depth"), np.stack(best)),
    }
    return xr.Dataset(data, {"task": list(TASKS), "depth": depths})


def over_descent(result, task, depth):  # -> [R]
    """Return the risk of stacks over that of the best steps of descent."""
    if depth not in result["depth"]:
        return None
    return (result["risk"] / result["descent"]).sel(task=task, depth=depth).values


def over_plus_plus(result, task, depth):  # -> [R]
    if depth not in result["depth"]:
        return None
    return (result["risk"] / result["plus_plus"]).sel(task=task, depth=depth).values


def tied_over_free(result, task, depth):  # -> [R]
    if depth not in result["depth"]:
        return None
    return (result["tied"] / result["risk"].sel(depth=depth)).sel(task=task).values


FULL = TIERS["full"]
DEEP = {"task": TASKS, "depth": FULL.depths[1:]}
median = partial(Claim, statistic="median")
AS_ZERO = "a training that diverged, or is worse than the answer 0, has the risk of the answer 0"
CLAIMS = (
    median("descent", "von Oswald et al. 2212.07677",
           "On {task} prompts {depth} trained layers have less risk than the best {depth} steps of "
           "descent", "the risk of a stack over that of the best steps, in closed form",
           over_descent, at_most=1.0, over=DEEP, simultaneous=True, null="one_layer", note=AS_ZERO),
    median("one_layer", "von Oswald et al. 2212.07677",
           "On {task} prompts one trained layer has the risk of the best step of descent",
           "the risk of a layer over that of the best step, in closed form",
           partial(over_descent, depth=1), at_least=1 / 1.1, at_most=1.1, over={"task": TASKS},
           simultaneous=True, null="none: this claim is the null of another claim", note=AS_ZERO),
    median("plus_plus", "von Oswald et al. 2212.07677",
           "On {task} prompts {depth} trained layers have the risk of {depth} tuned steps of GD++",
           "the risk of a stack over that of GD++ on the same prompts",
           over_plus_plus, at_least=1 / 1.1, at_most=1.1, over=DEEP, simultaneous=True,
           null="none: the ratio is paired, and 1 without a difference", note=AS_ZERO),
    median("tied", "derived here", "On {task} prompts, without label noise, two layers that share "
           "their weights have more risk than two free ones", "the risk of a tied stack over that "
           "of a free one", partial(tied_over_free, depth=2), at_least=1.0,
           over={"task": TASKS[:2]}, simultaneous=True, null="none: the ratio is paired, and 1 "
           "without a difference", note=AS_ZERO),
    median("tied_noisy", "derived here", f"With label noise of variance {FULL.noise_var:g} two "
           "layers that share their weights have at most 1.1 times the risk of free ones",
           "the risk of a tied stack over that of a free one",
           partial(tied_over_free, task="noisy", depth=2), at_most=1.1,
           null="none: the ratio is paired, and 1 without a difference", note=AS_ZERO),
)  # fmt: skip


def plot(result, config):  # -> Figure, caption
    figure, (left, right) = plotting.figure(6.75, 2.7, (1, 2), width_ratios=(1.8, 1))
    depths = result["depth"].values
    for i, (task, look) in enumerate(LOOKS.items()):
        ratios = (result["risk"] / result["descent"]).sel(task=task).transpose("depth", "run")
        for depth, runs in zip(depths, ratios.values, strict=True):
            places = depth + 0.2 * (i - 1) + 0.06 * np.linspace(-1, 1, len(runs))
            label = f"trained, {task}" if depth == depths[0] else None
            left.plot(places, runs, label=label, **look, **DOTS)
    for task, style in (("white", "-"), ("noisy", ":")):
        gains = (result["plus_plus"].mean("run") / result["descent"]).sel(task=task)
        color = plotting.METHOD["GD++"]["color"]
        plotting.line(left, depths, gains.sel(depth=depths), f"GD++, {task}", color, style)
    left.axhline(1, color=plotting.METHOD["descent"]["color"], lw=1.2, label="best descent")
    plotting.log_axes(left, y=True)
    left.set(xticks=depths, xlabel="layers, or steps", ylabel="risk / that of the best descent")
    left.set_title("Risk by depth")
    left.legend(loc="lower left")
    for i, (task, look) in enumerate(LOOKS.items()):
        runs = tied_over_free(result, task, 2)
        right.plot(i + 0.25 * np.linspace(-1, 1, len(runs)), runs, **look, **DOTS)
        right.plot(i, np.median(runs), "_", color="black", ms=16)
    right.axhline(1, color="grey", lw=0.8, ls=":")
    plotting.log_axes(right, y=True)
    right.set_xticks(range(len(TASKS)), TASKS)
    right.set(ylabel="risk, tied / free", title="Two tied layers", xlim=(-0.6, 2.6))
    last = config.depths[-1]
    white, noisy = (float(np.median(over_descent(result, t, last))) for t in ("white", "noisy"))
    failed = int((result["risk"] >= 1).sum() + (result["tied"] >= 1).sum())
    return figure, (
        f"The median stack of {last} layers has {white:.2g} times the risk of the best {last} "
        f"steps of descent on white prompts without noise, and {noisy:.2g} times with noise. "
        f"Each point is one of {config.runs} trainings. {failed} of "
        f"{result['risk'].size + result['tied'].size} trainings failed and count as the answer 0."
    )


LOOKS = plotting.looks(TASKS, "os^", (plotting.BLUE, plotting.SKY, plotting.VERMILION))
DOTS = dict(ls="", mfc="none", ms=3, mew=0.6)


if __name__ == "__main__":
    main(__file__)
