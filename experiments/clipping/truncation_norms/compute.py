"""Which norms of the implicit updates does truncation lower, and which not?"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.clipping import trained_models
from experiments.clipping.truncation_norms.config import (
    MODULES,
    NORMS,
    READINGS,
    TRAINED_MODULES,
    Config,
)
from experiments.clipping.truncation_norms.factored_weights import as_weights, merge, random_stack
from experiments.clipping.truncation_norms.norm_growth import (
    counterexample_norms,
    growth,
    mlp_growth,
    summarise,
)
from experiments.models.tasks import distribution, draw
from lsa_lab.analyses import clipping


def measure(key, params, config, task):
    """Summaries [S, 4, 4, L, Q] of random stacks and [R, 4, 2, L, Q] of trained ones, the share in
    which a norm after an MLP rises [S, 2, Q], and the counterexample's norms [2]."""
    rates = jnp.asarray(clipping.every_rate(config.d + 1)[1:])
    key_random, key_mlp, key_prompts = jax.random.split(key, 3)
    each = (config.seeds, config.draws)
    random_stacks = jax.vmap(jax.vmap(lambda key: random_stack(key, config)))
    weights, prompts = random_stacks(jax.random.split(key_random, each))
    after_mlps = jax.vmap(jax.vmap(lambda *row: mlp_growth(*row, rates, config)))
    after_mlps = after_mlps(jax.random.split(key_mlp, each), weights, prompts)

    sample = partial(draw, task=task, size=config.draws)
    trained_prompts = jax.vmap(sample)(jax.random.split(key_prompts, len(params.w_pv)))
    trained = as_weights(params.w_pv[:, :, 0], params.w_kq[:, :, 0])[:, None]
    trained = jnp.broadcast_to(trained, (len(trained), config.draws, *trained.shape[2:]))
    # Random stacks, the same with merged scores, and trained ones: one program for all.
    rows = (weights, prompts), (merge(weights), prompts), (trained, trained_prompts)
    rows = jax.tree.map(lambda *leaves: jnp.concatenate([x.astype(float) for x in leaves]), *rows)
    grown = jax.vmap(lambda *row: growth(*row, rates))
    logs = jax.lax.map(lambda row: grown(*row), rows)  # [2S + R, B, 4, 3, L, Q]
    factored, merged, trained = jnp.split(logs, [config.seeds, 2 * config.seeds])
    both = jnp.concatenate([factored, merged[:, :, :, 2:]], axis=3)
    on_random, on_trained, after_mlps = (
        summarise(part, config.rounding) for part in (both, trained[:, :, :, ::2], after_mlps)
    )
    return on_random, on_trained, after_mlps[0], counterexample_norms()


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    spec, params, statuses = trained_models.linear_stacks(config, progress)
    task = distribution(spec.task, dtype=jnp.float32)
    measured = jax.jit(partial(measure, config=config, task=task))
    key = jax.random.key(config.seed)
    on_random, on_trained, mlp_rises, example = measured(key, params)
    data = {
        "mlp_rises": (("seed", "reading", "rank"), np.asarray(mlp_rises)),
        "example": (("weights",), np.asarray(example)),
        "status": (("start",), statuses),
    }
    places = ("layer", "rank")
    for i, name in enumerate(("rises", "typical", "largest")):
        data[f"random_{name}"] = (("seed", "norm", "module", *places), np.asarray(on_random[i]))
        axes = ("run", "norm", "trained_module", *places)
        data[f"trained_{name}"] = (axes, np.asarray(on_trained[i]))
    coordinates = {
        "norm": list(NORMS),
        "module": list(MODULES),
        "trained_module": list(TRAINED_MODULES),
        "layer": np.arange(1, config.depth + 1),
        "rank": np.arange(config.d, 0, -1),
        "reading": list(READINGS),
        "weights": ["whole", "truncated"],
    }
    return xr.Dataset(data, coordinates)
