"""Sizes of the updates of trained layers, softmax and linear, by the number of demonstrations."""

from functools import partial

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jax import Array

from experiments.descent.norms_and_updates.config import SIZES, ByShots
from experiments.models.model import Model
from experiments.models.tasks import distribution, draw
from lsa_lab import estimators
from lsa_lab.analyses.clipping import truncate
from lsa_lab.analyses.implicit_gd import trajectory
from lsa_lab.analyses.kernel import softmax_update


class Balanced(flax.struct.PyTreeNode):
    """Where one head's keys are measured from, and by which inner product.

    W_K → A W_K with W_Q → A⁻ᵀ W_Q, and one vector added to all keys, leave a softmax head alone,
    but not κ(k_i, k_j) = exp(k_i · k_j), nor the size of an update in the feature space of κ. Of
    all such keys these have mean zero and the second moments of the queries; rotations are left.
    """

    mean: Array  # [k]
    metric: Array  # [k, k]  AᵀA of the change of keys that balances them


def balanced(keys, queries):  # [N, k], [M, k] -> Balanced
    """Keys and queries of one head over many prompts, as they are read.

    With K and Q their second moments the metric G solves G K G = Q: it is the geometric mean of Q
    and K⁻¹. A direction of the keys that no query reads has no length in it.
    """
    mean = keys.mean(0)
    of_keys = _power((keys - mean[None]).T @ (keys - mean[None]) / len(keys), 0.5)
    of_queries = queries.T @ queries / len(queries)
    inverse = _power(of_keys, -1.0)
    middle = _power(of_keys @ of_queries @ of_keys, 0.5)
    return Balanced(mean, inverse @ middle @ inverse)


def _power(matrix, exponent):  # [k, k], symmetric, none of whose eigenvalues is negative
    values, vectors = jnp.linalg.eigh((matrix + matrix.T) / 2)
    seen = values > 1e-12 * values.max()
    powers = jnp.where(seen, jnp.where(seen, values, 1.0) ** exponent, 0.0)
    return (vectors * powers[None]) @ vectors.T


def head_sizes(w_v, w_k, w_q, w_o, rows, form=None):  # |ΔW|², Z² |ΔW|², what is written
    """|Σ_i v_i φ(k_i)ᵀ|_F² / Z² = Σ_ij κ(k_i, k_j) v_i · v_j / Z² in the feature space of the
    kernel κ (A2, A.2), read at the last of the rows [T, D] that a layer reads.

    Keys are taken as the weights have them, or as ``form`` has them.
    """
    update = softmax_update(w_o @ w_v, w_k, w_q, rows[:-1], rows[-1])
    keys, log_normaliser = rows[:-1] @ w_k.T, update.log_normaliser
    read = keys
    if form is not None:
        log_normaliser -= form.mean @ (w_q @ rows[-1])
        keys = keys - form.mean[None]
        read = keys @ form.metric
    kernel = jnp.exp(read @ keys.T - 2 * log_normaliser)
    size = (kernel * (update.values @ update.values.T)).sum()
    return size, size * jnp.exp(2 * log_normaliser), update.written


def layer_sizes(params, rows, form=None):  # -> |ΔW|² [L], Z² |ΔW|² [L], what is written [L, D]
    """The sizes of every layer, its heads together, that reads the rows [L, T, D], with keys as
    ``form`` [L, H, ...] has them."""
    sizes = jax.vmap(jax.vmap(head_sizes, (0, 0, 0, 0, None, 0)))
    every = sizes(params.w_v, params.w_k, params.w_q, params.w_o, rows, form)
    return [each.sum(1) for each in every]


