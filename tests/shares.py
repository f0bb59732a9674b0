"""What several processes compute together in ``test_processes``."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

from lsa_lab.store import checkpoints
from lsa_lab.store.grids import grid
from lsa_lab.training import Files, Training, fit


def computed(folder):
    """Digests of eight runs in groups of three, and of a grid."""
    runs, keys = (
        jax.random.normal(jax.random.key(0), (8, 3)),
        jax.random.split(jax.random.key(1), 8),
    )
    recipe = Training(
        lambda params, batch: ((params[None] - batch) ** 2).mean(),
        lambda key: jax.random.normal(key, (50, 3)),
        optax.adam(0.1),
        steps=40,
    )
    files = Files(checkpoint=f"{folder}/fit.ckpt", log=f"{folder}/log.jsonl")
    run = fit(recipe, runs, keys, files=files, width=3, chunk=10, watch=jnp.sum)
    cells = grid([(i, 0.5) for i in range(3)], lambda cell: {"a": np.sqrt(cell)}, f"{folder}/grid")
    return checkpoints.digest((run.params, run.history)), checkpoints.digest(cells)
