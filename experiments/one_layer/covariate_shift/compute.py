"""Layers trained at one scale and length, tested at others and on a table, beside theory."""

from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax

from experiments.one_layer.covariate_shift.config import LEARNERS, SHIFTS, Config, cases
from experiments.one_layer.covariate_shift.risks import errors, shifted_risks, table_errors
from lsa_lab.models import linear_attention, moments
from lsa_lab.tasks import tables
from lsa_lab.tasks.linear import LinearTask, sample
from lsa_lab.theory import optimum
from lsa_lab.training import Files, Training, fit
from lsa_lab.training.status import refuse_divergence


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
        label=f"covariate_shift: d = {d}",
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


def run_risks(layers, key, config):  # -> [R, cases], [R], [R, scales]
    """``shifted_risks`` of every run, each on prompts of its own."""
    risks = [
        shifted_risks(jax.tree.map(lambda leaf, r=r: leaf[r], layers), key, config)
        for r, key in enumerate(jax.random.split(key, config.runs))
    ]
    return tuple(np.stack(values) for values in zip(*risks, strict=True))


def table_risks(layers, table, key, config):  # -> lengths, [learners, lengths, G]
    """Squared errors on a real table, averaged over prompts from the rows of each group.

    Prompts of one group share rows; the groups, disjoint samples of patients, are independent.
    """
    lengths = tuple(sorted({config.n, *config.table_lengths}))
    key_groups, key_prompts = jax.random.split(key)
    groups = split(table, config.table_groups, key_groups)
    grid = (config.table_groups, config.table_prompts)
    draw = jax.vmap(partial(tables.sample, n=max(lengths)), (0, None))
    prompts = jax.vmap(draw)(jax.random.split(key_prompts, grid), groups)
    prompts = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), prompts)
    errors = table_errors(layers, prompts, lengths, config.descent_steps)
    return lengths, errors.reshape(*errors.shape[:2], *grid).mean(-1)


def split(table, count, key):  # -> Table [G, rows]
    """Groups of equally many rows, none in two of them; what is left over is in none."""
    size = len(table.y) // count
    rows = jax.random.permutation(key, len(table.y))[: count * size].reshape(count, size)
    return jax.tree.map(lambda column: column[rows], table)


def compute(config: Config, *, progress=None, checkpoints: Path | None = None):
    import xarray as xr

    keys = jax.random.split(jax.random.key(config.seed), 4)
    table = tables.load_diabetes(float)
    layers, status = [], []
    for name, key, d in (("gaussian", keys[0], config.d), ("table", keys[1], table.x.shape[1])):
        checkpoint = checkpoints and checkpoints / f"{name}.ckpt"
        run = train(config, d, key, progress, checkpoint)
        layers.append(jax.tree.map(lambda leaf: leaf.astype(float), run.params))
        refuse_divergence(run.status, f"the {name} layer", checkpoint)
        status.append([str(end) for end in run.status])
    risk, zero, descent = run_risks(layers[0], keys[2], config)
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
