"""Which norms of the implicit updates does truncation lower, and which not?"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.clipping import trained_models
from experiments.clipping.clipped_models import spec_of
from experiments.clipping.truncation_norms.config import (
    MODULES,
    MOVEMENTS,
    NORMS,
    READINGS,
    TRAINED_MODULES,
    Config,
)
from experiments.clipping.truncation_norms.norm_growth import (
    growth,
    merge,
    mlp_growth,
    movement,
    random_stack,
    rising_share,
    stack_merged,
    touched_shares,
)
from experiments.models.tasks import distribution, draw
from lsa_lab.analyses import clipping


def measure(key, params, spec, config):
    """The share of draws in which norms rise, [S, 5, 4, L, Q] of random stacks and [R, 5, 2, L, Q]
    of trained ones, the movement of their sums, the shares of them that layers touch [S, L] and
    [R, L], and the share in which a norm after an MLP rises [S, 2, Q]."""
    rates = jnp.asarray(clipping.every_rate(spec.token_width)[1:])
    key_random, key_mlp, key_prompts = jax.random.split(key, 3)
    each = (config.seeds, config.draws)
    random_stacks = jax.vmap(jax.vmap(lambda key: random_stack(key, spec, config.scale)))
    weights, prompts = random_stacks(jax.random.split(key_random, each))
    after_mlps = jax.vmap(jax.vmap(lambda *row: mlp_growth(*row, rates, config.scale)))
    after_mlps = after_mlps(jax.random.split(key_mlp, each), weights, prompts)

    task = distribution(spec.task, dtype=jnp.float32)
    sample = partial(draw, task=task, size=config.draws)
    trained_prompts = jax.vmap(sample)(jax.random.split(key_prompts, len(params.w_pv)))
    trained = stack_merged(params.w_pv[:, :, 0], params.w_kq[:, :, 0])[:, None]
    trained = jnp.broadcast_to(trained, (len(trained), config.draws, *trained.shape[2:]))
    # Random stacks, the same with merged scores, and trained ones: one program for all.
    rows = (weights, prompts), (merge(weights), prompts), (trained, trained_prompts)
    rows = jax.tree.map(lambda *leaves: jnp.concatenate([x.astype(float) for x in leaves]), *rows)
    grown = jax.vmap(lambda *row: growth(*row, rates))
    logs = jax.lax.map(lambda row: grown(*row), rows)  # [2S + R, B, 4, 3, L, Q]
    factored, merged, trained = jnp.split(logs, [config.seeds, 2 * config.seeds])
    both = jnp.concatenate([factored, merged[:, :, :, 2:]], axis=3)
    own = trained[:, :, :, ::2]  # W_K = I is none of theirs
    rises = [rising_share(part, config.rounding) for part in (both, own)]
    moved = []
    for part in (both, own):
        sums, touched = (movement(part[:, :, NORMS.index(name)]) for name in ("sum", "touched"))
        moved.append(dict(zip(MOVEMENTS, sums, strict=True)) | {"touched": touched[0]})
    shares = jax.lax.map(lambda row: jax.vmap(touched_shares)(*row).mean(0), rows)
    shares = shares[: config.seeds], shares[2 * config.seeds :]
    return rises, moved, shares, rising_share(after_mlps, config.rounding)


def compute(config: Config, models, *, progress=None, checkpoints=None):
    import xarray as xr

    runs, spec = models["linear stacks"], spec_of(config)
    params = trained_models.float64_params(runs)
    measured = jax.jit(partial(measure, spec=spec, config=config))
    key, key_ridge = jax.random.split(jax.random.key(config.seed))
    rises, moved, shares, mlp_rises = measured(key, params)
    over_ridge = trained_models.risk_over_ridge(key_ridge, spec, params)
    data = {
        "over_ridge": (("run",), np.asarray(over_ridge)),
        "mlp_rises": (("seed", "reading", "rank"), np.asarray(mlp_rises)),
        "status": (("start",), [str(status) for status in runs.status]),
    }
    kinds = ("random", ("seed",), "module"), ("trained", ("run",), "trained_module")
    every = zip(kinds, rises, moved, shares, strict=True)
    for (kind, first, module), rise, sums, share in every:
        data[f"{kind}_share"] = ((*first, "layer"), np.asarray(share))
        places = (module, "layer", "rank")
        data[f"{kind}_rises"] = ((*first, "norm", *places), np.asarray(rise))
        for name, values in sums.items():
            data[f"{kind}_{name}"] = ((*first, *places), np.asarray(values))
    coordinates = {
        "norm": list(NORMS),
        "module": list(MODULES),
        "trained_module": list(TRAINED_MODULES),
        "layer": np.arange(1, spec.architecture.depth + 1),
        "rank": np.arange(spec.task.d, 0, -1),
        "reading": list(READINGS),
    }
    return xr.Dataset(data, coordinates)
