"""Layers trained at one scale and length, tested at others and on a table, beside theory."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr

from experiments.one_layer.one_layer_optimum.config import LEARNERS, SHIFTS, Shift, cases
from lsa_lab import estimators
from lsa_lab.models import linear_attention, moments
from lsa_lab.prompts import second_moment
from lsa_lab.tasks import tables
from lsa_lab.tasks.linear import LinearTask, sample
from lsa_lab.theory import optimum
from lsa_lab.training import Files, Training, fit
from lsa_lab.training.status import refuse_divergence

PIECE = 500  # prompts tested at a time


def errors(predictions, prompts):  # -> [B]
    return (predictions - prompts.y_query) ** 2


def descend(prompts, steps):  # -> [B]
    """Predictions of gradient descent from 0 with each prompt's own step size 1/λ_max(H)."""

    def predict(prompt):
        step_sizes = jnp.full(steps, estimators.largest_step(prompt.x))
        return estimators.gradient_descent(prompt, step_sizes)[-1] @ prompt.x_query

    return jax.vmap(predict)(prompts)


def shorten(prompts, m):
    """The prompts with their first m demonstrations."""
    return prompts.replace(x=prompts.x[:, :m], y=prompts.y[:, :m])


@partial(jax.jit, static_argnames="config")
def shifted_risks(params, key, config):  # -> [cases], [], [scales]
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
    return jax.tree.map(lambda risk: risk.mean(0) / config.d, jax.lax.map(piece, keys))


@partial(jax.jit, static_argnames=("lengths", "steps"))
def table_errors(layers, prompts, lengths, steps):  # -> [learners, lengths, B]
    """Squared errors on the table; of the trained layers, their mean over the runs."""

    def learners(m):
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

    return jnp.stack([learners(m) for m in lengths], axis=1)


def train(config, d, key, progress, checkpoint):
    """Layers trained on covariates from N(0, I_d), without noise."""
    key_init, key_data = jax.random.split(key)
    draw = partial(sample, task=LinearTask(config.n, d, dtype=jnp.float32))
    init = partial(linear_attention.init, num_layers=1, num_heads=1, d=d, dtype=jnp.float32)
    steps, peak = config.steps, config.learning_rate
    training = Training(
        loss=lambda params, batch: errors(moments.predictions(params, batch), batch).mean(),
        sample=lambda key: jax.vmap(draw)(jax.random.split(key, config.batch)),
        optimizer=optax.adam(optax.warmup_cosine_decay_schedule(0.0, peak, steps // 20, steps)),
        steps=steps,
        label=f"one_layer_optimum, shift: d = {d}",
    )
    return fit(
        training,
        jax.vmap(partial(init, scale=config.init_scale))(jax.random.split(key_init, config.runs)),
        jax.random.split(key_data, config.runs),
        files=Files(checkpoint, identity=repr(config)),
        progress=progress,
    )


def theory(config, scales, lengths):
    """Risk / tr Λ' of A = Γ^{-1} from (I, n), at scales c and lengths m; m = ∞ is the floor."""
    identity = jnp.eye(config.d)
    best = optimum.one_layer(identity, identity, config.n, 0.0)

    def risk(c, m):
        shifted = (c * identity, c * identity, identity)
        return optimum.shifted_risk(best, *shifted, m, 0.0) / (c * config.d)

    return jax.vmap(risk)(*jnp.broadcast_arrays(jnp.asarray(scales), jnp.asarray(lengths, float)))


def table_risks(layers, table, key, config):  # -> lengths, [learners, lengths, G]
    """Squared errors on a real table, averaged over prompts from the rows of each group.

    Prompts of one group share rows; the groups, disjoint samples of patients, are independent.
    """
    lengths = tuple(sorted({config.n, *config.table_lengths}))
    key_groups, key_prompts = jax.random.split(key)
    grid, size = (config.table_groups, config.table_prompts), len(table.y) // config.table_groups
    rows = jax.random.permutation(key_groups, len(table.y))[: grid[0] * size]  # the rest is in none
    groups = jax.tree.map(lambda column: column[rows.reshape(-1, size)], table)
    draw = jax.vmap(partial(tables.sample, n=max(lengths)), (0, None))
    prompts = jax.vmap(draw)(jax.random.split(key_prompts, grid), groups)
    prompts = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), prompts)
    errors = table_errors(layers, prompts, lengths, config.descent_steps)
    return lengths, errors.reshape(*errors.shape[:2], *grid).mean(-1)


def train_and_shift(config: Shift, progress, checkpoints):
    """The Dataset of layers trained at one scale and length, tested at others and on a table."""
    keys = jax.random.split(jax.random.key(config.seed), 4)
    table = tables.load_diabetes(float)
    layers, status = [], []
    for name, key, d in (("gaussian", keys[0], config.d), ("table", keys[1], table.x.shape[1])):
        checkpoint = checkpoints and checkpoints / f"{name}.ckpt"
        run = train(config, d, key, progress, checkpoint)
        layers.append(jax.tree.map(lambda leaf: leaf.astype(float), run.params))
        refuse_divergence(run.status, f"the {name} layer", checkpoint)
        status.append([str(end) for end in run.status])
    risks = [  # of every run, each on prompts of its own
        shifted_risks(jax.tree.map(lambda leaf, r=r: leaf[r], layers[0]), key, config)
        for r, key in enumerate(jax.random.split(keys[2], config.runs))
    ]
    risk, zero, descent = map(np.stack, zip(*risks, strict=True))
    lengths, table_error = table_risks(layers[1], table, keys[3], config)
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
            "table_error": (("learner", "table_length", "group"), table_error),
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
