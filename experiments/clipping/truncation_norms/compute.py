"""Which norms of the implicit updates does truncation lower, and which not?"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

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
from experiments.models.tasks import distribution, draw
from lsa_lab.analyses import clipping, implicit_gd
from lsa_lab.models.linear_attention import Params
from lsa_lab.prompts import Prompt, tokens


def random_stack(key, spec, scale):  # -> [3, L, e, e], Prompt
    """Weights as large as those of the Spec with entries of variance scale²/e, demonstrations with
    entries of variance 1."""
    e, n = spec.token_width, max(spec.task.lengths)
    key_weights, key_rows = jax.random.split(key)
    weights = jax.random.normal(key_weights, (3, spec.architecture.depth, e, e))
    return scale * e**-0.5 * weights, _prompt(jax.random.normal(key_rows, (n, e)))


def merge(weights):  # [..., 3, L, e, e]
    """The same layers with W_K = I and W_Kᵀ W_Q in the place of W_Q."""
    w_v, w_k, w_q = (weights[..., i, :, :, :] for i in range(3))
    return stack_merged(w_v, w_k.swapaxes(-1, -2) @ w_q)


def stack_merged(w_pv, w_kq):  # two of [..., L, e, e] -> [..., 3, L, e, e]
    """Merged weights as W_V, W_K = I and W_Q."""
    identity = jnp.broadcast_to(jnp.eye(w_pv.shape[-1]), w_pv.shape)
    return jnp.stack([w_pv, identity, w_kq], axis=-4)


def _prompt(rows):  # [n, e]
    """Demonstrations by their tokens; the query, which no update reads, is the first of them."""
    return Prompt(rows[:, :-1], rows[:, -1], rows[0, :-1], rows[0, -1])


def norms_and_bounds(weights, prompt):  # W_V, W_K, W_Q [3, L, e, e] -> [L], [L]
    """|G_t| and UB_t of every layer (A2, Theorem 1 and Example 1)."""
    w_v, w_k, w_q = weights
    merged = w_k.swapaxes(1, 2) @ w_q
    path = implicit_gd.trajectory(Params(merged[:, None], w_v[:, None]), prompt)
    upper = implicit_gd.upper_bounds(path, w_v, w_k, w_q, tokens(prompt)[:-1])
    return implicit_gd.norms(path), upper


def touched_shares(weights, prompt):  # -> [L]
    """The share of Σ|G|² that a layer and those after it make up: what its truncation touches."""
    squares = norms_and_bounds(weights, prompt)[0] ** 2
    return squares[::-1].cumsum()[::-1] / squares.sum()


def growth(weights, prompt, rates):  # -> [5 norms, 3, L, Q]
    """log(after / before) for every matrix and layer that is truncated, and every rate."""
    exact, upper = norms_and_bounds(weights, prompt)
    layers = jnp.arange(len(exact))
    cut = jax.vmap(clipping.truncate, (None, 0))(weights, rates)  # [Q, 3, L, e, e]

    def edit(matrix, t, cut):
        here = (jnp.arange(3) == matrix)[:, None] & (layers == t)[None]
        after, bound = norms_and_bounds(jnp.where(here[..., None, None], cut, weights), prompt)
        each = jnp.log(after / exact)
        later = jnp.where(layers > t, each, -jnp.inf).max()
        total = jnp.log((after**2).sum() / (exact**2).sum())
        late = (layers >= t).astype(after.dtype)
        touched = jnp.log((late * after**2).sum() / (late * exact**2).sum())
        return jnp.stack([each[t], jnp.log(bound / upper)[t], later, total, touched])

    at_rates = jax.vmap(edit, (None, None, 0))
    everywhere = jax.vmap(jax.vmap(at_rates, (None, 0, None)), (0, None, None))
    return jnp.moveaxis(everywhere(jnp.arange(3), layers, cut), 3, 0)


def mlp_growth(key, weights, prompt, rates, scale):  # -> [2, Q]
    """log(after / before) of the first update, read after a random MLP that is truncated; the rows
    are those of READINGS."""
    e = weights.shape[-1]
    update = implicit_gd.implicit_update(*weights[:, 0], tokens(prompt)[:-1])
    update = update / len(prompt.y)  # G_1
    mlp = scale * e**-0.5 * jax.random.normal(key, (e, e))
    cut = jax.vmap(clipping.truncate, (None, 0))(mlp, rates)
    matrices = jnp.concatenate([mlp[None], cut])
    readings = (implicit_gd.relaxed_mlp_update, implicit_gd.block_mlp_update)
    updates = [jax.vmap(read, (0, None))(matrices, update) for read in readings]
    sizes = jnp.linalg.norm(jnp.stack(updates), axis=(2, 3))  # [2, 1 + Q]
    return jnp.log(sizes[:, 1:] / sizes[:, :1])


def rising_share(log_ratios, rounding):  # [R, B, ...] -> [R, ...]
    """The share of a run's draws in which a norm rises."""
    rises = (log_ratios > rounding).astype(log_ratios.dtype)
    return jnp.where(jnp.isnan(log_ratios), jnp.nan, rises).mean(1)  # NaN is not "never"


def movement(log_ratios):  # [R, B, ...] -> two of [R, ...]
    """How far a norm moves over a run's draws, and how differently: the mean |log ratio| and the
    standard deviation of the log ratio."""
    return jnp.abs(log_ratios).mean(1), log_ratios.std(1)


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
