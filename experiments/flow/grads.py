"""Do demonstrations selected by their gradient beat those of other rules (A1, Abstract)?

GradS takes the demonstrations of a pool with the largest gradient to the prediction for a query.
The model is attention that knows some coordinates w_0 of the task (docs/theory, "Attention with a
prior"): it descends from w_0 on the selected demonstrations. GradS is computed for one layer and
each demonstration alone (A1, Eq. 2); its variants take the gradient of the last layer, or recompute
the gradient after each choice from what the model has learnt by then. Covariates are sparse.
"""

import itertools
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from lsa_lab import estimators
from lsa_lab.lab import Claim, compute_each, geometric_mean, main, plotting
from lsa_lab.models.constructions import prior_attention
from lsa_lab.prompts import Prompt
from lsa_lab.selection import diversity, oracles, scores
from lsa_lab.theory.amplification import one_shot_descent_flow

RIVALS = ("random", "similarity", "BM25", "diversity")  # of A1, as far as we know
LAST, RECOMPUTED = "GradS, last layer", "GradS, recomputed"
OURS = "contribution"  # |relevance × novelty|, derived here
RULES = ("GradS", LAST, RECOMPUTED, OURS, "relevance", *RIVALS)
TASKS = ("no noise", "noise", "duplicates")


@dataclass(frozen=True)
class Config:
    d: int = 10  # covariates
    densities: tuple[float, ...] = (0.2, 0.4, 1.0)  # of the non-zeros of a demonstration
    knowns: tuple[int, ...] = (2, 5, 8)  # coordinates of w that the weights know, fewer than d
    noises: tuple[float, ...] = (0.0, 0.5)  # standard deviations of the labels' noise
    query_density: float = 0.5  # of the non-zeros of a query
    pool: int = 32  # demonstrations to select from
    shots: int = 4  # that are selected
    depth: int = 8  # layers: steps of descent, each 1 / λ_max of the prompt
    distinct: int = 8  # demonstrations that a pool with duplicates repeats
    closeness: float = 0.98  # correlation of a duplicate with its original
    queries: int = 400  # of each run, each with a task and a pool of its own
    runs: int = 32
    seed: int = 1205


SMOKE = dict(densities=(1.0,), knowns=(4,), pool=6, shots=2, depth=2, distinct=3, queries=4)
TIERS = {
    "smoke": Config(8, **SMOKE, runs=2, seed=1),
    "quick": Config(knowns=(5,), queries=100, runs=16, seed=2),
    "full": Config(),
}


class Case(NamedTuple):
    """A query, the pool that may help it, and what the weights know."""

    pool: jax.Array  # [m, e]
    x_query: jax.Array  # [d]
    y_query: jax.Array  # []
    prior: jax.Array  # [d], w_0
    chance: jax.Array  # [m], by which a random choice is made


def draw_cases(rng, config, density, known, noise, duplicates):  # -> Case [R Q]
    """Draw queries, each with a task w ~ N(0, I) and a pool, of near-duplicates or not."""
    count, m, d = config.runs * config.queries, config.pool, config.d
    x, original = rng.standard_normal((2, count, m, d))
    support = rng.random((count, m, d)) < density
    if duplicates:
        source = np.arange(count)[:, None], rng.integers(0, config.distinct, (count, m))
        x = config.closeness * original[source] + np.sqrt(1 - config.closeness**2) * x
        support = support[source]
    x = x * support / np.sqrt(density * d)
    support = rng.random((count, d)) < config.query_density
    x_query = rng.standard_normal((count, d)) * support / np.sqrt(config.query_density * d)
    w = rng.standard_normal((count, d))
    in_weights = np.argsort(rng.random((count, d)), axis=1) < known
    y = np.einsum("qmd,qd->qm", x, w) + noise * rng.standard_normal((count, m))
    pool = np.concatenate([x, y[..., None]], axis=2)
    prior, chance = np.where(in_weights, w, 0), rng.random((count, m))
    return Case(pool, x_query, (w * x_query).sum(1), prior, chance)


def score_bm25(x, x_query, k=1.5, b=0.75):  # [m, d], [d] -> [m]
    """Return BM25 with non-zero coordinates for words, and sizes of coordinates for counts."""
    counts = jnp.abs(x) / jnp.maximum(jnp.abs(x).mean(), jnp.finfo(x.dtype).tiny)
    documents = (x != 0).sum(0).astype(x.dtype)
    rarity = jnp.log1p((len(x) - documents + 0.5) / (documents + 0.5))
    length = counts.sum(1)
    saturation = k * (1 - b + b * length / jnp.maximum(length.mean(), 1e-300))
    weights = counts * (k + 1) / (counts + saturation[:, None])
    return weights @ (rarity * (x_query != 0).astype(x.dtype))


