"""What does one trained layer do with covariates that are not those of its training?"""

from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax

from experiments import style
from experiments.configs.covariate_shift import TIERS, Config
from lsa_lab import estimators, results
from lsa_lab.claims import about_the_mean, mean_interval
from lsa_lab.models import linear_attention, moments
from lsa_lab.prompts import second_moment
from lsa_lab.tasks import tables
from lsa_lab.tasks.linear import LinearTask, sample
from lsa_lab.theory import optimum
from lsa_lab.training import fit

__all__ = ["TIERS", "Config", "claims", "compute", "plot"]

SHIFTS = (1.0, 3.0)  # scales at which the length of the test prompt varies
LEARNERS = ("trained layer", "gradient descent", "ridge", "mean")  # on the table
PIECE = 500  # prompts tested at a time


def train(config, d, key, **fitting):
    """Layers trained on covariates from N(0, I_d), without noise."""
    key_init, key_data = jax.random.split(key)
    task = LinearTask(config.n, d, dtype=jnp.float32)
    init = partial(linear_attention.init, num_layers=1, num_heads=1, d=d, dtype=jnp.float32)
    steps, peak = config.steps, config.learning_rate
    return fit(
        lambda params, batch: errors(moments.predictions(params, batch), batch).mean(),
        jax.vmap(partial(init, scale=config.init_scale))(jax.random.split(key_init, config.runs)),
        optax.adam(optax.warmup_cosine_decay_schedule(0.0, peak, steps // 20, steps)),
        lambda key: jax.vmap(partial(sample, task=task))(jax.random.split(key, config.batch)),
        jax.random.split(key_data, config.runs),
        steps,
        label=f"covariate_shift: d = {d}",
        identity=repr(config),
        **fitting,
    )


def errors(predictions, prompts):  # -> [B]
    return (predictions - prompts.y_query) ** 2


def descend(prompts, steps):  # -> [B]
    """Predictions of gradient descent from 0 with each prompt's own step size 1/λ_max(H)."""

    def one(prompt):
        largest = jnp.linalg.eigvalsh(prompt.x.T @ prompt.x / len(prompt.x))[-1]
        path = estimators.gradient_descent(prompt, jnp.full(steps, 1 / largest))
        return path[-1] @ prompt.x_query

    return jax.vmap(one)(prompts)


def shorten(prompts, m):
    return prompts.replace(x=prompts.x[:, :m], y=prompts.y[:, :m])


def cases(config):
    """(c, m): m demonstrations with covariates from N(0, cI)."""
    return [(c, config.n) for c in config.scales] + [(c, m) for c in SHIFTS for m in config.lengths]


@partial(jax.jit, static_argnames="config")
def evaluate(params, key, config):  # -> [cases], [], [scales]
    """Risks / tr Λ' of one run's layer, of predicting zero, and of descent, on the same prompts.

    Without noise a prompt of scale c is one of scale 1 times √c; short prompts begin long ones.
    """
    task = LinearTask(max(config.n, *config.lengths), config.d)
    pieces = -(-config.test_prompts // PIECE)

    def piece(keys):
        prompts = jax.vmap(partial(sample, task=task))(keys)
        lengths = {m for _, m in cases(config)}
        moment = {m: jax.vmap(second_moment, out_axes=-1)(shorten(prompts, m)) for m in lengths}

        def layer(c, m):
            query, target = c**0.5 * prompts.x_query.T, c**0.5 * prompts.y_query
            guess = moments.predictions_from_moments(params, c * moment[m], query)
            return jnp.mean((guess - target) ** 2) / c

        def descent(c):
            test = jax.tree.map(lambda leaf: c**0.5 * leaf, shorten(prompts, config.n))
            return errors(descend(test, config.descent_steps), test).mean() / c

        layers = jnp.stack([layer(c, m) for c, m in cases(config)])
        return layers, jnp.mean(prompts.y_query**2), jax.lax.map(descent, jnp.array(config.scales))

    keys = jax.random.split(key, (pieces, -(-config.test_prompts // pieces)))
    return jax.tree.map(lambda one: one.mean(0) / config.d, jax.lax.map(piece, keys))


@partial(jax.jit, static_argnames=("lengths", "steps"))
def table_errors(layers, prompts, lengths, steps):  # -> [learners, lengths, B]
    """Squared errors on the table; of the trained layers, their mean over the runs."""

    def at(m):
        short = shorten(prompts, m)
        layer = jax.lax.map(
            lambda params: errors(moments.predictions(params, short), short), layers
        )
        # Bayes for w ~ N(0, I/d) where half of the variance of y is noise.
        weights = jax.vmap(partial(estimators.ridge, penalty=short.x.shape[2] / m))(short)
        others = (
            descend(short, steps),
            (weights * short.x_query).sum(1),
            jnp.zeros_like(short.y_query),
        )
        return jnp.stack([layer.mean(0), *(errors(guess, short) for guess in others)])

    return jnp.stack([at(m) for m in lengths], axis=1)


def theory(config, scales, lengths):
    """Risk / tr Λ' of A = Γ^{-1} from (I, n), at scales c and lengths m; m = ∞ is the floor."""
    identity = jnp.eye(config.d)
    best = optimum.one_layer(identity, identity, config.n, 0.0)

    def at(c, m):
        law = (c * identity, c * identity, identity)
        return optimum.shifted_risk(best, *law, m, 0.0) / (c * config.d)

    return jax.vmap(at)(*jnp.broadcast_arrays(jnp.asarray(scales), jnp.asarray(lengths, float)))


def compute(config: Config, *, progress=None, checkpoints: Path | None = None):
    import xarray as xr

    keys = jax.random.split(jax.random.key(config.seed), 4)
    table = tables.load_diabetes(float)
    layers, status = [], []
    for name, key, d in (("gaussian", keys[0], config.d), ("table", keys[1], table.x.shape[1])):
        checkpoint = checkpoints and checkpoints / f"{name}.ckpt"
        run = train(config, d, key, progress=progress, checkpoint=checkpoint)
        layers.append(jax.tree.map(lambda leaf: leaf.astype(float), run.params))
        status.append([str(one) for one in run.status])
    found = [
        evaluate(jax.tree.map(lambda leaf, r=r: leaf[r], layers[0]), key, config)
        for r, key in enumerate(jax.random.split(keys[2], config.runs))
    ]
    risk, zero, descent = (np.stack(one) for one in zip(*found, strict=True))
    lengths = tuple(sorted({config.n, *config.table_lengths}))
    draw = partial(tables.sample, table=table, n=max(lengths))
    prompts = jax.vmap(draw)(jax.random.split(keys[3], config.table_prompts))
    scales = np.geomspace(min(config.scales), max(config.scales), 60)
    m = np.geomspace(min(config.lengths), max(config.lengths), 60)
    return xr.Dataset(
        {
            "risk": (("run", "case"), risk),
            "zero": ("run", zero),
            "descent": (("run", "scale"), descent),
            "theory": ("case", theory(config, *zip(*cases(config), strict=True))),
            "scale_theory": ("c", theory(config, scales, config.n)),
            "scale_floor": ("c", theory(config, scales, np.inf)),
            "length_theory": (("shift", "m"), [theory(config, c, m) for c in SHIFTS]),
            "length_floor": ("shift", theory(config, SHIFTS, np.inf)),
            "table_error": (
                ("learner", "table_length", "prompt"),
                np.float32(table_errors(layers[1], prompts, lengths, config.descent_steps)),
            ),
            "status": (("layer", "run"), np.array(status)),
        },
        {
            "scale": list(config.scales),
            "shift": list(SHIFTS),
            "c": scales,
            "m": m,
            "learner": list(LEARNERS),
            "table_length": list(lengths),
            "layer": ["gaussian", "table"],
        },
    )


def plot(dataset):
    settings = results.settings(dataset)
    drawn, axes = style.figure(9.0, 3.5, (1, 3))
    blue, red, green = style.COLOURS[:3]
    first, length = len(settings.scales), np.asarray(settings.lengths)
    ax = axes[0]
    style.line(ax, dataset.c, dataset.scale_theory, f"theory, m = n = {settings.n}")
    style.line(ax, dataset.c, dataset.scale_floor, "theory, m = ∞", style="--")
    lost = style.band(ax, settings.scales, dataset.risk[:, :first], "trained layer")
    lost += style.band(ax, settings.scales, dataset.descent, "descent", red, "s")
    ax.set(xlabel="scale c of the covariates", ylabel="risk / tr Λ'")
    style.log_axes(ax, x=True, y=True, ticks=settings.scales)
    ax.set_ylim(bottom=float(dataset.descent.min()) / 2)  # the floor has a zero
    ax = axes[1]
    for i, (c, color) in enumerate(zip(SHIFTS, (blue, green), strict=True)):
        start = first + i * len(length)
        style.line(ax, dataset.m, dataset.length_theory[i], None, color)
        ax.axhline(float(dataset.length_floor[i]), color=color, ls="--", lw=0.8)
        values = dataset.risk[:, start : start + len(length)]
        lost += style.band(ax, length, values, f"trained layer, c = {c:g}", color)
    ax.set(xlabel="demonstrations m at the test", ylabel="risk / tr Λ'")
    style.log_axes(ax, x=True, y=True, ticks=length)
    ax = axes[2]
    for name, color, marker in zip(LEARNERS, (blue, red, green), style.MARKERS, strict=False):
        there = dataset.table_error.sel(learner=name)
        ends = np.array([mean_interval(row) for row in there.values]).T
        middle = there.mean("prompt").values
        bars = {"yerr": np.abs(ends - middle), "capsize": 2}
        ax.errorbar(there.table_length, middle, fmt=f"{marker}-", color=color, label=name, **bars)
    ax.set(xlabel="demonstrations m at the test", ylabel="squared error / variance")
    style.log_axes(ax, x=True, ticks=dataset.table_length.values)
    for ax, title in zip(
        axes, ("another scale", "more demonstrations", "a real table"), strict=True
    ):
        ax.axhline(1.0, color="grey", lw=0.8, ls=":", label="predicting zero")
        ax.set_title(title)
        ax.legend()
    worst, table = float(dataset.length_floor[-1]), dataset.table_error.mean("prompt")
    trained, descent = (float(table.sel(learner=m, table_length=settings.n)) for m in LEARNERS[:2])
    style.caption(
        drawn,
        f"One layer trained on N(0, I) covariates with n = {settings.n}. a, b: d = {settings.d}; "
        f"lines are theory, dashes its floor with unlimited demonstrations ({worst:.2g} at "
        f"c = {SHIFTS[-1]:g}); points the median of {settings.runs} runs and the middle 80 % of "
        f"them; {lost} left out as not finite. c: diabetes table, means with 95 % intervals over "
        f"prompts; at m = n the layer's error is {trained:.3g}, that of descent {descent:.3g}. "
        f"Descent: {settings.descent_steps} steps of each prompt's own 1/λ_max.",
    )
    return drawn


def claims(dataset):
    settings = results.settings(dataset)
    ratios = (dataset.risk / dataset.theory).transpose("case", "run").values
    drift = dataset.descent.max("scale") / dataset.descent.min("scale") - 1
    table = dataset.table_error.sel(table_length=settings.n).astype(float)
    layer, descent, _, mean = table.transpose("learner", "prompt").values
    band, source = settings.theory_ratio, "derived here from Zhang et al. 2306.09927"
    return [
        about_the_mean(
            "covariate_shift.theory",
            source,
            "At other scales and lengths the trained layer has the risk that theory gives Γ^{-1}",
            f"mean measured / predicted risk, at the worst scale and length, within 1 ± {band}",
            max(ratios, key=lambda runs: abs(runs.mean() - 1)),
            at_least=1 - band,
            at_most=1 + band,
        ),
        about_the_mean(
            "covariate_shift.floor",
            source,
            f"At scale {SHIFTS[-1]:g} even the longest prompt leaves it worse than predicting zero",
            f"(risk - risk of zero) / tr Λ', same prompts, m = {settings.lengths[-1]} >= 0",
            dataset.risk.isel(case=-1) - dataset.zero,
            at_least=0.0,
        ),
        about_the_mean(
            "covariate_shift.descent",
            "derived here",
            "Descent with each prompt's own step size does not feel the scale",
            f"its largest risk / tr Λ' over its smallest, less one <= {settings.descent_drift}",
            drift,
            at_most=settings.descent_drift,
        ),
        about_the_mean(
            "covariate_shift.table",
            "derived here",
            "A layer trained on isotropic Gaussians beats the mean on the diabetes table",
            f"its squared error - the mean's, over common prompts of m = n = {settings.n} <= 0",
            layer - mean,
            at_most=0.0,
        ),
        about_the_mean(
            "covariate_shift.table_descent",
            "derived here",
            "On that table descent with each prompt's own step size beats the trained layer",
            f"the layer's squared error - descent's, over common prompts of m = {settings.n} >= 0",
            layer - descent,
            at_least=0.0,
        ),
    ]
