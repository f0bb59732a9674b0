"""One demonstration in many prompts, its effects measured and summed up run by run.

s = η x·x_query is its relevance and r = y - w_0·x its novelty (docs/theory, "The one-shot flow",
"Attention with a prior").
"""

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from experiments.flow.classes import cell_means, classes_of, fits
from experiments.flow.flow_factors.config import (
    FORMS,
    KINDS,
    OVER,
    PREDICTORS,
    QUANTITIES,
    SCALES,
    Config,
    best_step,
)
from lsa_lab.analyses.amplification import demonstration_flow
from lsa_lab.judging.statistics import spearman
from lsa_lab.models import constructions, linear_attention
from lsa_lab.models.trace import predict
from lsa_lab.prompts import Prompt, tokens
from lsa_lab.theory import amplification


def sample_prompts(config: Config, run: int):  # -> Prompt [M], w_0 [M, d]
    """Prompts of one demonstration each, and the coordinates of w that the weights know."""
    rng = np.random.default_rng([config.seed, run])
    shape, d = (config.draws, config.d), config.d
    w, x, x_query = rng.standard_normal((3, *shape))
    in_weights = np.argsort(rng.random(shape)) < config.known
    for covariates, density in ((x, config.density), (x_query, config.query_density)):
        covariates *= (rng.random(shape) < density) / np.sqrt(density * d)
    y, y_query = ((w * covariates).sum(1) for covariates in (x, x_query))
    return Prompt(x[:, None], y[:, None], x_query, y_query), np.where(in_weights, w, 0)


def measure_effects(prompt: Prompt, prior, step_size) -> dict:  # {name: []}
    """What one demonstration does to ŷ in ``prior_attention``, and its two factors."""
    params = constructions.prior_attention(step_size[None], prior)
    empty = prompt.replace(x=jnp.zeros_like(prompt.x), y=jnp.zeros_like(prompt.y))
    rows = tokens(prompt)
    after, before = (predict(linear_attention.forward(params, t)) for t in (rows, tokens(empty)))
    missing = prompt.y_query - prior @ prompt.x_query
    return {
        "s": amplification.relevance(params.w_kq[0, 0], rows[0], rows[1]),
        "r": prompt.y[0] - prior @ prompt.x[0],
        "contribution": after - before,
        "flow": jnp.linalg.norm(demonstration_flow(linear_attention.forward, params, prompt)),
        "missing": missing,
        "zero_shot": missing**2,
        "reduction": missing**2 - (missing - (after - before)) ** 2,
    }


def bayes_contribution(prompt: Prompt, prior) -> np.ndarray:  # [M]
    """What one demonstration adds to the answer of the Bayes rule for w ~ N(w_0, P), P the
    coordinates that the weights do not know: x_query·Px r / |Px|²."""
    x, unknown = prompt.x[:, 0], prior == 0
    missing = prompt.y[:, 0] - (prior * x).sum(1)
    sizes = (x**2 * unknown).sum(1)
    score = (x * unknown * prompt.x_query).sum(1)
    return score * missing / np.where(sizes > 0, sizes, 1)


def summary(effects: dict, count: int) -> dict:
    """The effects [M] of one run, in ``count`` classes of |s| and of |r|."""
    s, r, c, flow, reduction = (
        effects[name] for name in ("s", "r", "contribution", "flow", "reduction")
    )
    (of_s, centre_s), (of_r, centre_r) = (classes_of(np.abs(size), count) for size in (s, r))
    zeros = (of_s == 0) + 2 * (of_r == 0)  # in the order of KINDS
    inside = zeros == 0
    squares = [v[inside] / effects["zero_shot"].mean() for v in (c**2, reduction)]
    squares.insert(1, flow[inside] ** 2 / (flow[inside] ** 2).mean())
    grids = cell_means(squares, of_s[inside] - 1, of_r[inside] - 1, count)
    roots = np.sign(grids) * np.sqrt(np.abs(grids))
    typical = [np.median(np.abs(v[inside])) for v in (flow, c)]
    of_kind = [[np.median(np.abs(v[zeros == k])) for k in range(4)] for v in (flow, c)]
    return {
        "grid": grids,
        "centre": np.stack([centre_s, centre_r]),
        "r2": np.array([[fits(grid) for grid in scaled] for scaled in (grids, roots)]),
        "correlation": correlations(s, r, c, flow, reduction, count),
        "of_kind": np.array(of_kind) / np.array(typical)[:, None],
        "helps": (reduction[inside] > 0).mean(),
    }


