"""Which norms of the implicit updates does truncation lower, and which not?"""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.clipping.truncation_norms.config import Config
from experiments.clipping.update_norms import (
    MODULES,
    NORMS,
    READINGS,
    as_weights,
    counterexample,
    growth,
    merge,
    mlp_growth,
    random_stack,
    summarise,
)
from experiments.models import stacks
from lsa_lab.analyses import clipping


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    stack = replace(stacks.stack_of("linear", config), noise_std=config.noise_std, clip=config.clip)
    run = stacks.trained(stack, config.runs, config.training_seed, "linear stacks", progress)
    whole = np.array([one.kind != "diverged" for one in run.status])
    rates = jnp.asarray(clipping.every_rate(config.d + 1)[1:])

    @jax.jit
    def everything(key, params):
        key_random, key_mlp, key_prompts = jax.random.split(key, 3)
        each = (config.seeds, config.draws)
        make = jax.vmap(jax.vmap(lambda key: random_stack(key, config)))
        weights, prompts = make(jax.random.split(key_random, each))
        behind = jax.vmap(jax.vmap(lambda *row: mlp_growth(*row, rates, config)))
        behind = behind(jax.random.split(key_mlp, each), weights, prompts)

        law = partial(stacks.draw, law=stacks.task(stack), size=config.draws)
        asked = jax.vmap(law)(jax.random.split(key_prompts, whole.sum()))
        ours = as_weights(params.w_pv[:, :, 0], params.w_kq[:, :, 0])[:, None]
        ours = jnp.broadcast_to(ours, (len(ours), config.draws, *ours.shape[2:]))
        # Random stacks, the same with merged scores, and trained ones: one program for all.
        rows = (weights, prompts), (merge(weights), prompts), (ours, asked)
        rows = jax.tree.map(lambda *some: jnp.concatenate([x.astype(float) for x in some]), *rows)
        grown = jax.vmap(lambda *row: growth(*row, rates))
        found = jax.lax.map(lambda row: grown(*row), rows)  # [2S + R, B, 4, 3, L, Q]
        factored, merged, ours = jnp.split(found, [config.seeds, 2 * config.seeds])
        both = jnp.concatenate([factored, merged[:, :, :, 2:]], axis=3)
        found = [summarise(some, config.rounding) for some in (both, ours[:, :, :, ::2])]
        return *found, summarise(behind, config.rounding)[0], counterexample()

    params = jax.tree.map(lambda leaf: jnp.asarray(leaf, float)[whole], run.params)
    key = jax.random.key(config.seed)
    on_random, on_trained, behind, example = everything(key, params)
    data = {
        "mlp_rises": (("seed", "reading", "rank"), np.asarray(behind)),
        "example": (("weights",), np.asarray(example)),
        "status": (("start",), [str(one) for one in run.status]),
    }
    names = ("rises", "typical", "largest")
    for name, ours, drawn in zip(names, on_trained, on_random, strict=True):
        data[f"random_{name}"] = (("seed", "norm", "module", "layer", "rank"), np.asarray(drawn))
        own = ("run", "norm", "trained_module", "layer", "rank")
        data[f"trained_{name}"] = (own, np.asarray(ours))
    coordinates = {
        "norm": list(NORMS),
        "module": list(MODULES),
        "trained_module": ["W_V", "merged"],
        "layer": np.arange(1, config.depth + 1),
        "rank": np.arange(config.d, 0, -1),
        "reading": list(READINGS),
        "weights": ["whole", "truncated"],
    }
    return xr.Dataset(data, coordinates)
