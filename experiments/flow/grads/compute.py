"""Errors of a learner by what many rules select for it, best first, in a sweep and on three kinds
of tasks."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jax import Array

from experiments.flow.grads.cases import Case, cells, draw, measure_all, prior_cases
from experiments.flow.grads.config import DIVERSE, FLOWS, LAST, RECOMPUTED, SWEEP, TASKS, Config
from lsa_lab import estimators
from lsa_lab.models.constructions import prior_attention
from lsa_lab.prompts import Prompt
from lsa_lab.selection import diversity, oracles, scores
from lsa_lab.tasks import tables
from lsa_lab.theory.amplification import one_shot_descent_flow

# Scores [m] that ask for no derivative. A rival to GradS is one more row, and a run of the laptop
# tier.
RIVALS: dict[str, Callable[[Case, Array], Array]] = {
    "relevance": lambda case, key: scores.relevance(case.pool, case.x_query),
    "similarity": lambda case, key: scores.similarity(case.pool, case.x_query),
    "residual": lambda case, key: scores.residual(case.pool, case.x_query, case.prior),
    "random": lambda case, key: scores.random(case.pool, case.x_query, key),
}
RULES = (*FLOWS, *RIVALS, *DIVERSE, LAST, RECOMPUTED)


def static_scores(case: Case, key: Array) -> dict[str, Array]:  # {rule: [m]}
    """One layer, every demonstration alone. Its step multiplies all flows, and is 1 here."""
    params = prior_attention(jnp.ones(1), case.prior)
    encoding = scores.encode(params.w_kq[0, 0], params.w_pv[0, 0], case.pool)
    return {
        "GradS": scores.grads(encoding, jnp.pad(case.x_query, (0, 1))),
        "contribution": scores.contribution(case.pool, case.x_query, case.prior),
        **{rule: score(case, key) for rule, score in RIVALS.items()},
    }


def rankings(case: Case, key: Array, config, size: int) -> Array:  # [rules, size]
    """What all RULES pick, best first: the first k of them are the choice of k.

    The recomputed one takes what the learner has made of the demonstrations so far for w_0.
    """
    static = static_scores(case, key)
    picks = {rule: scores.select(values, size) for rule, values in static.items()}
    picks[LAST] = scores.select(flows_alone(case, config.depth)[-1], size)

    def determinantal(points: Array) -> Array:
        ridge = config.ridge * (points**2).sum(1).mean()
        return diversity.determinantal(points, size, ridge)

    picks["determinantal"] = determinantal(case.x)
    picks["farthest point"] = diversity.farthest_point(case.x, size)
    weights = scores.relevance(case.pool, case.x_query)
    picks["relevance × determinantal"] = determinantal(weights[:, None] * case.x)

    def contributions(chosen: Array) -> Array:  # [m]
        learnt = learn(case, case.pool, chosen, config.depth)
        return static_scores(case.replace(prior=learnt), key)["contribution"]

    picks[RECOMPUTED] = oracles.pick_greedily(contributions, jnp.zeros_like(case.pool[:, 0]), size)
    return jnp.stack([picks[rule].astype(int) for rule in RULES])


def flows_alone(case: Case, depth: int) -> Array:  # [L, m]
    """|∂ŷ_l/∂e_i| by the law of one demonstration: ŷ_l is w_0·x_query + (y - w_0·x) times
    ``one_shot_descent_flow``. ``scores.encode_flow`` gives the same, but every query has weights
    of its own, so nothing can be encoded once for all of them."""
    # No prompt from this pool overshoots, one demonstration or many.
    step_sizes = jnp.full(depth, 1 / (case.x**2).sum(1).max())

    def predictions(token: Array) -> Array:  # [L]
        x, missing = token[:-1], token[-1] - case.prior @ token[:-1]
        return missing * one_shot_descent_flow(step_sizes, x, case.x_query)

    flow = jax.vmap(jax.jacfwd(predictions), out_axes=1)(case.pool)  # [L, m, e]
    return jax.vmap(scores.flow_norm)(flow)


def learn(case: Case, rows: Array, kept: Array, steps: int) -> Array:  # [n, e], [n] -> [d]
    """Steps of 1/λ_max from w_0 on the rows that are kept: ``prior_attention`` with step sizes of
    the prompt's own. A mean over n and one over those kept have the same path."""
    x = kept[:, None] * rows[:, :-1]
    missing = kept * (rows[:, -1] - rows[:, :-1] @ case.prior)
    prompt = Prompt(x, missing, case.x_query, case.y_query)
    return case.prior + estimators.gradient_descent(prompt, jnp.full(steps, fair_step(x)))[-1]


