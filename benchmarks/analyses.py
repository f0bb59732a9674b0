"""Analyses and selection: W7 clips matrices of eight models, W8 a flow, W9 matches gradients."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import softmax
from benchmarks.loops import functions, once
from benchmarks.timing import Form, calls
from lsa_lab import prompts
from lsa_lab.analyses import amplification, clipping
from lsa_lab.models import linear_attention, transformer
from lsa_lab.selection import scores
from lsa_lab.selection.gradient_matching import match
from lsa_lab.tasks.linear import LinearTask, sample

MODULES = ("w_q", "w_k", "w_v", "w_o", "mlp")
PLAIN_MODULES = (("q",), ("k",), ("v",), ("o",), ("in", "out"))


def ours_clipping(
    n: int, d: int, seeds: int, batch: int, layers: int, width: int, heads: int, ranks: list[int],
    shots: list[int],
) -> Form:  # fmt: skip
    """``clipping.curve``: every layer, module and rate, on prompts of several lengths."""
    config = clipped_config(d, layers, width, heads)
    rates = [1 - rank / width for rank in ranks]

    def risk(params, batch):
        tokens = jax.vmap(prompts.tokens)(batch)
        predicted = jax.vmap(lambda rows: transformer.predict(params, rows, config))(tokens)
        return (predicted - batch.y_query) ** 2

    init = jax.vmap(partial(transformer.init, config=config, dtype=jnp.float32))
    params = jax.jit(init)(jax.random.split(jax.random.key(1), seeds))
    given = noisy(n, d, batch)

    grid = dict(modules=MODULES, rates=rates, shots=shots)
    return once(lambda: clipping.curve(risk, params, given, **grid))


def plain_clipping(
    n: int, d: int, seeds: int, batch: int, layers: int, width: int, heads: int, ranks: list[int],
    shots: list[int],
) -> Form:  # fmt: skip
    """Loops over layers, modules and rates; an SVD for each matrix, a jitted risk of all seeds.

    It runs the first layer at one rate, and counts for the whole grid.
    """
    given = noisy(n, d, batch)
    tokens = np.asarray(jax.vmap(prompts.tokens)(given))
    keys = jax.random.split(jax.random.key(1), seeds)
    init = partial(softmax.plain_weights, layers=layers, width=width, heads=heads, length=None)
    params = jax.jit(jax.vmap(lambda key: init(key, token_width=d + 1)))(keys)
    rank, cells = ranks[len(ranks) // 2], layers * len(ranks)

    @jax.jit
    def risk(params, tokens):
        predict = jax.vmap(partial(softmax.plain_predict, causal=False), (None, 0))
        return (jax.vmap(predict, (0, None))(params, tokens) - given.y_query[None]) ** 2

    def shorten(count):
        return jnp.concatenate([tokens[:, :count], tokens[:, -1:]], axis=1)

    base = {count: risk(params, shorten(count)) for count in shots}

    def of_a_cell():
        changes = []
        for names in PLAIN_MODULES:
            first, *later = params["layers"]
            cut = {name: plain_cut(first[name], name, rank) for name in names}
            edited = params | {"layers": [first | cut, *later]}
            for count in shots:
                change = risk(edited, shorten(count)) - base[count]
                changes.append((change.mean(1), jnp.median(change, axis=1)))
        return changes

    def turn():
        ((wall, processor),) = calls(of_a_cell, units=[1], wait=jax.block_until_ready)()
        return [(wall * cells, processor * cells)]

    return Form(turn, [1 / cells])


def plain_cut(weights, name, rank):
    """The matrices of all seeds with their ``rank`` largest singular values, heads stacked."""
    seeds, inputs = weights.shape[:2]
    flat = (
        weights.reshape(seeds, inputs, -1)
        if name != "o"
        else weights.reshape(seeds, -1, weights.shape[-1])
    )
    left, values, right = jnp.linalg.svd(flat, full_matrices=False)
    kept = (left[:, :, :rank] * values[:, None, :rank]) @ right[:, :rank]
    return kept.reshape(weights.shape)


def clipped_config(d, layers, width, heads):
    return transformer.Config(
        d + 1, layers, heads, width // heads, width=width, norm=True, mlp_width=4 * width
    )


def noisy(n: int, d: int, batch: int) -> prompts.Prompt:
    task = LinearTask(n, d, noise_std=0.1, dtype=jnp.float32)
    keys = jax.random.split(jax.random.key(0), batch)
    return jax.jit(jax.vmap(partial(sample, task=task)))(keys)


def ours_flow(n: int, d: int, layers: int, units: int) -> Form:
    """``demonstration_flow``, as it is called for any model."""
    given = stack(n, d, layers)
    flow = partial(amplification.demonstration_flow, linear_attention.forward)
    return functions((flow, given), units=[units])


def plain_flow(n: int, d: int, layers: int, units: int) -> Form:
    """jacrev of the predictions after each layer, by a newcomer's linear form."""
    params, prompt = stack(n, d, layers)
    tokens = prompts.tokens(prompt)
    given = (tokens[:-1], tokens[-1], params)
    return functions((jax.jacrev(plain_predictions), given), units=[units])


