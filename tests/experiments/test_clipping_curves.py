"""`condition_numbers`: spectra of untrained models, one by one."""

from functools import partial
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.clipping import trained_models
from experiments.clipping.clipped_models import spec_of
from experiments.clipping.condition_numbers import compute as condition_numbers
from experiments.clipping.condition_numbers.compute import disturb
from experiments.clipping.condition_numbers.config import KINDS, MODULES
from experiments.clipping.condition_numbers.config import TIERS as CONDITIONS
from experiments.models.model import Model, init
from experiments.models.tasks import distribution
from lsa_lab.analyses import clipping
from lsa_lab.training.status import Status

CONFIG = CONDITIONS["smoke"]
SPEC = spec_of(CONFIG)
N, NOISE = max(SPEC.task.lengths), SPEC.task.noise_std


@pytest.fixture(scope="module")
def path():
    """Params of two untrained models [R, P, ...], others at every checkpoint."""
    keys = jax.random.split(jax.random.key(0), (2, 3))
    return jax.tree.map(np.asarray, jax.jit(jax.vmap(jax.vmap(partial(init, SPEC))))(keys))


def models_of(path):
    """What the harness hands over."""
    status = (Status("finished", SPEC.training.steps),) * 2
    finished = dict(finished=np.ones((1, 2), bool), status=status)
    return {"transformer": SimpleNamespace(path=path, path_steps=np.arange(3), **finished)}


def prompts_of(config, tag, n):
    task = distribution(SPEC.task, n, dtype=np.float32)
    key = jax.random.fold_in(jax.random.key(config.seed), tag)
    return jax.tree.map(np.asarray, trained_models.own_prompts(key, task, 2, config.prompts))


def risk_after(path, run, batch, *edit, name="clipped_errors"):
    """The risk of the last model of a run, clipped or not."""
    own = jax.tree.map(lambda leaf: leaf[run, -1], path)
    own = clipping.clip(own, *edit) if edit else own
    return np.mean(errors(name, own, jax.tree.map(lambda leaf: leaf[run], batch)))


@partial(jax.jit, static_argnums=0)
def errors(name, params, batch):
    return getattr(Model(SPEC, params), name)(batch)


def ridge_by_loops(batch, run, n, noise_std):
    x, y, query, target = (
        np.asarray(leaf[run], float) for leaf in (batch.x, batch.y, batch.x_query, batch.y_query)
    )
    x, y = x[:, :n], y[:, :n]
    gram = x.swapaxes(1, 2) @ x + noise_std**2 * np.eye(x.shape[2])
    weights = np.linalg.solve(gram, x.swapaxes(1, 2) @ y[..., None])[..., 0]
    return np.mean(((weights * query).sum(1) - target) ** 2)


@pytest.mark.slow
def test_condition_numbers_are_of_heads_side_by_side_at_every_checkpoint(path):
    config = CONDITIONS["smoke"]
    values = condition_numbers.compute(config, models_of(path))
    for run, step, layer in np.ndindex(2, 3, 2):
        at = values.isel(run=run, steps=step, layer=layer)
        for name in ("W_k", "W_o", "MLP in"):
            matrix = np.asarray(getattr(path, MODULES[name])[run, step, layer], float)
            if matrix.ndim == 3:
                matrix = np.concatenate(matrix, axis=int(name == "W_o"))
            condition, squares = np.linalg.cond(matrix), np.linalg.norm(matrix) ** 2
            np.testing.assert_allclose(at.condition.sel(module=name), condition, rtol=2e-2)
            rank = squares / np.linalg.norm(matrix, 2) ** 2
            np.testing.assert_allclose(at.stable_rank.sel(module=name), rank, rtol=1e-4)
    batch = prompts_of(config, 2, None)
    before = risk_after(path, 1, batch, name="errors")
    after = risk_after(path, 1, batch, 0, "w_o", config.rate, name="errors")
    ratio = values.ratio.sel(run=1, layer=1, module="W_o")
    np.testing.assert_allclose(ratio, after / before, rtol=1e-4)
    np.testing.assert_allclose(values.unclipped.sel(run=1), before, rtol=1e-5)
    ridge = ridge_by_loops(batch, 1, N, NOISE)
    np.testing.assert_allclose(values.ridge.sel(run=1), ridge, rtol=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_a_disturbance_moves_the_output_by_its_level(kind):
    """E |(W' - W) z|² = level² |W|_F² |z|²/q, of both kinds, for whatever z."""
    rng = np.random.default_rng(1)
    matrix, read, level = jnp.asarray(rng.normal(size=(4, 3))), rng.normal(size=3), 0.2
    keys = jax.random.split(jax.random.key(2), 50_000)
    noisy = jax.jit(jax.vmap(lambda key: disturb(kind, key, matrix, level)))(keys)
    moved = (((noisy - matrix[None]) @ read) ** 2).sum(1).mean()
    expected = level**2 * (matrix**2).sum() * (read @ read) / 3
    np.testing.assert_allclose(moved, expected, rtol=0.02)
