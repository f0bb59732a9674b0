"""What a demonstration is worth to the Bayes rule and to trained models, in classes of it."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.flow.relevance_and_novelty import cells, worth
from experiments.flow.relevance_and_novelty.config import (
    BAYES,
    READINGS,
    SINGLES,
    UNTRAINED,
    Config,
)
from experiments.models import tasks
from experiments.models.model import Model, init
from lsa_lab.models import moments

AXES = {
    "map": ("reading", "relevance", "novelty"),
    "rise": ("reading",),
    "r2": ("scale", "reading", "form"),
    "between": ("predictor",),
    "single": (),
}


def answers(models, batches):  # Model [R], Prompt [R, B] -> without, with the last [R, B]
    def answer_both(row):
        model, batch = row
        return model.predict(jax.vmap(worth.drop_last)(batch)), model.predict(batch)

    models = models.replace(params=jax.tree.map(jnp.asarray, models.params))
    return moments.compiled(partial(jax.lax.map, answer_both))((models, batches))


def learners(config, models):  # -> {name: Model [R]}
    trained = {name: runs.models(seeds=slice(config.runs)) for name, runs in models.items()}
    _, last = config.models[-1]
    keys = jax.random.split(jax.random.fold_in(jax.random.key(config.seed), 2**20), config.runs)
    return trained | {UNTRAINED: Model(last, jax.vmap(partial(init, last))(keys))}


def compute(config: Config, models, *, progress=None, checkpoints=None):
    import xarray as xr

    task = config.models[0][1].task
    law = tasks.distribution(task, dtype=jnp.float32)
    keys = jax.random.split(jax.random.key(config.seed), config.runs)
    batches = jax.jit(jax.vmap(partial(tasks.draw, task=law, size=config.prompts)))(keys)
    exact = jax.tree.map(lambda leaf: leaf.astype(float), batches)
    of_prompt = jax.vmap(jax.vmap(partial(worth.factors, noise_var=task.noise_std**2)))
    factors = {name: np.asarray(values) for name, values in jax.jit(of_prompt)(exact).items()}
    before, best = factors.pop("without"), factors.pop("with")
    both = {BAYES: (before, best)}
    for name, model in learners(config, models).items():
        both[name] = tuple(np.asarray(part, float) for part in answers(model, batches))
    targets, summaries, risks = np.asarray(exact.y_query), [], []
    for without, with_it in both.values():
        expected, actual = (worth.gains(without, with_it, t) for t in (best, targets))
        zero = ((without - targets) ** 2).mean(1)
        risks.append(((with_it - targets) ** 2).mean(1))
        of_run = [{name: values[r] for name, values in factors.items()} for r in range(config.runs)]
        rows = zip(of_run, expected, actual, zero, strict=True)
        summaries.append([cells.summary(*row, config.classes) for row in rows])
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
