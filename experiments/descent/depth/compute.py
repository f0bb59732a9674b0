"""L layers trained on two covariances beside L tuned steps of known algorithms."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from experiments.descent.depth.config import ALGORITHMS, COVARIANCES, Config
from experiments.descent.depth.settled import left_to_gain
from experiments.descent.depth.stacks import tied, train, turned_part
from experiments.descent.depth.tuned import (
    algorithm_errors,
    covariance,
    draw,
    errors_of_each,
    tune,
)
from lsa_lab.store import parts
from lsa_lab.theory.depth import best_descent_at
from lsa_lab.training.status import refuse_divergence


def shape_distances(params, sigmas):  # -> [2, C * R, L]
    """|M - (tr M / d) I|_F / |M|_F of Σ^{1/2} A Σ^{1/2} and of B (Ahn et al.)."""
    values, vectors = jnp.linalg.eigh(sigmas)  # sqrtm rests on Schur's form, which no GPU has
    roots = (vectors * jnp.sqrt(values)[:, None]) @ vectors.swapaxes(1, 2)

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
    squared = np.empty((len(ALGORITHMS), 2, depths, config.test_prompts))
    trained, left = np.empty((2, 2, depths, runs))
    distances = np.full((2, 2, depths, runs, depths), np.nan)
    status = []
    for depth in range(1, depths + 1):
        tuned = tune(config, depth, sigmas, key_tuning)
        run = train(config, depth, sigmas, key_training, progress, checkpoints)
        refuse_divergence(run.status, f"{depth} layers")
        params = jax.tree.map(lambda leaf: leaf.astype(sigmas.dtype), run.params)
        for c, test in enumerate(tests):
            squared[:, c, depth - 1] = algorithm_errors(tuned, c, test)
            ours = jax.tree.map(lambda leaf, c=c: leaf[c * runs : (c + 1) * runs], params)
            trained[c, depth - 1] = errors_of_each(ours, test).mean(1)
            left[c, depth - 1] = left_to_gain(ours, test)
        both = shape_distances(params, jnp.repeat(sigmas, runs, axis=0))
        distances[:, :, depth - 1, :, :depth] = both.reshape(2, 2, runs, depth)
        status.append(np.reshape([str(end) for end in run.status], (2, runs)))
    lost, axes = squared[1] - squared[0], ("covariance", "depth")
    whole = xr.Dataset(
        {
            "trained_risk": ((*axes, "run"), trained),
            "left_to_gain": ((*axes, "run"), left),
            "algorithm_risk": (("algorithm", *axes), squared.mean(-1)),
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
    looped, turns = (part(config, progress, checkpoints) for part in (tied, turned_part))
    return parts.join(whole, closed=closed_form(config), tied=looped, turned=turns)


def closed_form(config):
    """The risk of the best L steps at the identity covariance, w ~ N(0, I), without a fit."""
    import xarray as xr

    risks = config.d * best_descent_at(config.n, config.d, 0.0, config.closed.most_steps)
    return xr.Dataset({"risk": ("depth", risks[1:])}, {"depth": np.arange(1, len(risks))})