def score_grads(case, prior):  # -> [m]
    """Return |∂a/∂e_i|² of one layer with step size 1, each demonstration alone."""
    params = prior_attention(jnp.ones(1), prior)
    encoding = scores.encode(params.w_kq[0, 0], params.w_pv[0, 0], case.pool)
    return scores.grads(encoding, jnp.pad(case.x_query, (0, 1)))


def score_last_layer(case, depth):  # -> [m]
    """Return |∂ŷ/∂e_i| after all layers, each demonstration alone, by the law of one shot."""
    # With this step size no prompt from the pool overshoots.
    step_sizes = jnp.full(depth, 1 / (case.pool[:, :-1] ** 2).sum(1).max())

    def predict(token):
        x, missing = token[:-1], token[-1] - case.prior @ token[:-1]
        return missing * one_shot_descent_flow(step_sizes, x, case.x_query)[-1]

    return scores.flow_norm(jax.vmap(jax.grad(predict))(case.pool))


def select_all(case, config):  # -> [rules, shots]
    x, zeros = case.pool[:, :-1], jnp.zeros_like(case.chance)
    by_score = {
        "GradS": score_grads(case, case.prior),
        LAST: score_last_layer(case, config.depth),
        OURS: scores.contribution(case.pool, case.x_query, case.prior),
        "relevance": scores.relevance(case.pool, case.x_query),
        "random": case.chance,
        "similarity": scores.similarity(case.pool, case.x_query),
        "BM25": score_bm25(x, case.x_query),
    }
    picks = {rule: scores.select(values, config.shots) for rule, values in by_score.items()}

    def recompute(chosen):  # [m] -> [m]
        return score_grads(case, learn(case, case.pool, chosen, config.depth))

    picks[RECOMPUTED] = oracles.pick_greedily(recompute, zeros, config.shots)
    ridge = 0.01 * (x**2).sum(1).mean()
    picks["diversity"] = diversity.determinantal(x, config.shots, ridge)
    return jnp.stack([picks[rule].astype(int) for rule in RULES])


def learn(case, rows, kept, depth):  # [n, e], [n] -> [d]
    """Return the weights after ``depth`` steps of 1/λ_max from w_0 on the rows that are kept."""
    x = kept[:, None] * rows[:, :-1]
    missing = kept * (rows[:, -1] - rows[:, :-1] @ case.prior)
    prompt = Prompt(x, missing, case.x_query, case.y_query)
    steps = jnp.full(depth, inverse_largest_eigenvalue(x))
    return case.prior + estimators.gradient_descent(prompt, steps)[-1]


def inverse_largest_eigenvalue(x):  # [n, d] -> []
    """Return 1/λ_max of H = XᵀX/n to a percent: λ_max is tr HP, P = H^128 / tr H^128."""

    def scale(matrix):
        trace = jnp.trace(matrix)
        return matrix / jnp.where(trace > 0, trace, 1)

    gram = x.T @ x / len(x)
    # Seven products are faster than batched LAPACK.
    power = jax.lax.fori_loop(0, 7, lambda _, power: scale(power @ power), scale(gram))
    largest = (gram * power).sum()
    return jnp.where(largest > 0, 1 / jnp.where(largest > 0, largest, 1), 0)


@partial(jax.jit, static_argnames="config")
def measure(cases, config):  # Case [R Q] -> [R, rules], []
    """Return the mean squared errors of each rule, and how many choices had a score not finite."""

    def errors(case):
        chosen = select_all(case, config)
        ones = jnp.ones(config.shots)
        weights = jax.vmap(lambda each: learn(case, case.pool[each], ones, config.depth))(chosen)
        return (weights @ case.x_query - case.y_query) ** 2, (chosen >= config.pool).sum()

    squares, refused = jax.lax.map(errors, cases, batch_size=100)
    return squares.reshape(config.runs, config.queries, -1).mean(1), refused.sum()


