"""What a demonstration is worth to the Bayes rule and to trained models, in classes of it."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jax import Array
from scipy.stats import rankdata

from experiments.flow.classes import cell_means, classes_of, fits
from experiments.flow.relevance_and_novelty.config import (
    BAYES,
    READINGS,
    SINGLES,
    UNTRAINED,
    Config,
)
from experiments.models import tasks
from experiments.models.model import Model, init
from lsa_lab import estimators
from lsa_lab.judging.statistics import spearman
from lsa_lab.models import moments
from lsa_lab.prompts import Prompt

PAIRS = (("similarity", "surprise"), ("flow", "surprise"), ("correlation", "variance"))


def summary(factors: dict, expected, actual, zero, count: int) -> dict:  # arrays [B]
    """``zero`` is the mean error without the demonstration, the unit of the maps."""
    of_factor = {name: classes_of(values, count)[0] - 1 for name, values in factors.items()}
    rows = [(of_factor[first], of_factor[second]) for first, second in PAIRS]
    maps = np.stack([cell_means([expected / zero], *row, count)[0] for row in rows])
    roots = np.sign(maps) * np.sqrt(np.abs(maps))
    ranks = rankdata(expected)
    as_many = [classes_of(factors[name], count**2)[0] - 1 for name in SINGLES]
    return {
        "map": maps,
        "rise": np.array([rise(grid) for grid in maps]),
        "r2": np.array([[fits(grid) for grid in scaled] for scaled in (maps, roots)]),
        "between": np.array(
            [share_between(ranks, row[0] * count + row[1]) for row in rows]
            + [share_between(ranks, of_class) for of_class in as_many]
        ),
        "single": spearman(actual, factors["flow"] * factors["surprise"]),
    }


def rise(grid):  # [K, K] -> []
    """The lesser, over both factors, of the mean rank correlation within classes of the other."""
    return min(
        np.mean([spearman(row, np.arange(len(row))) for row in rows]) for rows in (grid, grid.T)
    )


def share_between(values, of_class):  # [B], [B] -> []
    """The share of the variance that lies between classes."""
    numbers = np.bincount(of_class)
    means = np.bincount(of_class, values) / np.maximum(numbers, 1)
    return (numbers * (means - values.mean()) ** 2).sum() / len(values) / values.var()


AXES = {
    "map": ("reading", "relevance", "novelty"),
    "rise": ("reading",),
    "r2": ("scale", "reading", "form"),
    "between": ("predictor",),
    "single": (),
}


def drop_last(prompt: Prompt) -> Prompt:
    return prompt.replace(x=prompt.x[:-1], y=prompt.y[:-1])


def factors_of(prompt: Prompt, noise_var: float) -> dict[str, Array]:  # {name: []}
    """The Bayes rule for w ~ N(0, I), Σ the posterior covariance given the others.

    Its answer moves by flow times surprise, x_queryᵀΣx/(xᵀΣx + σ²) times y - ŷ(x).
    """
    others, x, x_query = drop_last(prompt), prompt.x[-1], prompt.x_query
    precision = jnp.eye(len(x)) + others.x.T @ others.x / noise_var
    spread, spread_query = jnp.linalg.solve(precision, jnp.stack([x, x_query]).T).T  # Σx, Σx_query
    before = estimators.gaussian_posterior_mean(others, 1.0, noise_var)
    after = estimators.gaussian_posterior_mean(prompt, 1.0, noise_var)
    variance, covariance = x @ spread, x_query @ spread
    lengths = jnp.linalg.norm(x) * jnp.linalg.norm(x_query)
    return {
        "similarity": jnp.abs(x @ x_query) / lengths,
        "distance": jnp.linalg.norm(x - x_query),
        "flow": jnp.abs(covariance) / (variance + noise_var),
        "surprise": jnp.abs(prompt.y[-1] - before @ x),
        "correlation": jnp.abs(covariance) / jnp.sqrt(variance * (x_query @ spread_query)),
        "variance": variance,
        "without": before @ x_query,
        "with": after @ x_query,
    }


def gains(without: Array, with_it: Array, target: Array) -> Array:  # [B] x 3 -> [B]
    """Squared error without it less that with it. Against the Bayes answer to the whole prompt in
    the target's place it is the expected gain, given all that the prompt shows."""
    return (without - target) ** 2 - (with_it - target) ** 2


def answers(models, batches):  # Model [R], Prompt [R, B] -> without, with the last [R, B]
    def answer_both(row):
        model, batch = row
        return model.predict(jax.vmap(drop_last)(batch)), model.predict(batch)

    models = models.replace(params=jax.tree.map(jnp.asarray, models.params))
    return moments.compiled(partial(jax.lax.map, answer_both))((models, batches))


def learners(config, models):  # -> {name: Model [R]}
    trained = {name: runs.models(seeds=slice(config.runs)) for name, runs in models.items()}
    _, last = config.models[-1]
    keys = jax.random.split(jax.random.fold_in(jax.random.key(config.seed), 2**20), config.runs)
    return trained | {UNTRAINED: Model(last, jax.vmap(partial(init, last))(keys))}


def compute(config: Config, models, *, progress=None, checkpoints=None):
    task = config.models[0][1].task
    law = tasks.distribution(task, dtype=jnp.float32)
    keys = jax.random.split(jax.random.key(config.seed), config.runs)
    batches = jax.jit(jax.vmap(partial(tasks.draw, task=law, size=config.prompts)))(keys)
    exact = jax.tree.map(lambda leaf: leaf.astype(float), batches)
    of_prompt = jax.vmap(jax.vmap(partial(factors_of, noise_var=task.noise_std**2)))
    factors = {name: np.asarray(values) for name, values in jax.jit(of_prompt)(exact).items()}
    before, best = factors.pop("without"), factors.pop("with")
    both = {BAYES: (before, best)}
    for name, model in learners(config, models).items():
        both[name] = tuple(np.asarray(part, float) for part in answers(model, batches))
    targets, summaries, risks = np.asarray(exact.y_query), [], []
    for without, with_it in both.values():
        expected, actual = (gains(without, with_it, t) for t in (best, targets))
        zero = ((without - targets) ** 2).mean(1)
        risks.append(((with_it - targets) ** 2).mean(1))
        of_run = [{name: values[r] for name, values in factors.items()} for r in range(config.runs)]
        rows = zip(of_run, expected, actual, zero, strict=True)
        summaries.append([summary(*row, config.classes) for row in rows])
    return xr.Dataset(
        {
            name: (
                ("learner", "run", *axes),
                np.array([[of_run[name] for of_run in row] for row in summaries]),
            )
            for name, axes in AXES.items()
        }
        | {"risk": (("learner", "run"), np.array(risks))},
        {
            "learner": list(both),
            "reading": list(READINGS),
            "scale": ["squares", "sizes"],
            "form": ["product", "sum"],
            "predictor": [*READINGS, *(f"single: {name}" for name in SINGLES)],
        },
    )
