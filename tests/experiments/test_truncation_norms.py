"""`truncation_norms`: growth of norms beside loops over matrices, layers, rates and draws."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.clipping.clipped_models import spec_of
from experiments.clipping.truncation_norms import compute
from experiments.clipping.truncation_norms.compute import measure, merge, random_stack, stack_merged
from experiments.clipping.truncation_norms.config import TIERS
from experiments.models.regression import dense
from experiments.models.tasks import distribution, draw
from lsa_lab.models import linear_attention

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
    grown = jax.jit(compute.growth)(WEIGHTS, PROMPT, RATES)
    np.testing.assert_allclose(grown, growth_by_loops(WEIGHTS, PROMPT), rtol=1e-8, atol=1e-10)


def test_merged_scores_leave_all_updates_as_they_are():
    merged = merge(WEIGHTS)
    np.testing.assert_array_equal(merged[1], [np.eye(E)] * L)
    expected = sizes_by_loops(WEIGHTS, PROMPT)[0]
    np.testing.assert_allclose(sizes_by_loops(merged, PROMPT)[0], expected)
    np.testing.assert_allclose(
        merged,
        stack_merged(WEIGHTS[0], jnp.stack([k.T @ q for k, q in WEIGHTS[1:].swapaxes(0, 1)])),
    )


def test_weights_and_demonstrations_have_the_variances_that_are_said():
    spec = dense("linear", D, 20_000, 8, training=dict(steps=1, batch=1, learning_rate=1, seeds=1))
    weights, prompt = random_stack(jax.random.key(1), spec, 0.5)
    np.testing.assert_allclose((weights**2).mean(), 0.25 / E, rtol=0.3)
    rows = np.column_stack([prompt.x, prompt.y])
    np.testing.assert_allclose(rows.T @ rows / 20_000, np.eye(E), atol=0.05)


def test_updates_after_an_mlp_are_read_in_two_ways():
    key = jax.random.key(2)
    grown = jax.jit(compute.mlp_growth)(key, WEIGHTS, PROMPT, RATES, CONFIG.scale)
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


def test_shares_and_movements_are_over_the_draws_of_a_run():
    logs = jnp.array([[0.5, -1.0, 0.0, 2.0], [-3.0, -1.0, -1.0, 1e-12]])
    assert compute.rising_share(logs, 1e-9).tolist() == [0.5, 0.0]
    moves, spread = compute.movement(jnp.array([[1.0, -3.0], [2.0, 2.0]]))
    assert (moves.tolist(), spread.tolist()) == ([2.0, 2.0], [2.0, 0.0])
    assert np.isnan(compute.rising_share(jnp.array([[jnp.nan, -1.0]]), 1e-9)).all()


@pytest.fixture(scope="module")
def measured():
    """What is measured of two stacks, the stacks, and the keys of random stacks and prompts."""
    key, keys = jax.random.key(3), jax.random.split(jax.random.key(4), RUNS)
    params = jax.vmap(lambda k: linear_attention.init(k, L, 1, D, scale=0.5))(keys)
    values = jax.jit(partial(measure, spec=SPEC, config=CONFIG))(key, params)
    return values, params, distribution(SPEC.task, dtype=jnp.float32), jax.random.split(key, 3)


def prompts_of(batch):
    return [jax.tree.map(lambda leaf, b=b: leaf[b], batch) for b in range(CONFIG.draws)]


def test_trained_stacks_are_summarised_by_norm_and_matrix(measured):
    (rises, moved, shares, _), params, task, keys = measured
    for run, key in enumerate(jax.random.split(keys[2], RUNS)):
        weights = np.asarray(stack_merged(params.w_pv[run, :, 0], params.w_kq[run, :, 0]))
        batch = jax.tree.map(lambda leaf: np.asarray(leaf, float), draw(key, task, CONFIG.draws))
        grown = np.stack([growth_by_loops(weights, prompt) for prompt in prompts_of(batch)])[
            :, :, ::2
        ]
        compare = partial(np.testing.assert_allclose, rtol=1e-6, atol=1e-8)
        compare(rises[1][run], (grown > CONFIG.rounding).mean(0))
        compare(moved[1]["moves"][run], np.abs(grown[:, 3]).mean(0))
        compare(moved[1]["touched"][run], np.abs(grown[:, 4]).mean(0))
        sizes = [sizes_by_loops(weights, prompt)[0] ** 2 for prompt in prompts_of(batch)]
        compare(shares[1][run], np.mean([[1, own[1] / sum(own)] for own in sizes], axis=0))


def test_random_stacks_are_truncated_factored_and_merged(measured):
    (rises, _, _, _), _, _, keys = measured
    of_seed = jax.random.split(keys[0], (CONFIG.seeds, CONFIG.draws))[1]
    draws = jax.jit(jax.vmap(partial(random_stack, spec=SPEC, scale=CONFIG.scale)))(of_seed)
    stacks = [jax.tree.map(lambda leaf, b=b: leaf[b], draws) for b in range(CONFIG.draws)]
    factored = np.stack([growth_by_loops(*stack) for stack in stacks])
    merged = np.stack([growth_by_loops(merge(stack[0]), stack[1]) for stack in stacks])
    both = np.concatenate([factored, merged[:, :, 2:]], axis=2)
    np.testing.assert_allclose(rises[0][1], (both > CONFIG.rounding).mean(0))
