"""The rules that `grads` selects by, the learner that answers, and its errors."""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import Mesh, PartitionSpec

from experiments.flow.grads.selection_cases import Case
from lsa_lab import estimators
from lsa_lab.analyses.amplification import moment_flow
from lsa_lab.models.constructions import prior_attention
from lsa_lab.prompts import Prompt
from lsa_lab.selection import diversity, oracles, scores
from lsa_lab.theory.amplification import one_shot_descent_flow

FLOWS = ("GradS", "slot's flow", "label's flow", "flow × input", "contribution")
# Rules that ask for no derivative, nor for the product that flow × input is, by Euler.
RIVALS = ("relevance", "similarity", "residual", "random")
RIVALS += ("determinantal", "farthest point", "relevance × determinantal")
RECOMPUTED = ("GradS, recomputed", "contribution, recomputed")
RULES = (*FLOWS, *RIVALS, *RECOMPUTED)
PROMPTS = ("alone", "pool")  # in which the flow of a demonstration is taken
_CHUNK = 100  # queries in memory at a time


def learn(case: Case, rows: Array, kept: Array, steps: int) -> Array:  # [n, e], [n] -> [d]
    """Steps of 1/λ_max from w_0 on the rows that are kept: ``prior_attention`` with step sizes of
    the prompt's own. A mean over n and one over those kept have the same path."""
    x = kept[:, None] * rows[:, :-1]
    missing = kept * (rows[:, -1] - rows[:, :-1] @ case.prior)
    prompt = Prompt(x, missing, case.x_query, case.y_query)
    return case.prior + estimators.gradient_descent(prompt, jnp.full(steps, _fair_step(x)))[-1]


def squared_error(case: Case, rows: Array, kept: Array, steps: int) -> Array:  # []
    return (learn(case, rows, kept, steps) @ case.x_query - case.y_query) ** 2


def static_scores(case: Case, key: Array) -> dict[str, Array]:  # of [m]
    """One layer, every demonstration alone. Its step multiplies all flows, and is 1 here."""
    params, pool, query = prior_attention(jnp.ones(1), case.prior), case.pool, case.x_query
    encoding = scores.encode(params.w_kq[0, 0], params.w_pv[0, 0], pool)
    flow = scores.encode_flow(params, pool)[0] @ case.token
    return {
        "GradS": scores.grads(encoding, case.token),
        "slot's flow": scores.grads_of_slot(encoding, case.token),
        "label's flow": scores.label_slot_flow(flow),
        "flow × input": scores.flow_times_input(flow, pool),
        "contribution": scores.contribution(pool, query, case.prior),
        "relevance": scores.relevance(pool, query),
        "similarity": scores.similarity(pool, query),
        "residual": scores.residual(pool, query, case.prior),
        "random": scores.random(pool, query, key),
    }


def rankings(case: Case, key: Array, config, size: int) -> dict[str, Array]:
    """What the rules pick [size], best first: the first k of them are the choice of k.

    Recomputed rules take what the learner has made of the demonstrations so far for w_0.
    """
    picks = {name: scores.select(some, size) for name, some in static_scores(case, key).items()}

    def determinantal(points: Array) -> Array:
        ridge = config.ridge * (points**2).sum(1).mean()
        return diversity.determinantal(points, size, ridge)

    picks["determinantal"] = determinantal(case.x)
    picks["farthest point"] = diversity.farthest_point(case.x, size)
    weights = scores.relevance(case.pool, case.x_query)
    picks["relevance × determinantal"] = determinantal(weights[:, None] * case.x)

    def knowing(chosen: Array) -> Case:
        return case.replace(prior=learn(case, case.pool, chosen, config.depth))

    def current(rule: str, chosen: Array) -> Array:  # [m]
        return static_scores(knowing(chosen), key)[rule]

    for rule in ("GradS", "contribution"):
        picks[f"{rule}, recomputed"] = pick_greedily(case, partial(current, rule), size)
    return picks


def layer_flows(case: Case, depth: int) -> Array:  # [prompts, L, m]
    """|∂ŷ_l/∂e_i| in a stack of steps of descent, alone or with the whole pool in the prompt."""
    params = prior_attention(jnp.full(depth, _fair_step(case.x)), case.prior)
    prompt = Prompt(case.x, case.pool[:, -1], case.x_query, case.y_query)
    together = jax.vmap(scores.flow_norm)(moment_flow(params, prompt))
    return jnp.stack([flows_alone(case, depth), together])


def flows_alone(case: Case, depth: int) -> Array:  # [L, m]
    """What ``scores.encode_flow`` of ``stack`` gives, by the law of one demonstration: ŷ_l is
    w_0·x_query + (y - w_0·x) times ``one_shot_descent_flow``. Every query has weights of its own,
    so nothing can be encoded once for all of them."""
    step_sizes = _safe_steps(case, depth)

    def predictions(token: Array) -> Array:  # [L]
        x, missing = token[:-1], token[-1] - case.prior @ token[:-1]
        return missing * one_shot_descent_flow(step_sizes, x, case.x_query)

    flow = jax.vmap(jax.jacfwd(predictions), out_axes=1)(case.pool)  # [L, m, e]
    return jax.vmap(scores.flow_norm)(flow)


def _safe_steps(case: Case, depth: int) -> Array:  # [L]
    """1/max |x_i|²: no prompt from this pool overshoots, one demonstration or many."""
    return jnp.full(depth, 1 / (case.x**2).sum(1).max())


