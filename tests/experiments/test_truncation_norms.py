"""`truncation_norms`: growth of norms beside loops over matrices, layers and rates."""

import jax
import jax.numpy as jnp
import numpy as np

from experiments.clipping.clipped_models import spec_of
from experiments.clipping.truncation_norms import norm_growth
from experiments.clipping.truncation_norms.config import TIERS
from experiments.clipping.truncation_norms.norm_growth import random_stack

D, N, E, L, RUNS = 2, 4, 3, 2, 3
CONFIG = TIERS["smoke"]  # its program is compiled anyway
RATES = jnp.array([0.3, 0.6])  # of three directions they keep two, and one
SPEC = spec_of(CONFIG)
WEIGHTS, PROMPT = jax.jit(random_stack, static_argnums=(1, 2))(jax.random.key(0), SPEC, 0.5)


def sizes_by_loops(weights, prompt):  # -> |G_t| [L], UB_t [L]
    rows, w, pairs = np.column_stack([prompt.x, prompt.y]), np.eye(weights.shape[-1]), []
    for w_v, w_k, w_q in np.asarray(weights).swapaxes(0, 1):
        now = [w @ row for row in rows]
        update = sum(np.outer(w_v @ h, w_k @ h) for h in now) @ w_q @ w / len(rows)
        upper = np.mean([np.linalg.norm(w_v @ h) * np.linalg.norm(w_k @ h) for h in now])
        pairs.append((np.linalg.norm(update), upper * np.linalg.norm(w_q)))
        w = w + update
    return np.transpose(pairs)


def growth_by_loops(weights, prompt, ranks=(2, 1)):  # -> [5, 3, L, Q]
    weights, prompt = jax.tree.map(np.asarray, (weights, prompt))
    exact, upper = sizes_by_loops(weights, prompt)
    depth, grown = len(exact), np.full((5, 3, len(exact), len(ranks)), -np.inf)
    for matrix, t, q in np.ndindex(3, depth, len(ranks)):
        u, s, v = np.linalg.svd(weights[matrix, t])
        cut = np.array(weights)
        cut[matrix, t] = sum(s[i] * np.outer(u[:, i], v[i]) for i in range(ranks[q]))
        after, bound = sizes_by_loops(cut, prompt)
        grown[:2, matrix, t, q] = np.log([after[t] / exact[t], bound[t] / upper[t]])
        if t + 1 < depth:
            grown[2, matrix, t, q] = np.log(after / exact)[t + 1 :].max()
        grown[3, matrix, t, q] = np.log(sum(after**2) / sum(exact**2))
        grown[4, matrix, t, q] = np.log(sum(after[t:] ** 2) / sum(exact[t:] ** 2))
    return grown


def test_growth_is_that_of_loops():
    grown = jax.jit(norm_growth.growth)(WEIGHTS, PROMPT, RATES)
    np.testing.assert_allclose(grown, growth_by_loops(WEIGHTS, PROMPT), rtol=1e-8, atol=1e-10)


def test_updates_after_an_mlp_are_read_in_two_ways():
    key = jax.random.key(2)
    grown = jax.jit(norm_growth.mlp_growth)(key, WEIGHTS, PROMPT, RATES, CONFIG.scale)
    w_v, w_k, w_q = np.asarray(WEIGHTS)[:, 0]
    rows = np.column_stack([PROMPT.x, PROMPT.y])
    update = sum(np.outer(w_v @ h, w_k @ h) for h in rows) @ w_q / N
    mlp = CONFIG.scale / E**0.5 * np.asarray(jax.random.normal(key, (E, E)))
    u, s, v = np.linalg.svd(mlp)
    for q, rank in enumerate((2, 1)):
        cut = u[:, :rank] * s[:rank] @ v[:rank]
        written = [np.linalg.norm(m @ update) for m in (cut, mlp)]
        block = [np.linalg.norm(m @ update + m + update) for m in (cut, mlp)]
        ratios = written[0] / written[1], block[0] / block[1]
        np.testing.assert_allclose(grown[:, q], np.log(ratios))
