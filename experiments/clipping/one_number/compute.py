"""Clip, disturb and calibrate trained models on the same prompts."""

import itertools
import operator
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from experiments.clipping import trained_models
from experiments.clipping.clipped_models import PARTS
from experiments.clipping.one_number.config import (
    CLASSES,
    KINDS,
    MAPS,
    READINGS,
    REGRESSION,
    RULES,
    SEARCHES,
    TASKS,
    TRAINED,
    UNEDITED,
    Config,
)
from experiments.clipping.one_number.maps import accuracy, fit, read_classes, read_regression
from experiments.models import tasks
from experiments.models.model import Model, clip_predictions
from lsa_lab.analyses import clipping
from lsa_lab.lm import readings
from lsa_lab.models import moments
from lsa_lab.models.matrices import matrices


class Edited:
    """One trained model and edits of its layers, each as params of its own."""

    def __init__(self, spec, params, seed):
        self.spec, self.params, self.seed = spec, params, seed
        self.pieces = clipping.svd_terms(matrices(params, PARTS.values()))

    def params_of(self, kind, edit):
        layer, module, rate = edit
        kept = clipping.kept_ranks(self.params, clipping.Edit(layer, module, rate))
        clipped = clipping.rebuild(self.params, self.pieces, kept)
        return disturbed(self.params, clipped, self.seed) if kind == KINDS[1] else clipped

    def answers(self, edits, batch):  # [E] of (kind, edit), None for none; Prompt [B] -> [E, B]
        every = [self.params if edit is None else self.params_of(*edit) for edit in edits]
        stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *every)
        return np.asarray(predict(self.spec, stacked, batch), float)


def disturbed(params, clipped, seed):
    """The params with a Gaussian matrix in the place of what was cut away, as large in the
    Frobenius norm."""
    rng = np.random.default_rng(seed)

    def change(whole, own):
        size = np.linalg.norm(np.asarray(whole - own, float))
        noise = rng.standard_normal(whole.shape)
        return whole + jnp.asarray(size / np.linalg.norm(noise) * noise, whole.dtype)

    return jax.tree.map(change, params, clipped)


@partial(moments.compiled, static_argnums=0)
def predict(spec, stacked, batch):
    """Answers after each edit; those of regression are cut, as a clipped model may explode."""

    def answer(params):
        values = Model(spec, params).predict(batch)
        return values if spec.task.labels == "signs" else clip_predictions(values, batch)

    return jax.lax.map(answer, stacked)


def compute(config: Config, models, *, progress=None, checkpoints=None):
    root, rows, shares = jax.random.key(config.seed), {}, []
    for place, (name, spec) in enumerate(config.models):
        params = models[name].models(seeds=models[name].finished[0]).params
        runs = range(len(params.w_q))
        if progress is not None:
            runs = progress.track(runs, description=f"one_number: {name}")
        key, measured = jax.random.fold_in(root, place), []
        for run in runs:
            model = Edited(spec, jax.tree.map(operator.itemgetter(run), params), run)
            measured.append(measure_run(model, name, jax.random.fold_in(key, run), config))
        by_task, tables = zip(*measured, strict=True)
        rows[name] = np.moveaxis(np.array(by_task), 0, 1)  # [task, run, ...]
        shares.append(tables)
    return dataset_of(config, models, rows, shares)


def measure_run(model, name, key, config):  # -> [task, ...], the table of shares
    """What edits and maps do on every task, and how affine edits are on that of training."""
    n = max(model.spec.task.lengths)
    every = trained_models.shifted_tasks(model.spec, n // config.fewer, config.small, config.large)
    deepest = [
        trained_models.deepest(model.params, module, config.top_k) for module in PARTS.values()
    ]
    rows = []
    for own, label in zip(jax.random.split(key, len(TASKS)), TASKS, strict=True):
        batch = tasks.draw(own, every[label], config.validation + config.test)
        batch = trained_models.repeated(batch, n // every[label].n)
        validation, test = (
            jax.tree.map(lambda leaf, at=at: leaf[at], batch)
            for at in (slice(config.validation), slice(config.validation, None))
        )
        rows.append(search_task(model, name, deepest, validation, test, config))
        if label == TRAINED:
            table = share_table(model, validation, config)
    return rows, table


def dataset_of(config, models, rows, shares):
    depths = {spec.architecture.depth for _, spec in config.models}
    if len(depths) > 1 or len({len(own) for own in shares}) > 1:
        raise ValueError(f"models of {depths} layers: choose two of one depth and as many runs")
    gains = rows[REGRESSION]  # [task, run, M + 2 S]
    return xr.Dataset(
        {
            "test": (("task", "run", "rule", "reading"), rows[CLASSES]),
            "gain": (("task", "run", "map"), gains[..., : len(MAPS)]),
            "searched_gain": (("task", "run", "search"), gains[..., len(MAPS) : -len(SEARCHES)]),
            "gain_beyond": (("task", "run", "search"), gains[..., -len(SEARCHES) :]),
            "shares": (
                ("model", "run", "kind", "part", "layer", "clipping", "measure"),
                np.array(shares),
            ),
            "status": ("trained", [str(each) for each in models[REGRESSION].status]),
        },
        {
            "task": list(TASKS),
            "rule": list(RULES),
            "reading": list(READINGS),
            "map": list(MAPS),
            "search": list(SEARCHES),
            "model": [name for name, _ in config.models],
            "kind": list(KINDS),
            "part": list(PARTS),
            "layer": np.arange(depths.pop()) + 1,
            "clipping": list(config.rates),
            "measure": ["R2", "share"],
        },
    )


def share_table(model, batch, config):  # -> [kind, part, layer, rate, 2]
    """How far answers after each edit of the model are an affine map of those before it."""
    sizes = len(KINDS), len(PARTS), model.spec.architecture.depth, len(config.rates)
    edits = [
        (kind, (layer, module, rate))
        for kind, module, layer, rate in itertools.product(
            KINDS, PARTS.values(), range(sizes[2]), config.rates
        )
    ]
    plain, *edited = model.answers([None, *edits], batch)
    return np.reshape([readings.affine_shares(plain, own) for own in edited], (*sizes, 2))


def search_task(model, name, deepest, validation, test, config):
    """What searches and maps of the answer do on one task."""
    places = itertools.product(KINDS, zip(deepest, PARTS.values(), strict=True))
    edits = [[(kind, (*place, rate)) for rate in config.rates] for kind, place in places]
    plain, *tried = model.answers([None, *itertools.chain(*edits)], validation)
    tried = np.reshape(tried, (len(edits), len(config.rates), -1))
    judge = accuracy if name == CLASSES else fit
    chosen, before = [], []
    for own, answers in zip(edits, tried, strict=True):
        goods = [judge(values, validation) for values in answers]
        best = int(np.argmax(goods))
        gains = goods[best] > judge(plain, validation)
        chosen.append(own[best] if gains else None)
        before.append(answers[best] if gains else plain)
    unedited, *after = model.answers([None, *chosen], test)
    pairs = {UNEDITED: (plain, unedited)}
    pairs |= zip(SEARCHES, zip(before, after, strict=True), strict=True)
    if name != CLASSES:
        return read_regression(pairs, validation, test)
    free = [
        model.answers([None], each.replace(x_query=jnp.zeros_like(each.x_query)))[0]
        for each in (validation, test)
    ]
    return read_classes(pairs, free, validation, test)