def plain_predictions(demonstrations, query, params):
    """After each layer of one head."""
    rows, predicted = jnp.concatenate([demonstrations, query[None]]), []
    for kq, pv in zip(params.w_kq[:, 0], params.w_pv[:, 0], strict=True):
        moment = rows[:-1].T @ rows[:-1] / len(demonstrations)
        rows = rows + rows @ (pv @ moment @ kq).T
        predicted.append(-rows[-1, -1])
    return jnp.stack(predicted)


def ours_pool(m: int, queries: int, d: int, layers: int, units: int) -> Form:
    """The pool's flow encoded once, then a score of every pair."""

    def every(params, pool, tokens):
        encoded = scores.encode_flow(params, pool)[-1]
        return jax.lax.map(lambda token: scores.flow_norm(encoded @ token), tokens, batch_size=10)

    return functions((every, pool_of(m, queries, d, layers)), units=[units])


def plain_pool(m: int, queries: int, d: int, layers: int, share: int) -> Form:
    """The gradient through the model for each pair, of one pair in ``share``, and as many times."""
    params, pool, tokens = pool_of(m, queries, d, layers)

    def answer(token, query, params):
        return plain_predictions(token[None], query, params)[-1]

    def norms(params, pool, tokens):
        flow = jax.vmap(jax.grad(answer), (0, None, None))
        return jax.lax.map(lambda query: jnp.linalg.norm(flow(pool, query, params), axis=1), tokens)

    form = functions((norms, (params, pool, tokens[: queries // share])), units=[1])

    def turn():
        ((wall, processor),) = form.turn()
        return [(wall * share, processor * share)]

    return Form(turn, [1 / share], lambda: [count * share for count in form.flops()])


def pool_of(m: int, queries: int, d: int, layers: int):
    """Weights, demonstrations [m, e] and queries [Q, e]."""
    rng = np.random.default_rng(0)
    pool, tokens = (
        jnp.asarray(rng.normal(size=(count, d + 1)) / d**0.5, jnp.float32) for count in (m, queries)
    )
    return stack(1, d, layers)[0], pool, tokens.at[:, -1].set(0)


def stack(n: int, d: int, layers: int) -> tuple[linear_attention.Params, prompts.Prompt]:
    """One stack of layers and one prompt."""
    params = linear_attention.init(jax.random.key(0), layers, 1, d, 0.1, jnp.float32)
    return params, sample(jax.random.key(1), LinearTask(n, d, dtype=jnp.float32))


def ours_matching(m: int, p: int, size: int) -> Form:
    return once(partial(match, draw_gradients(m, p), size))


def plain_matching(m: int, p: int, size: int) -> Form:
    return once(partial(plain_match, draw_gradients(m, p), size))


def plain_match(gradients, size):
    """A jitted choice, then a jitted swap, called from Python until none helps."""
    centred = jnp.asarray(gradients)
    centred = centred - centred.mean(0)
    m, p = centred.shape
    total, taken, indices = jnp.zeros(p, centred.dtype), jnp.zeros(m, bool), []
    for _ in range(size):
        total, taken, j = plain_add(centred, total, taken)
        indices.append(j)
    chosen = jnp.stack(indices)
    while True:
        after, before, now = plain_swap(centred, chosen)
        if now >= (1 - 1e-6) * before:
            return chosen
        chosen = after


@jax.jit
def plain_add(centred, total, taken):
    gaps = jnp.linalg.norm(total[None] + centred, axis=1)
    j = jnp.argmin(jnp.where(taken, jnp.inf, gaps))
    return total + centred[j], taken.at[j].set(True), j


@jax.jit
def plain_swap(centred, chosen):
    """|C - c_i + c_j|² for all i and j by products; the best pair, and what it leads to."""
    rows = centred[chosen]
    total = rows.sum(0)
    enters = (centred**2).sum(1) + 2 * centred @ total
    leaves = (rows**2).sum(1) - 2 * rows @ total
    change = enters[None] + leaves[:, None] - 2 * rows @ centred.T
    change = change.at[:, chosen].set(jnp.inf)
    i, j = jnp.unravel_index(change.argmin(), change.shape)
    after = chosen.at[i].set(j)
    return after, jnp.linalg.norm(total), jnp.linalg.norm(centred[after].sum(0))


def draw_gradients(m: int, p: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((m, p), dtype=np.float32)
