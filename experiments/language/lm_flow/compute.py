"""Flows to the demonstrations of a prompt, layer by layer, and what single ones are worth."""

import itertools

import numpy as np

from experiments.language import decoders, sentences, singles
from experiments.language.cells import cells
from experiments.language.lm_flow import measures
from experiments.language.lm_flow.config import READS, ROWS, Config
from lsa_lab.store.results import in_short

PARTS = ("alone", "shared", "untrained", "single")  # of a run, each kept by itself


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    model, tasks = decoders.decoder(config), [task for _, task in config.tasks]
    texts = [singles.texts(model, config, task) for task in tasks]
    shape = len(tasks), config.runs

    def run(place: int, number: int) -> measures.Run:
        writer, kept = texts[place]
        sets = sentences.sets(kept, tasks[place], config, number, place, others=config.pool)
        return measures.Run(model, writer, sets, config, number)

    def table(part: str) -> dict[str, np.ndarray]:  # {name: [task, run, ...]}
        measure, places = getattr(measures, part), itertools.product(*map(range, shape))
        folder, label = checkpoints and checkpoints / part, f"lm_flow: {part}"
        values = cells(places, lambda cell: measure(run(*cell)), folder, progress, label)
        return {name: x.reshape(*shape, *x.shape[1:]) for name, x in values.items()}

    of = {part: table(part) for part in PARTS}
    flows = ("task", "run", "demonstration", "query", "layer", "read")
    prompts = (*flows[:2], "rotation", *flows[2:])
    single = ("task", "run", "single", "fresh")
    return xr.Dataset(
        {
            "alone": (flows, of["alone"]["flow"]),
            "length": (flows[:3], of["alone"]["length"]),
            "shared": (prompts, of["shared"]["flow"]),
            "untrained": (prompts, of["untrained"]["flow"]),
            "place": (("rotation", flows[2]), measures.places(config.shots)),
            "worth": (single, of["single"]["worth"]),
            "same_label": (single, of["single"]["same_label"]),
            "relevance": (
                ("task", "run", "rows", "single", "fresh"),
                of["single"]["relevance"],
            ),
            "novelty": (single[:3], of["single"]["novelty"]),
            "zero_shot": (("task", "run", "fresh"), of["single"]["zero_shot"]),
        },
        {
            "task": [name for name, _ in config.tasks],
            "layer": list(config.layers),
            "read": list(READS),
            "rows": list(ROWS),
        },
    ).map(in_short)
