"""Scores of single demonstrations by every rule, their worth, and the prompts that are selected."""

import itertools

import numpy as np

from experiments.language import decoders, sentences, singles
from experiments.language.cells import cells
from experiments.language.lm_grads import measures
from experiments.language.lm_grads.config import READS, RULES, Config
from lsa_lab.store.results import in_short


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    model, tasks = decoders.decoder(config), [task for _, task in config.tasks]
    texts = [singles.texts(model, config, task) for task in tasks]

    def judge(cell: tuple[int, int]) -> dict[str, np.ndarray]:
        (place, number), (writer, kept) = cell, texts[cell[0]]
        sets = sentences.sets(kept, tasks[place], config, number, place, others=config.pool)
        run = measures.Run(model, writer, sets, config, number)
        of_pool = measures.of_pool(run)
        return of_pool | measures.of_prompts(run, of_pool["score"])

    shape = len(tasks), config.runs
    places = itertools.product(*map(range, shape))
    values = cells(places, judge, checkpoints, progress, "lm_grads: pools")
    pair = ("demonstration", "query")
    axes = {
        "flow": (*pair, "layer", "read"),
        "score": ("rule", *pair),
        "worth": pair,
        "before": ("query", "class"),
        "length": pair[:1],
        "pool_label": pair[:1],
        "label": pair[1:],
        "prompt": ("rule", "query"),
        "random_prompt": ("draw", "query"),
        "chosen": ("rule", "query", "shot"),
    }
    return xr.Dataset(
        {
            name: (("task", "run", *own), values[name].reshape(*shape, *values[name].shape[1:]))
            for name, own in axes.items()
        },
        {
            "task": [name for name, _ in config.tasks],
            "rule": list(RULES),
            "layer": list(config.layers),
            "read": list(READS),
        },
    ).map(in_short)