def correlations(s, r, c, flow, reduction, count):  # [M] each -> [2, 5]
    """Rank correlations of the reduction with PREDICTORS: over all demonstrations, and of its mean
    over ``count`` classes of a predictor that is not zero."""
    rms = [np.sqrt((v**2).mean()) for v in (s, r)]
    rivals = (flow, np.abs(c), np.abs(s), np.abs(r), np.abs(s) / rms[0] + np.abs(r) / rms[1])
    single = [spearman(reduction, v) for v in rivals]
    return [single, [spearman(class_means(reduction, v, count), range(count)) for v in rivals]]


def class_means(values, sizes, count):  # [M], [M] -> [count]
    of_size, _ = classes_of(sizes, count)
    members = np.bincount(of_size, minlength=count + 1)[1:]
    if not members.all():
        raise ValueError(
            f"{(members == 0).sum()} of {count} classes are empty, for too many sizes are equal: "
            "choose fewer classes"
        )
    return np.bincount(of_size, values, count + 1)[1:] / members


def bayes_effects(effects: dict, bayes) -> dict:  # effects [M], what the Bayes rule adds [M]
    """The shares of demonstrations with s r ≠ 0 that lower the error of attention and of the Bayes
    rule; what these take off attention's, over the error without; and the rank correlation over all
    demonstrations of what each takes off with what is expected, given the prompt."""
    s, r, c, missing = (effects[name] for name in ("s", "r", "contribution", "missing"))
    inside = np.logical_and(*(np.abs(v) > 1e-12 * np.sqrt((v**2).mean()) for v in (s, r)))
    taken = missing**2 - (missing - bayes) ** 2
    lowered = [(each[inside] > 0).mean() for each in (effects["reduction"], taken)]
    return {
        "lowers": np.array(lowered),
        "taken": effects["reduction"][inside].mean() / effects["zero_shot"][inside].mean(),
        "ceiling": spearman(effects["reduction"], c * (2 * bayes - c)),
    }


AXES = {
    "grid": ("quantity", "relevance", "novelty"),
    "centre": ("factor", "decile"),
    "r2": ("scale", "quantity", "form"),
    "correlation": ("over", "predictor"),
    "of_kind": ("measure", "kind"),
    "helps": (),
    "lowers": ("rule",),
    "taken": (),
    "ceiling": (),
}


def compute(config: Config, *, progress=None, checkpoints=None):
    @jax.jit
    def measure(*each):
        batch_size = min(config.draws, 2000)
        return jax.lax.map(lambda draw: measure_effects(*draw), each, batch_size=batch_size)

    steps, rows = np.full(config.draws, best_step(config)), []
    for run in range(config.runs):
        effects = jax.tree.map(np.asarray, measure(*sample_prompts(config, run), steps))
        rows.append(summary(effects, config.classes))
        fresh = sample_prompts(config, config.runs + run)  # no other row has seen these
        effects = jax.tree.map(np.asarray, measure(*fresh, steps))
        rows[-1] |= bayes_effects(effects, bayes_contribution(*fresh))
    return xr.Dataset(
        {
            name: (("run", *axes), np.array([of_run[name] for of_run in rows]))
            for name, axes in AXES.items()
        },
        {
            "quantity": list(QUANTITIES),
            "factor": ["relevance", "novelty"],
            "scale": list(SCALES),
            "form": list(FORMS),
            "over": list(OVER),
            "predictor": list(PREDICTORS),
            "measure": ["flow", "contribution"],
            "kind": list(KINDS),
            "rule": ["attention", "Bayes rule"],
        },
    )