def pick_greedily(case: Case, score: Callable[[Array], Array], size: int) -> Array:  # [size]
    return oracles.pick_greedily(score, jnp.zeros_like(case.pool[:, 0]), size)


def after(case: Case, orders: Array, shots: tuple[int, ...], steps: int) -> Array:
    """Squared errors [N, K] after the first k demonstrations of every order [N, size]."""
    first = jnp.arange(orders.shape[1])[None] < jnp.array(shots)[:, None]

    def error(order: Array, kept: Array) -> Array:  # []
        return squared_error(case, case.pool[order], kept.astype(case.pool.dtype), steps)

    return jax.vmap(jax.vmap(error, (None, 0)), (0, None))(orders, first)


def study(case: Case, key: Array, config) -> dict[str, Array]:
    """Squared errors of one query, by every rule ("error" [rules, shots]), by the flow of every
    layer ("layer" [prompts, L, shots]), without demonstrations and with the whole pool ("end").

    Shots beyond the pool are left out.
    """
    m, depth = len(case.pool), config.depth
    shots = tuple(k for k in config.shots if k <= m)
    picks = rankings(case, key, config, max(shots))
    orders = [picks[rule].astype(int) for rule in RULES]
    if m == config.pool:
        flows = layer_flows(case, depth).reshape(-1, m)
        orders += list(jax.vmap(lambda flow: scores.select(flow, max(shots)))(flows).astype(int))
    orders = jnp.stack(orders)
    errors = after(case, orders, shots, depth)
    found = {
        "error": errors[: len(RULES)],
        "end": after(case, jnp.arange(m)[None], (0, m), depth)[0],
        "refused": (orders >= m).any(),
    }
    if m == config.pool:
        found["layer"] = errors[len(RULES) :].reshape(len(PROMPTS), depth, -1)
    if m == config.small:
        all_of_them = jnp.ones(config.judged)

        def of_subset(indices: Array) -> Array:  # []
            return squared_error(case, case.pool[indices], all_of_them, depth)

        found["best"] = oracles.best_subset(of_subset, m, config.judged)[1]
    return found


def oracle(case: Case, key: Array, config) -> dict[str, Array]:
    """Squared errors of one query after the picks of the greedy oracle, which sees the answer
    ("oracle" [shots]), and without demonstrations ("zero_shot")."""

    def error(chosen: Array) -> Array:  # []
        return squared_error(case, case.pool, chosen, config.depth)

    order = pick_greedily(case, partial(oracles.leave_one_out, error), max(config.shots))
    return {
        "oracle": after(case, order[None], config.shots, config.depth)[0],
        "zero_shot": error(jnp.zeros_like(case.pool[:, 0])),
        "refused": (order >= len(case.pool)).any(),
    }


def join(case: Case, key: Array, config) -> dict[str, Array]:
    """Squared errors [2] of one query by the last layer's flow, of every demonstration alone or as
    it joins those picked before."""
    params = prior_attention(_safe_steps(case, config.depth), case.prior)

    def joined(chosen: Array) -> Array:  # [m]
        flow = oracles.flow_joining(params, case.pool, case.x_query, chosen)
        return scores.flow_norm(flow[-1])

    static = scores.select(flows_alone(case, config.depth)[-1], config.judged)
    again = pick_greedily(case, joined, config.judged)
    orders = jnp.stack([static.astype(int), again.astype(int)])
    return {
        "joined": after(case, orders, (config.judged,), config.depth)[:, 0],
        "refused": (orders >= len(case.pool)).any(),
    }


@partial(jax.jit, static_argnums=(0, 1))
def over_runs(measure, config, cases, keys):  # [R, Q] -> {name: means over the queries [R, ...]}
    """The devices share the runs."""

    def run(each):
        found = scores.score_queries(lambda one: measure(*one, config), each, _CHUNK)
        return jax.tree.map(lambda values: values.mean(0), found)

    devices = jax.local_devices()
    count = max(k for k in range(1, len(devices) + 1) if len(keys) % k == 0)
    spread = jax.shard_map(
        partial(jax.lax.map, run),
        mesh=Mesh(np.array(devices[:count]), ("runs",)),
        in_specs=PartitionSpec("runs"),
        out_specs=PartitionSpec("runs"),
        check_vma=False,
    )
    return spread((cases, keys))


def seen(measure, config, cases, keys, m):
    """Of the first m demonstrations of every pool; a score that is not finite is an error."""
    cut = cases.replace(pool=cases.pool[:, :, :m])
    found = jax.tree.map(np.asarray, over_runs(measure, config, cut, keys))
    refused = found.pop("refused")
    if refused.any():
        raise ValueError(
            f"scores are NaN or infinite for {refused.mean():.1%} of the queries with a pool of "
            f"{m}: what has no rank is not selected"
        )
    return found


def _fair_step(x: Array) -> Array:  # []
    """1/λ_max(XᵀX/n), 0 where x is, to a percent: λ_max is tr HP with P = H^128 / tr H^128, for
    batched LAPACK calls are slower than seven products."""

    def scaled(matrix: Array) -> Array:
        trace = jnp.trace(matrix)
        return matrix / jnp.where(trace > 0, trace, 1)

    gram = x.T @ x / len(x)
    power = jax.lax.fori_loop(0, 7, lambda _, power: scaled(power @ power), scaled(gram))
    largest = (gram * power).sum()
    return jnp.where(largest > 0, 1 / jnp.where(largest > 0, largest, 1), 0)
