"""Does A2's search for a clipping rate improve models on unseen prompts?"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from experiments.clipping import trained_models
from experiments.clipping.clipped_models import PARTS, spec_of
from experiments.clipping.clipping_search.config import SEARCHES, TASKS, Config
from experiments.models import tasks
from experiments.models.model import Model, cut
from lsa_lab.analyses import clipping
from lsa_lab.models import moments

MODULES = tuple(PARTS.values())


def shifted_tasks(config):
    """The tasks by name; all have prompts as large as w ~ N(0, I) gives but for the scale of x."""
    spec = spec_of(config).task
    d, task = spec.d, tasks.distribution(spec, dtype=jnp.float32)
    task = task.replace(covariance=jnp.eye(d, dtype=jnp.float32))
    others = (
        task.replace(noise_std=0.0),
        task.replace(noise_std=config.noisy),
        task.replace(n=config.short),
        task.replace(covariance=config.small**2 * task.covariance),
        task.replace(covariance=config.large**2 * task.covariance),
        task.replace(sparsity=config.sparsity, weight_std=(d / config.sparsity) ** 0.5),
    )
    return dict(zip(TASKS, (task, *others), strict=True))


@partial(jax.jit, static_argnums=(2, 3))
def draw(keys, task, size, n):  # -> Prompt [R, B]
    """Prompts of n demonstrations, each as often as it takes: softmax reads a demonstration given
    k times as it reads it once, if all are given k times."""
    batch = jax.vmap(partial(tasks.draw, task=task, size=size))(keys)
    repeats = n // task.n
    return batch.replace(x=jnp.tile(batch.x, (1, 1, repeats, 1)), y=jnp.tile(batch.y, repeats))


def algorithm_layers(params, top_k):  # -> [R, M]
    """The deepest of the ``top_k`` layers by condition number, for each run and module."""

    def deepest(run, module):
        own = jax.tree.map(lambda leaf: leaf[run], params)
        conditions = clipping.condition_numbers(own, module)
        return max(np.lexsort((np.arange(len(conditions)), conditions))[-top_k:])

    return np.array([[deepest(run, name) for name in MODULES] for run in range(len(params.w_q))])


def choose(change, layers):  # [R, K, M, Q], [R, M] -> [S, R], each the place (layer, module, rate)
    """The best edits on validation of Algorithm 1, for each module, and of a search of all; of
    equally good ones that with the least rate, which cuts nothing."""
    runs, chosen = range(len(change)), []
    for module in range(len(MODULES)):
        own = [change[run, layers[run, module], module].argmin() for run in runs]
        chosen.append([(layers[run, module], module, own[run]) for run in runs])
    flat = np.moveaxis(change, 3, 1).reshape(len(change), -1).argmin(1)
    rates, depths, modules = np.unravel_index(flat, np.moveaxis(change, 3, 1).shape[1:])
    return [*chosen, list(zip(depths, modules, rates, strict=True))]


@partial(moments.compiled, static_argnums=0)
def answers(spec, params, batch):  # [R, ...] -> [R, B]
    """Answers of unclipped models, cut."""
    return jax.lax.map(
        lambda run: cut(Model(spec, run[0]).predict(run[1]), run[1]), (params, batch)
    )


def scaled_gain(spec, params, validation, test):  # -> [R]
    """What the answer gains by the one factor that is best on validation: Σ ŷ y / Σ ŷ²."""
    first, own = (np.asarray(answers(spec, params, each)) for each in (validation, test))
    factor = (first * validation.y_query).sum(1) / (first**2).sum(1)
    before, after = (((scale * own - test.y_query) ** 2).mean(1) for scale in (1, factor[:, None]))
    return 1 - after / before


def search_task(spec, params, layers, prompts, config):
    """The variables of one task: [R], or [S, R] of searches."""
    validation, test = (
        jax.tree.map(lambda leaf, at=at: leaf[:, at], prompts)
        for at in (slice(config.validation), slice(config.validation, None))
    )
    grid = dict(modules=MODULES, rates=config.rates)
    _, change = trained_models.relative_curve(spec, params, validation, **grid)
    places = choose(change, layers)
    edits = [[(k, MODULES[m], config.rates[q]) for k, m, q in each] for each in places]
    return {
        "validation_gain": [[-change[r][place] for r, place in enumerate(each)] for each in places],
        "test_gain": trained_models.gains(spec, params, test, edits),
        "scaled_gain": scaled_gain(spec, params, validation, test),
        "risk": trained_models.own_risks(spec)(params, test),
        "zero": (test.y_query**2).mean(1),  # the risk of predicting 0
    }


def compute(config: Config, models, *, progress=None, checkpoints=None):
    finished, spec = models["transformer"], spec_of(config)
    params = trained_models.final(trained_models.path_of(finished))
    root, runs = jax.random.fold_in(jax.random.key(config.seed), 3), len(params.w_q)
    layers = algorithm_layers(params, config.top_k)
    in_turn = list(shifted_tasks(config).values())
    if progress is not None:
        in_turn = progress.track(in_turn, description="clipping_search: tasks")
    rows = []
    for tag, task in enumerate(in_turn):
        keys = jax.random.split(jax.random.fold_in(root, tag), runs)
        prompts = draw(keys, task, config.validation + config.test, config.n)
        rows.append(search_task(spec, params, layers, prompts, config))
        if tag == 0:
            test = jax.tree.map(lambda leaf: leaf[:, config.validation :], prompts)
            ridge = trained_models.ridge_risks(test, spec.task.noise_std)
    tables = {name: np.array([row[name] for row in rows], float) for name in rows[0]}
    axes = {2: ("task", "run"), 3: ("task", "search", "run")}
    data = {name: (axes[table.ndim], table) for name, table in tables.items()}
    data |= {"ridge": ("run", ridge), "status": ("trained", [str(s) for s in finished.status])}
    return xr.Dataset(data, {"task": list(TASKS), "search": list(SEARCHES)})
