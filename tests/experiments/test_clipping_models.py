"""What experiments on clipping share: a run's own prompts, cut answers, a choice by the others."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from experiments.clipping import trained_models
from experiments.clipping.clipped_models import gains_by_others, transformer
from experiments.models.model import init
from experiments.models.tasks import distribution

((_, SPEC),) = transformer("smoke")
TASK = distribution(SPEC.task, dtype=jnp.float32)


def test_a_model_that_explodes_is_judged_by_answers_that_are_cut():
    params = jax.vmap(partial(init, SPEC))(jax.random.split(jax.random.key(3), 1))
    batch = trained_models.own_prompts(jax.random.key(4), TASK, 1, 5)
    loud = params.replace(w_o=1e6 * params.w_o, mlp_out=1e6 * params.mlp_out)
    labels, target = np.abs(np.asarray(batch.y[0])).max(1), np.asarray(batch.y_query[0])
    furthest = (2 * labels + np.abs(target)) ** 2
    risk = trained_models.own_risks(SPEC)(loud, batch)[0]
    assert 0 < risk <= furthest.mean()
    assert trained_models.own_risks(SPEC, cut=False)(loud, batch)[0] > 1e3 * furthest.mean()


def test_no_edit_is_chosen_by_the_run_it_is_judged_on():
    changes = xr.DataArray([[-9.0, -1.0], [1.0, -1.0], [1.0, -2.0]], dims=("run", "rate"))
    assert gains_by_others(changes).tolist() == [-1.0, 1.0, 1.0]