def errors_after(case: Case, orders: Array, shots: tuple[int, ...], steps: int) -> Array:
    """Squared errors [N, K] after the first k demonstrations of every order [N, size]."""
    first = jnp.arange(orders.shape[1])[None] < jnp.array(shots)[:, None]

    def error(order: Array, kept: Array) -> Array:  # []
        learnt = learn(case, case.pool[order], kept.astype(case.pool.dtype), steps)
        return (learnt @ case.x_query - case.y_query) ** 2

    return jax.vmap(jax.vmap(error, (None, 0)), (0, None))(orders, first)


def fair_step(x: Array) -> Array:  # []
    """1/λ_max(XᵀX/n), 0 where x is, to a percent: λ_max is tr HP with P = H^128 / tr H^128, for
    batched LAPACK calls are slower than seven products."""

    def scaled(matrix: Array) -> Array:
        trace = jnp.trace(matrix)
        return matrix / jnp.where(trace > 0, trace, 1)

    gram = x.T @ x / len(x)
    power = jax.lax.fori_loop(0, 7, lambda _, power: scaled(power @ power), scaled(gram))
    largest = (gram * power).sum()
    return jnp.where(largest > 0, 1 / jnp.where(largest > 0, largest, 1), 0)


def task_errors(case: Case, key: Array, config: Config) -> dict[str, Array]:
    """Squared errors of one query by every rule ("error" [rules, shots]), by the flow of every
    layer ("layer" [L, shots]), and without demonstrations ("end")."""
    most, depth = max(config.shots), config.depth
    by_rule = rankings(case, key, config, most)
    by_layer = jax.vmap(lambda flow: scores.select(flow, most))(flows_alone(case, depth))
    orders = jnp.concatenate([by_rule, by_layer.astype(int)])
    errors = errors_after(case, orders, config.shots, depth)
    return {
        "error": errors[: len(by_rule)],
        "layer": errors[len(by_rule) :],
        "end": errors_after(case, orders[:1], (0, most), depth)[0, 0],
        "refused": (orders >= len(case.pool)).any(),
    }


def cell_errors(case: Case, key: Array, config: Config) -> dict[str, Array]:
    """Squared errors of one query by every rule ("error" [rules])."""
    orders = rankings(case, key, config, config.judged)
    errors = errors_after(case, orders, (config.judged,), config.depth)[:, 0]
    return {"error": errors, "refused": (orders >= len(case.pool)).any()}


def sweep_errors(config: Config) -> np.ndarray:  # [densities, knowns, noises, runs, rules]
    """Those of all runs, every cell and run with tasks and pools of its own."""
    runs, of_cells = config.runs + config.validation, []
    for i, cell in enumerate(cells(config)):
        # A number that no task of `cases` has: its streams are others than theirs.
        rngs = [np.random.default_rng([config.seed, 1000 + i, run]) for run in range(runs)]
        of_runs = [prior_cases(rng, cell, duplicates=False) for rng in rngs]
        cases = jax.tree.map(lambda *leaves: np.stack(leaves), *of_runs)
        key = jax.random.fold_in(jax.random.key(config.seed), 1000 + i)
        keys = jax.random.split(key, (runs, config.queries))
        of_cells.append(measure_all(cell_errors, config, cases, keys)["error"])
    grid = len(config.densities), len(config.knowns), len(config.noises)
    return np.reshape(of_cells, (*grid, *of_cells[0].shape))


def compute(config: Config, *, progress=None, checkpoints=None):
    table, runs, of_tasks = tables.load_diabetes(float), config.runs, []
    for i, task in enumerate(TASKS):
        cases = draw(config, task, table)
        key = jax.random.fold_in(jax.random.key(config.seed), i)
        keys = jax.random.split(key, (runs + config.validation, config.queries))
        of_tasks.append(measure_all(task_errors, config, cases, keys))
    error, layer, end = (np.array([of[n] for of in of_tasks]) for n in ("error", "layer", "end"))
    grid, of_rule, of_layer = sweep_errors(config), ("rule", "shots"), ("layer", "shots")
    return xr.Dataset(
        {
            "sweep": ((*SWEEP, "run", "rule"), grid[..., :runs, :]),
            "sweep_validation": ((*SWEEP, "other", "rule"), grid[..., runs:, :]),
            "error": (("setting", "run", *of_rule), error[:, :runs]),
            "validation": (("setting", "other", *of_rule), error[:, runs:]),
            "layer_error": (("setting", "run", *of_layer), layer[:, :runs]),
            "layer_validation": (("setting", "other", *of_layer), layer[:, runs:]),
            "end": (("setting", "run"), end[:, :runs]),
        },
        {
            "density": list(config.densities),
            "known": list(config.knowns),
            "noise": list(config.noises),
            "setting": list(TASKS),
            "rule": list(RULES),
            "shots": list(config.shots),
            "layer": np.arange(1, config.depth + 1),
        },
    )