def sizes_by_name(model, clipped, prompt):  # -> {name: [L]}, squares
    """The sizes of every layer's update at the query; ``clipped`` w_v [L]."""
    stream, params = model.forward(prompt).stream[:-1], model.params  # [L, T, D]
    update, unnormalised, written = layer_sizes(params, stream)
    _, _, after = layer_sizes(params.replace(w_v=clipped), stream)
    length, change = (written**2).sum(1), ((written - after) ** 2).sum(1)
    by_name = (update, unnormalised, length, change, change / length)
    return dict(zip(SIZES, by_name, strict=True))


def typical(squares):  # [B, L] -> [L]
    """The median over prompts of a size, from its squares."""
    return jnp.sqrt(jnp.median(squares, axis=0))


def first(batch, n):
    return batch.replace(x=batch.x[:, :n], y=batch.y[:, :n])


def clipped_values(params, rate):  # [R, L, H, k, D] -> the same
    """W_V of every layer, its heads one matrix as in A2, without its least singular values."""
    shape = params.w_v.shape
    stacked = params.w_v.reshape(*shape[:2], -1, shape[-1])
    return truncate(stacked, rate).reshape(shape)


def measure_softmax(key, spec, params, config):
    """Typical values [R, shots, L] of every size, and at the shots of training the excess risks
    [R, 2] of the model and of ridge regression."""
    n, runs = max(spec.task.lengths), len(params.w_q)
    shots = [round(n * factor) for factor in config.factors]
    task = distribution(spec.task, max(shots))

    def run(row):
        params, clipped, key = row
        model, batch = Model(spec, params), draw(key, task, config.prompts)
        measure = jax.vmap(partial(sizes_by_name, model, clipped))
        by_shots = [measure(first(batch, n)) for n in shots]
        roots = jax.tree.map(lambda *squares: jnp.stack([typical(x) for x in squares]), *by_shots)
        own = first(batch, n)
        ridge = jax.vmap(lambda p: estimators.ridge(p, spec.task.noise_std**2 / n) @ p.x_query)(own)
        risks = jnp.stack([model.errors(own).mean(), ((ridge - own.y_query) ** 2).mean()])
        return roots, risks

    rows = params, clipped_values(params, config.rate), jax.random.split(key, runs)
    return jax.jit(partial(jax.lax.map, run))(rows)


def measure_stacks(key, spec, params, config):  # -> [R, shots, L]
    """The typical |G_t|."""
    shots = [round(max(spec.task.lengths) * factor) for factor in config.factors]
    task = distribution(spec.task, max(shots))

    def run(row):
        params, key = row
        batch = draw(key, task, config.prompts)
        updates = [jax.vmap(partial(trajectory, params))(first(batch, n)).updates for n in shots]
        return jnp.stack([typical((x**2).sum((2, 3))) for x in updates])

    keys = jax.random.split(key, len(params.w_pv))
    return jax.jit(partial(jax.lax.map, run))((params, keys))


def measure_by_shots(config: ByShots, softmax, stacks):
    """The Dataset of both kinds of trained runs."""
    keys = jax.random.split(jax.random.key(config.seed), 2)
    params = [
        runs.models(seeds=runs.finished[0]).cast_float64().params for runs in (softmax, stacks)
    ]
    sizes, risks = measure_softmax(keys[0], softmax.spec, params[0], config)
    linear = measure_stacks(keys[1], stacks.spec, params[1], config)
    data = {
        "size": (("kind", "run", "factor", "layer"), np.stack([*sizes.values()])),
        "risk": (("run", "rule"), np.asarray(risks)),
        "linear": (("linear_run", "factor", "linear_layer"), np.asarray(linear)),
        "taken": (("started",), softmax.steps_completed[0]),
        "linear_taken": (("linear_started",), stacks.steps_completed[0]),
    }
    coordinates = {
        "kind": list(sizes),
        "factor": list(config.factors),
        "layer": np.arange(1, softmax.spec.architecture.depth + 1),
        "linear_layer": np.arange(1, stacks.spec.architecture.depth + 1),
        "rule": ["model", "ridge"],
    }
    return xr.Dataset(data, coordinates)
