"""Scores of single demonstrations by every rule, their worth, and the prompts that are selected."""

import numpy as np

from experiments.language import cells, decoders, sentences, singles
from experiments.language.lm_grads import measures
from experiments.language.lm_grads.config import READS, RULES, Config


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    model, tasks = decoders.decoder(config), dict(config.tasks)
    texts = {name: singles.texts(model, config, task) for name, task in tasks.items()}
    order = list(tasks)

    def cell(name: str, number: int) -> dict[str, np.ndarray]:
        writer, kept = texts[name]
        sets = sentences.sets(kept, tasks[name], config, number, order.index(name), config.pool)
        run = measures.Run(model, writer, sets, config, number)
        of_pool = measures.of_pool(run)
        return of_pool | measures.of_prompts(run, of_pool["score"])

    places = [(name, run) for name in tasks for run in range(config.runs)]
    values = cells.cells(places, lambda place: cell(*place), checkpoints, progress, "pools")
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
            name: (("task", "run", *own), cells.stack(values, name, (len(tasks), config.runs)))
            for name, own in axes.items()
        },
        {"task": order, "rule": list(RULES), "layer": list(config.layers), "read": list(READS)},
    )
