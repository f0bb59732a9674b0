"""L layers trained on two covariances beside L tuned steps of known algorithms."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jax.flatten_util import ravel_pytree

from experiments.descent.depth import tuned
from experiments.descent.depth.config import ALGORITHMS, COVARIANCES, Config
from experiments.descent.depth.stacks import tied, train, turned
from lsa_lab.models import linear_attention
from lsa_lab.models.trace import predict
from lsa_lab.prompts import tokens
from lsa_lab.store import parts
from lsa_lab.theory.depth import best_descent_at
from lsa_lab.training.status import refuse_divergence

PIECE = 500  # prompts differentiated at a time
RANK = 1e-10  # eigenvalues of JᵀJ below this share of the largest are directions that do nothing


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


@jax.jit
def left_to_gain(stacks, batch):  # Params [S, ...], Prompt [B] -> [S]
    """The share of the risk on one half of the prompts that a Gauss-Newton step from the other half
    takes away; negative where it adds.

    δ = argmin |r + Jδ|² over the first half, r = ŷ - y and J its derivative by all weights; then
    1 - |r + Jδ|²/|r|² over the second. It is 0 up to noise at a critical point of the risk,
    whatever the last learning rate was; a loss that no longer falls may only lack a rate.
    """

    def share_left(params):
        weights, unravel = ravel_pytree(params)

        def residual(weights, prompt):
            walk = linear_attention.forward(unravel(weights), tokens(prompt))
            return predict(walk) - prompt.y_query

        derive = partial(jax.value_and_grad(residual), weights)
        r, J = jax.lax.map(derive, batch, batch_size=PIECE)
        half = len(r) // 2
        values, vectors = jnp.linalg.eigh(J[:half].T @ J[:half])
        inverse = jnp.where(values > RANK * values[-1], 1 / values, 0.0)
        step = -vectors @ (inverse * (vectors.T @ (J[:half].T @ r[:half])))
        return 1 - ((r[half:] + J[half:] @ step) ** 2).sum() / (r[half:] ** 2).sum()

    return jax.lax.map(share_left, stacks)


def compute(config: Config, *, progress=None, checkpoints=None):
    depths, runs, root = config.max_depth, config.runs, jax.random.key(config.seed)
    key_tuning, key_test, key_training = (jax.random.fold_in(root, tag) for tag in range(3))
    fit_stacks = partial(train, config, progress=progress, checkpoints=checkpoints)
    sigmas = jnp.stack([jnp.asarray(tuned.covariance(name, config.d)) for name in COVARIANCES])
    tests = [tuned.draw(key_test, sigma, config.n, config.test_prompts) for sigma in sigmas]
    known_risks = np.empty((len(ALGORITHMS), 2, depths))
    trained, left = np.empty((2, 2, depths, runs))
    distances = np.full((2, 2, depths, runs, depths), np.nan)
    status = []
    for depth in range(1, depths + 1):
        algorithms = tuned.tune(config, depth, sigmas, key_tuning)
        run = fit_stacks(
            jax.random.fold_in(key_training, depth),
            jnp.repeat(sigmas.astype(jnp.float32), runs, axis=0),
            f"{depth} layers",
            tuned.errors,
            lambda key, sigma: tuned.draw(key, sigma, config.n, config.batch),
            (depth, depth, config.d),
            config.steps_per_layer,
        )
        refuse_divergence(run.status, f"{depth} layers")
        params = jax.tree.map(lambda leaf: leaf.astype(sigmas.dtype), run.params)
        for c, test in enumerate(tests):
            of_c = jax.tree.map(lambda leaf, c=c: leaf[c :: len(COVARIANCES)], algorithms)
            known_risks[:, c, depth - 1] = np.asarray(tuned.errors_of_each(of_c, test)).mean(1)
            ours = jax.tree.map(lambda leaf, c=c: leaf[c * runs : (c + 1) * runs], params)
            trained[c, depth - 1] = tuned.errors_of_each(ours, test).mean(1)
            left[c, depth - 1] = left_to_gain(ours, test)
        shapes = shape_distances(params, jnp.repeat(sigmas, runs, axis=0))
        distances[:, :, depth - 1, :, :depth] = shapes.reshape(2, 2, runs, depth)
        status.append(np.reshape([str(end) for end in run.status], (2, runs)))
    axes = ("covariance", "depth")
    # The risk of the best L steps at the identity covariance, w ~ N(0, I), without a fit.
    exact = config.d * best_descent_at(config.n, config.d, 0.0, depths)[1:]
    whole = xr.Dataset(
        {
            "trained_risk": ((*axes, "run"), trained),
            "left_to_gain": ((*axes, "run"), left),
            "algorithm_risk": (("algorithm", *axes), known_risks),
            "exact_risk": ("depth", exact),
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
    return parts.join(whole, tied=tied(config, fit_stacks), turned=turned(config, fit_stacks))
