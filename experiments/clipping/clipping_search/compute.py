"""Does A2's search for a clipping rate improve models on unseen prompts?"""

from functools import partial

import jax
import numpy as np
import xarray as xr

from experiments.clipping import trained_models
from experiments.clipping.clipped_models import PARTS, spec_of
from experiments.clipping.clipping_search.config import SEARCHES, TASKS, TRAINED, Config
from experiments.models import tasks
from experiments.models.model import Model, clip_predictions
from lsa_lab.models import moments

MODULES = tuple(PARTS.values())


def tasks_of(config):
    spec, d = spec_of(config), spec_of(config).task.d
    by_name = trained_models.shifted_tasks(spec, config.short, config.small, config.large)
    task = by_name[TRAINED]
    by_name["more noise"] = task.replace(noise_std=config.noisy)
    by_name["sparse weights"] = task.replace(
        sparsity=config.sparsity, weight_std=(d / config.sparsity) ** 0.5
    )
    return {name: by_name[name] for name in TASKS}


@partial(jax.jit, static_argnums=(2, 3))
def draw(keys, task, size, n):  # -> Prompt [R, B], each of n demonstrations
    batch = jax.vmap(partial(tasks.draw, task=task, size=size))(keys)
    return trained_models.repeated(batch, n // task.n)


def algorithm_layers(params, top_k):  # -> [R, M]
    each = [jax.tree.map(lambda leaf, run=run: leaf[run], params) for run in range(len(params.w_q))]
    return np.array(
        [[trained_models.deepest(own, name, top_k) for name in MODULES] for own in each]
    )


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
        lambda run: clip_predictions(Model(spec, run[0]).predict(run[1]), run[1]), (params, batch)
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
    in_turn = list(tasks_of(config).values())
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
