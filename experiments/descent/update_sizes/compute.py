"""Sizes of the updates of trained layers, by shots, with a norm and without."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.descent.update_sizes.config import PAIR, SIZES, Config
from experiments.models.model import Model
from experiments.models.tasks import distribution, draw
from experiments.models.trained import trained
from lsa_lab import estimators
from lsa_lab.analyses.clipping import truncate
from lsa_lab.analyses.implicit_gd import trajectory
from lsa_lab.analyses.kernel import softmax_update
from lsa_lab.models.blocks import layer_norm


def rows_read(params, stream):  # [L, T, D] -> [L, T, D]
    """What the attention of every layer reads."""
    if params.attention_norm_scale is None:
        return stream
    return jax.vmap(layer_norm)(stream, params.attention_norm_scale, params.attention_norm_offset)


def sizes_at_query(model, clipped, prompt):  # -> {name: [L]}, squares
    """The sizes of every layer's update at the query, its heads together; ``clipped`` w_v [L]."""
    stream = model.forward(prompt).stream[:-1]  # [L, T, D]
    params = model.params

    def head(w_v, w_k, w_q, w_o, rows):  # -> |ΔW|², log Z², what is written
        update = softmax_update(w_o @ w_v, w_k, w_q, rows[:-1], rows[-1])
        keys = rows[:-1] @ w_k.T
        kernel = jnp.exp(keys @ keys.T - 2 * update.log_normaliser)
        size = (kernel * (update.values @ update.values.T)).sum()
        return size, size * jnp.exp(2 * update.log_normaliser), update.written

    def layer(w_v, w_k, w_q, w_o, rows):
        sizes, unnormalised, written = jax.vmap(head, (0, 0, 0, 0, None))(w_v, w_k, w_q, w_o, rows)
        return sizes.sum(), unnormalised.sum(), written.sum(0)

    rest, rows = (params.w_k, params.w_q, params.w_o), rows_read(params, stream)
    update, unnormalised, written = jax.vmap(layer)(params.w_v, *rest, rows)
    _, _, after = jax.vmap(layer)(clipped, *rest, rows)
    length, change = (stream[:, -1] ** 2).sum(1), ((written - after) ** 2).sum(1)
    lengths = (written**2).sum(1)
    by_name = (update, unnormalised, lengths, lengths / length, change, change / lengths)
    return dict(zip(SIZES, by_name, strict=True))


def losses(model, prompt, noise):  # -> [2]
    """Squared errors on the query's label with noise, and on the demonstrations."""

    def answer(x):
        asked = prompt.replace(x_query=x)
        return model.predict(jax.tree.map(lambda leaf: leaf[None], asked))[0]

    points = jnp.concatenate([prompt.x_query[None], prompt.x])
    labels = jnp.concatenate([prompt.y_query[None] + noise, prompt.y])
    errors = (jax.vmap(answer)(points) - labels) ** 2
    return jnp.stack([errors[0], errors[1:].mean()])


def first(batch, n):
    return batch.replace(x=batch.x[:, :n], y=batch.y[:, :n])


def clipped_values(params, rate):  # [R, L, H, k, D] -> the same
    """W_V of every layer, its heads one matrix as in A2, without its least singular values."""
    shape = params.w_v.shape
    stacked = params.w_v.reshape(*shape[:2], -1, shape[-1])
    return truncate(stacked, rate).reshape(shape)


def of_softmax(key, spec, params, config):
    """Root mean squares [R, shots, L] of every size; losses [R, 2] and excess risks [R, 2], of the
    model and of ridge regression, at the shots of training."""
    n, runs = max(spec.task.lengths), len(params.w_q)
    shots = [round(n * factor) for factor in config.factors]
    task = distribution(spec.task, max(shots))
    key_prompts, key_noise = jax.random.split(key)
    clipped = clipped_values(params, config.rate)

    def run(row):
        params, clipped, key, key_noise = row
        model, batch = Model(spec, params), draw(key, task, config.prompts)
        noise = spec.task.noise_std * jax.random.normal(key_noise, (config.prompts,))
        by_shots = [
            jax.vmap(partial(sizes_at_query, model, clipped))(first(batch, n)) for n in shots
        ]
        roots = jax.tree.map(
            lambda *squares: jnp.stack([jnp.sqrt(x.mean(0)) for x in squares]), *by_shots
        )
        own = first(batch, n)
        ridge = jax.vmap(lambda p: estimators.ridge(p, spec.task.noise_std**2 / n) @ p.x_query)(own)
        risks = jnp.stack([model.errors(own).mean(), ((ridge - own.y_query) ** 2).mean()])
        return roots, jax.vmap(partial(losses, model))(own, noise).mean(0), risks

    keys = [jax.random.split(key, runs) for key in (key_prompts, key_noise)]
    return jax.jit(partial(jax.lax.map, run))((params, clipped, *keys))


def of_linear(key, spec, params, config):  # -> [R, shots, L]
    """The root mean square of |G_t|."""
    shots = [round(max(spec.task.lengths) * factor) for factor in config.factors]
    task = distribution(spec.task, max(shots))

    def run(row):
        params, key = row
        batch = draw(key, task, config.prompts)
        updates = [jax.vmap(partial(trajectory, params))(first(batch, n)).updates for n in shots]
        return jnp.stack([jnp.sqrt((x**2).sum((2, 3)).mean(0)) for x in updates])

    keys = jax.random.split(key, len(params.w_pv))
    return jax.jit(partial(jax.lax.map, run))((params, keys))


def after_training(specs, progress):  # {name: Spec} -> [params [R', ...]] in float64, taken [S, R]
    """The seeds of which no model diverged."""
    runs = [
        trained(spec, f"update_sizes: {name}", progress=progress) for name, spec in specs.items()
    ]
    finished = np.all([each.finished[0] for each in runs], axis=0)
    params = [each.models(seeds=finished).in_float64().params for each in runs]
    return params, np.array([each.taken[0] for each in runs])


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    keys = jax.random.split(jax.random.key(config.seed), 2)
    models, taken = after_training(dict(zip(PAIR, config.pair, strict=True)), progress)
    # The same prompts for both.
    measured = [
        of_softmax(keys[0], spec, params, config)
        for spec, params in zip(config.pair, models, strict=True)
    ]
    sizes, errors, risks = jax.tree.map(lambda *leaves: np.stack(leaves), *measured)
    (stacks,), linear_taken = after_training({"linear": config.linear}, progress)
    data = {"size": (("kind", "model", "run", "factor", "layer"), np.stack([*sizes.values()]))}
    data["loss"] = (("model", "run", "on"), errors)
    data["risk"] = (("model", "run", "rule"), risks)
    linear = of_linear(keys[1], config.linear, stacks, config)
    data["linear"] = (("linear_run", "factor", "linear_layer"), np.asarray(linear))
    data["taken"] = (("model", "started"), taken)
    data["linear_taken"] = (("linear_started",), linear_taken[0])
    coordinates = {
        "kind": list(sizes),
        "model": list(PAIR),
        "factor": list(config.factors),
        "layer": np.arange(1, config.pair[0].architecture.depth + 1),
        "linear_layer": np.arange(1, config.linear.architecture.depth + 1),
        "on": ["query", "demonstrations"],
        "rule": ["model", "ridge"],
    }
    return xr.Dataset(data, coordinates)