def compute(config, models):
    grid = config.densities, config.knowns, config.noises
    middle = tuple(values[len(values) // 2] for values in grid[:2])
    cells = [(*cell, False) for cell in itertools.product(*grid)] + [(*middle, 0.0, True)]
    # What a program depends on: others share it.
    shape = replace(config, densities=(), knowns=(), noises=(), seed=0)

    def run(item):
        index, cell = item
        cases = draw_cases(np.random.default_rng([config.seed, index]), config, *cell)
        errors, refused = jax.device_get(measure(cases, shape))
        if refused:
            raise ValueError(f"{refused} choices at {cell} have a score that is not finite")
        return errors

    *errors, duplicates = compute_each("tasks", list(enumerate(cells)), run)
    errors = np.reshape(errors, (*map(len, grid), *errors[0].shape))
    axes = ("density", "known", "noise", "run", "rule")
    data = {"error": (axes, errors), "duplicates": (axes[3:], duplicates)}
    names = dict(zip(axes[:3], map(list, grid), strict=True))
    return xr.Dataset(data, names | {"rule": list(RULES)})


def ratio(result, task, rule, baseline):  # -> [R]
    """Return the error by a rule over that by a baseline, geometric mean over the kinds of tasks.

    ``task`` is one of TASKS: labels without noise, those with the most, or near-duplicates.
    """
    if task == "duplicates":
        errors = result["duplicates"]
    else:
        errors = result["error"].isel(noise=0 if task == "no noise" else -1)
    logs = np.log(errors.sel(rule=rule) / errors.sel(rule=baseline))
    return np.exp(logs.mean([axis for axis in logs.dims if axis != "run"]).values)


PAIRED = "none: the ratio is paired, and 1 without a difference"
QUANTITY = "the error by {} over that by {} on the same queries, geometric mean over kinds of tasks"
NOISE = {"task": TASKS[:2]}
below = partial(Claim, statistic="ratio", at_most=1.0, null=PAIRED)
CLAIMS = (
    below("over_rivals", "A1, Abstract", "GradS selects better than {rival} ({task})",
          QUANTITY.format("GradS", "the rival"),
          lambda result, rival, task: ratio(result, task, "GradS", rival),
          over={"rival": RIVALS, **NOISE}),
    below("over_relevance", "A1, Abstract", "GradS selects better than relevance |x·x_query| "
          "({task})", QUANTITY.format("GradS", "relevance"),
          partial(ratio, rule="GradS", baseline="relevance"), over=NOISE),
    below("last_layer", "A1, Ablation of layers",
          "The gradient of the last layer selects better than that of one layer ({task})",
          QUANTITY.format("the gradient of the last layer", "that of one layer"),
          partial(ratio, rule=LAST, baseline="GradS"), over=NOISE),
    below("recomputed", "A1, Next check 3",
          "GradS recomputed after each choice selects better than GradS computed once ({task})",
          QUANTITY.format("GradS recomputed after each choice", "GradS"),
          partial(ratio, rule=RECOMPUTED, baseline="GradS"), over={"task": TASKS}),
    below("ours", "derived here", "The size of a demonstration's contribution, |relevance × "
          "novelty|, selects better than GradS ({task})", QUANTITY.format("contribution", "GradS"),
          partial(ratio, rule=OURS, baseline="GradS"), over=NOISE),
)  # fmt: skip


def plot(result, config):  # -> Figure, caption
    figure, (left, right) = plotting.figure(6.75, 2.6, (1, 2), sharey=True)
    rivals = ("relevance", *RIVALS)
    draw(left, result, [("GradS", rival) for rival in rivals], rivals)
    left.set(ylabel="error / that of the rule below", title="GradS over other rules")
    pairs = [(rule, "GradS") for rule in (LAST, RECOMPUTED, OURS)]
    draw(right, result, pairs, ("last layer", "recomputed", "contribution\n(ours)"))
    right.set(title="Variants over GradS", ylabel="error / that of GradS")
    right.legend()
    quiet, noisy = (geometric_mean(ratio(result, x, "GradS", "relevance")) for x in TASKS[:2])
    wins = [row["verdict"] == "holds" for row in CLAIMS[0].judge(result)]
    again = geometric_mean(ratio(result, "no noise", RECOMPUTED, "GradS"))
    return figure, (
        f"GradS leaves {quiet:.2f} times the error of selection by relevance where labels have no "
        f"noise, and {noisy:.2f} times where they have. It beats A1's baselines in {sum(wins)} "
        f"of {len(wins)} comparisons. Recomputed after each choice it leaves {again:.2f} times its "
        "error. Geometric means over tasks."
    )


def draw(ax, result, pairs, names):
    values = {
        task: np.stack([ratio(result, task, *pair) for pair in pairs], axis=1) for task in TASKS
    }
    looks = plotting.looks(TASKS, "os^")
    plotting.series(ax, range(len(pairs)), values, looks, "ratio", 0.18, ls="", capsize=2)
    ax.axhline(1, color="grey", lw=0.8)
    plotting.log_axes(ax, y=True, y_ticks=(0.25, 0.35, 0.5, 0.7, 1, 1.4, 2, 3))
    ax.set_xticks(range(len(pairs)), names, fontsize=7)


if __name__ == "__main__":
    main(__file__)
