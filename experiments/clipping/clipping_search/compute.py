"""Does A2's search for a clipping rate improve models on unseen prompts?"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.clipping import trained_models
from experiments.clipping.clipping_search.config import (
    ALGORITHM,
    COMPOSED,
    SEARCHES,
    TRAINED,
    WIDE,
    Config,
)
from experiments.clipping.transformers import PARTS, spec_of
from experiments.models import tasks
from lsa_lab.analyses import clipping


def searches(config):  # {name: (risk, params, validation, test) -> Search}, but for the patient
    attention, mlp = PARTS.values()
    first = partial(clipping.search, rates=config.rates, top_k=config.top_k)
    wide = dict(rates=config.rates, modules=(attention, mlp))
    ways = (
        partial(first, modules=attention),
        partial(first, modules=mlp),
        partial(clipping.search_everywhere, **wide),
        partial(clipping.compose, **wide),
    )
    return dict(zip((*ALGORITHM, WIDE, COMPOSED), ways, strict=True))


def shifted_tasks(config):
    """The tasks by name; all have prompts as large as w ~ N(0, I) gives but for the scale of x."""
    spec = spec_of(config).task
    d, task = spec.d, tasks.distribution(spec, dtype=jnp.float32)
    task = task.replace(covariance=jnp.eye(d, dtype=jnp.float32))
    return {
        TRAINED: task,
        "no noise": task.replace(noise_std=0.0),
        f"noise {config.noisy:g}": task.replace(noise_std=config.noisy),
        f"{config.short} shots": task.replace(n=config.short),
        f"inputs × {config.small:g}": task.replace(covariance=config.small**2 * task.covariance),
        f"inputs × {config.large:g}": task.replace(covariance=config.large**2 * task.covariance),
        f"{config.sparsity} of {d} weights": task.replace(
            sparsity=config.sparsity, weight_std=(d / config.sparsity) ** 0.5
        ),
    }


@partial(jax.jit, static_argnums=(2, 3))
def draw(keys, task, size, n):  # -> Prompt [R, B]
    """Prompts of n demonstrations, each as often as it takes: softmax reads a demonstration given
    k times as it reads it once, if all are given k times."""
    batch = jax.vmap(partial(tasks.draw, task=task, size=size))(keys)
    repeats = n // task.n
    return batch.replace(x=jnp.tile(batch.x, (1, 1, repeats, 1)), y=jnp.tile(batch.y, repeats))


def search_runs(ways, risk, params, prompts, more, config):
    """The outcomes of every way, run by run; the first of a run's prompts choose, the last test.
    Algorithm 1 searches once more, with ``more`` prompts."""
    outcomes = []
    for run in range(len(params.w_q)):
        model, own, others = jax.tree.map(lambda leaf: leaf[run], (params, prompts, more))  # noqa: B023
        validation = jax.tree.map(lambda leaf: leaf[: config.validation], own)
        test = jax.tree.map(lambda leaf: leaf[config.validation :], own)
        few = {name: search(risk, model, validation, test) for name, search in ways.items()}
        many = [ways[name](risk, model, others, test) for name in ALGORITHM]
        outcomes += [*(few[name] for name in ALGORITHM), *many, few[WIDE], few[COMPOSED]]
    return outcomes


def compute(config: Config, models, *, progress=None, checkpoints=None):
    import xarray as xr

    finished, spec = models["transformer"], spec_of(config)
    params = trained_models.final(trained_models.path_of(finished))
    risk = trained_models.squared_error(spec)
    root, runs = jax.random.fold_in(jax.random.key(config.seed), 3), len(params.w_q)
    named, ways = shifted_tasks(config), searches(config)
    in_turn = list(named.values())
    if progress is not None:
        in_turn = progress.track(in_turn, description="clipping_search: tasks")
    outcomes, tests = [], []
    for tag, task in enumerate(in_turn):
        keys = jax.random.split(jax.random.fold_in(root, tag), runs)
        prompts = draw(keys, task, config.validation + config.test, config.n)
        keys = jax.random.split(jax.random.fold_in(root, len(named) + tag), runs)
        more = draw(keys, task, config.more_validation, config.n)
        outcomes += search_runs(ways, risk, params, prompts, more, config)
        tests.append(jax.tree.map(lambda leaf: leaf[:, config.validation :], prompts))

    def table(read):
        numbers = np.array([read(outcome) for outcome in outcomes])
        return ("task", "run", "search"), numbers.reshape(len(named), runs, len(SEARCHES))

    return xr.Dataset(
        {
            "validation_gain": table(lambda outcome: outcome.validation_gain / outcome.test_risk),
            "test_gain": table(lambda outcome: outcome.test_gain / outcome.test_risk),
            "low": table(lambda outcome: outcome.test_interval[0] / outcome.test_risk),
            "high": table(lambda outcome: outcome.test_interval[1] / outcome.test_risk),
            "risk": table(lambda outcome: outcome.test_risk),
            "passes": table(lambda outcome: outcome.forward_passes),
            "edits": table(lambda outcome: len(outcome.edits)),
            # Of the last edit; layer 0, rate 0: none.
            "layer": table(lambda outcome: outcome.edits[-1].layers[0] + 1 if outcome.edits else 0),
            "rate": table(lambda outcome: outcome.edits[-1].rate if outcome.edits else 0.0),
            "ridge": ("run", trained_models.ridge_risks(tests[0], spec.task.noise_std)),
            "status": ("trained", [str(status) for status in finished.status]),
        },
        {"task": list(named), "search": list(SEARCHES)},
    )
