"""How far answers move when one matrix of a trained transformer reads or is a little else."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.clipping import trained_models
from experiments.clipping.disturbances.config import KINDS, MODULES, Config
from experiments.models.model import Model
from experiments.models.tasks import distribution
from lsa_lab.analyses import clipping


def as_matrix(name, leaf):  # one layer's leaf -> [p, q]
    """The heads of a projection are one matrix, as they are in A2."""
    if name == "w_o":
        return jnp.moveaxis(leaf, 0, 1).reshape(leaf.shape[1], -1)
    return leaf.reshape(-1, leaf.shape[-1])


def as_leaf(name, matrix, shape):
    """The leaf of one layer, of this shape, that ``as_matrix`` takes to the matrix."""
    if name == "w_o":
        heads, rows, width = shape
        return jnp.moveaxis(matrix.reshape(rows, heads, width), 1, 0)
    return matrix.reshape(shape)


def disturbed(kind, key, matrix, level):
    """W (I + level N/√q), whose output moves as if its input did by ``level``, relative, in all
    directions alike; or W + level |W|_F N/√(pq)."""
    if kind == "input":
        q = matrix.shape[1]
        noise = jax.random.normal(key, (q, q), matrix.dtype)
        return matrix + level / q**0.5 * matrix @ noise
    noise = jax.random.normal(key, matrix.shape, matrix.dtype)
    return matrix + level * jnp.linalg.norm(matrix) / matrix.size**0.5 * noise


def moves(name, spec, config, row):
    """The answers' relative mean square move [kinds], that of the clipped matrix's, whose input is
    disturbed, and the ratio of |W|_F² clipped and whole, for one matrix of one run."""
    params, batch, layer, key = row
    leaf = getattr(params, name)
    whole = as_matrix(name, leaf[layer])
    clipped = clipping.truncate(whole, config.rate)

    def answers(matrix):
        edited = leaf.at[layer].set(as_leaf(name, matrix, leaf.shape[1:]))
        return Model(spec, params.replace(**{name: edited})).predict(batch)

    def move(kind, matrix):
        before = answers(matrix)

        def of_draw(key):
            after = answers(disturbed(kind, key, matrix, config.level))
            return ((after - before) ** 2).mean()

        return jax.lax.map(of_draw, jax.random.split(key, config.draws)).mean()

    size = (answers(whole) ** 2).mean()
    kinds = jnp.stack([move(kind, whole) for kind in KINDS]) / size
    return kinds, move("input", clipped) / size, (clipped**2).sum() / (whole**2).sum()


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    spec, path, _, statuses = trained_models.transformers(config, "disturbances", progress)
    params, names = trained_models.final(path), list(MODULES.values())
    runs, depth = len(params.w_q), config.depth
    key_prompts, key_noise = jax.random.split(jax.random.key(config.seed))
    task = distribution(spec.task, dtype=jnp.float32)
    batch = trained_models.own_prompts(key_prompts, task, runs, config.prompts)
    layers = jnp.arange(depth)

    def of_run(name, row):  # -> [L, ...]
        params, batch, keys = row
        of_layer = partial(moves, name, spec, config)
        return jax.lax.map(lambda place: of_layer((params, batch, *place)), (layers, keys))

    measured = []
    for name, key in zip(names, jax.random.split(key_noise, len(names)), strict=True):
        keys = jax.random.split(key, (runs, depth))
        of_all = jax.jit(partial(jax.lax.map, partial(of_run, name)))
        measured.append(jax.tree.map(np.asarray, of_all((params, batch, keys))))
    kinds, clipped, share = jax.tree.map(lambda *leaves: np.stack(leaves, axis=2), *measured)
    matrices = clipping.matrices(params, names)
    conditions = [clipping.condition_number(matrices[name]) for name in names]
    axes = ("run", "layer", "module")
    data = {"move": ((*axes, "kind"), kinds), "clipped": (axes, clipped), "share": (axes, share)}
    data["condition"] = (axes, np.stack(conditions, axis=-1))
    data["status"] = (("trained",), statuses)
    coordinates = {"layer": np.arange(1, depth + 1), "module": list(MODULES), "kind": list(KINDS)}
    return xr.Dataset(data, coordinates)
