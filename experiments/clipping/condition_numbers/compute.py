"""Are deep layers worse conditioned, and do they tolerate more clipping?"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from experiments.clipping import trained_models
from experiments.clipping.clipped_models import spec_of
from experiments.clipping.condition_numbers.config import KINDS, MODULES, Config, Disturbed
from experiments.models.model import Model
from experiments.models.tasks import distribution
from lsa_lab.analyses import clipping
from lsa_lab.models import moments
from lsa_lab.models.matrices import matrices
from lsa_lab.store import parts


def matrix_of(name, leaf):  # one layer's leaf -> [p, q]
    """The heads of a projection are one matrix, as they are in A2."""
    if name == "w_o":
        return jnp.moveaxis(leaf, 0, 1).reshape(leaf.shape[1], -1)
    return leaf.reshape(-1, leaf.shape[-1])


def leaf_of(name, shape, matrix):
    """The leaf of one layer, of this shape, that ``matrix_of`` takes to the matrix."""
    if name == "w_o":
        heads, rows, width = shape
        return jnp.moveaxis(matrix.reshape(rows, heads, width), 1, 0)
    return matrix.reshape(shape)


def disturb(kind, key, matrix, level):
    """W (I + level N/√q), whose output moves as if its input did by ``level``, relative, in all
    directions alike; or W + level |W|_F N/√(pq)."""
    if kind == "input":
        q = matrix.shape[1]
        noise = jax.random.normal(key, (q, q), matrix.dtype)
        return matrix + level / q**0.5 * matrix @ noise
    noise = jax.random.normal(key, matrix.shape, matrix.dtype)
    return matrix + level * jnp.linalg.norm(matrix) / matrix.size**0.5 * noise


@partial(jax.jit, static_argnums=2)
@partial(jax.vmap, in_axes=(0, 0, None))
def versions(key, matrix, config):  # [R], [R, p, q] -> [R, K + 1, 1 + draws, p, q], [R]
    """The whole matrix and its disturbances of every kind, the clipped one and those of its input,
    by the same noise; and |W|_F² clipped over whole."""
    clipped, keys = clipping.truncate(matrix, config.rate), jax.random.split(key, config.draws)

    def add_noise(kind, matrix):
        noisy = jax.vmap(lambda key: disturb(kind, key, matrix, config.level))(keys)
        return jnp.concatenate([matrix[None], noisy])

    rows = [*((kind, matrix) for kind in KINDS), ("input", clipped)]
    share = (clipped**2).sum() / (matrix**2).sum()
    return jnp.stack([add_noise(*row) for row in rows]), share


def replace_matrix(params, name, layer, matrices):  # [R, ...], [R, V, p, q] -> params [R, V, ...]
    """One matrix of each run replaced by each of several."""
    shape, count = getattr(params, name).shape[2:], matrices.shape[1]
    leaves = jax.vmap(jax.vmap(partial(leaf_of, name, shape)))(matrices)
    many = jax.tree.map(lambda leaf: jnp.repeat(leaf[:, None], count, axis=1), params)
    return many.replace(**{name: getattr(many, name).at[:, :, layer].set(leaves)})


def answers_of(spec):  # (params [R, V, ...], Prompt [R, B]) -> [R, V, B]
    def answer_run(row):
        return jax.lax.map(lambda params: Model(spec, params).predict(row[1]), row[0])

    return moments.compiled(lambda *rows: jax.lax.map(answer_run, rows))


def moves_of(answers):  # [R, K + 1, 1 + draws, B] -> [R, K + 1]
    """The mean square by which answers move, over that of the answers of the whole matrix."""
    moved = ((answers[:, :, 1:] - answers[:, :, :1]) ** 2).mean((2, 3))
    return moved / (answers[:, :1, 0] ** 2).mean(-1)


def disturb_all(config: Disturbed, finished, spec):
    """The Dataset of every matrix disturbed, one at a time."""
    params = trained_models.final(trained_models.path_of(finished))
    names, runs, depth = list(MODULES.values()), len(params.w_q), spec.architecture.depth
    key_prompts, key_noise = jax.random.split(jax.random.key(config.seed))
    task = distribution(spec.task, dtype=jnp.float32)
    batch = trained_models.own_prompts(key_prompts, task, runs, config.prompts)
    answers, moves, shares = answers_of(spec), [], []
    for name, key in zip(names, jax.random.split(key_noise, len(names)), strict=True):
        keys = jax.random.split(key, (depth, runs))
        for layer in range(depth):
            whole = jax.vmap(partial(matrix_of, name))(getattr(params, name)[:, layer])
            changed, share = versions(keys[layer], whole, config)
            flat = changed.reshape(runs, -1, *whole.shape[1:])
            outcome = np.asarray(answers(replace_matrix(params, name, layer, flat), batch))
            moves.append(moves_of(outcome.reshape(*changed.shape[:3], -1)))
            shares.append(np.asarray(share))
    grid = (len(names), depth)
    by_kind = np.stack(moves).reshape(*grid, runs, -1).transpose(2, 1, 0, 3)  # [R, L, M, K + 1]
    stacks = jax.vmap(lambda params: matrices(params, names))(params)
    conditions = [clipping.condition_number(stacks[name]) for name in names]
    axes = ("run", "layer", "module")
    return xr.Dataset(
        {
            "move": ((*axes, "kind"), by_kind[..., :-1]),
            "clipped": (axes, by_kind[..., -1]),
            "share": (axes, np.stack(shares).reshape(*grid, runs).transpose(2, 1, 0)),
            "condition": (axes, np.stack(conditions, axis=-1)),
            "unclipped": ("run", trained_models.own_risks(spec, cut=False)(params, batch)),
            "status": ("trained", [str(status) for status in finished.status]),
            "ridge": ("run", trained_models.ridge_risks(batch, spec.task.noise_std)),
        },
        {"layer": np.arange(depth) + 1, "module": list(MODULES), "kind": list(KINDS)},
    )


def compute(config: Config, models, *, progress=None, checkpoints=None):
    finished, spec = models["transformer"], spec_of(config)
    path = trained_models.path_of(finished)
    params, modules = trained_models.final(path), list(MODULES.values())
    read = jax.vmap(jax.vmap(lambda params: matrices(params, modules)))
    stacks = read(path)  # each [R', P, L, p, q]
    conditions, ranks = (
        np.stack([measure(stacks[name]) for name in modules], axis=-1)
        for measure in (clipping.condition_number, clipping.stable_rank)
    )
    task = distribution(spec.task, dtype=jnp.float32)
    key = jax.random.fold_in(jax.random.key(config.seed), 2)
    batch = trained_models.own_prompts(key, task, len(params.w_q), config.prompts)
    # Ranks of risks are judged, which need no bound: answers are not cut.
    grid = dict(modules=modules, rates=(config.rate,), cut=False)
    clipped_alone = trained_models.own_curve(spec, params, batch, **grid)
    unclipped = clipped_alone.unclipped.mean[:, 0]
    ratio = 1 + clipped_alone.change.mean[:, 0, :, :, 0] / unclipped[:, None, None]
    axes = ("run", "steps", "layer", "module")
    conditioned = xr.Dataset(
        {
            "condition": (axes, conditions),
            "stable_rank": (axes, ranks),
            "ratio": (("run", "layer", "module"), ratio),
            "unclipped": (("run",), unclipped),
            "ridge": (("run",), trained_models.ridge_risks(batch, spec.task.noise_std)),
            "status": ("trained", [str(status) for status in finished.status]),
        },
        {
            "steps": finished.path_steps,
            "layer": np.arange(spec.architecture.depth) + 1,
            "module": list(MODULES),
        },
    )
    return parts.join(conditioned, disturbed=disturb_all(config.disturbed, finished, spec))
