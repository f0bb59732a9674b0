"""Flows to the demonstrations of a prompt, layer by layer, and what single ones are worth."""

import jax.numpy as jnp
import numpy as np

from experiments.language import cells, decoders, sentences, singles
from experiments.language.lm_flow import measures
from experiments.language.lm_flow.config import READS, ROWS, Config
from lsa_lab.analyses import disparity

PARTS = {name: getattr(measures, name) for name in ("alone", "shared", "untrained", "single")}


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    model, tasks = decoders.decoder(config), dict(config.tasks)
    texts = {name: singles.texts(model, config, task) for name, task in tasks.items()}
    order = list(tasks)

    def cell(name: str, part: str, number: int) -> dict[str, np.ndarray]:
        writer, kept = texts[name]
        sets = sentences.sets(kept, tasks[name], config, number, order.index(name), config.pool)
        return PARTS[part](measures.Run(model, writer, sets, config, number))

    places = [(name, part, run) for part in PARTS for name in tasks for run in range(config.runs)]
    values = cells.cells(places, lambda place: cell(*place), checkpoints, progress, "prompts")

    def of(part: str, name: str = "flow") -> np.ndarray:  # [task, run, ...]
        own = {place: arrays for place, arrays in values.items() if place[1] == part}
        return cells.stack(own, name, (len(tasks), config.runs))

    flows = ("task", "run", "demonstration", "query", "layer", "read")
    prompts = (*flows[:2], "rotation", *flows[2:])
    single = ("task", "run", "single", "fresh")
    gini = disparity.gini(jnp.moveaxis(jnp.asarray(of("shared")), prompts.index(flows[2]), -1))
    return xr.Dataset(
        {
            "alone": (flows, of("alone")),
            "length": (flows[:3], of("alone", "length")),
            "shared": (prompts, of("shared")),
            "untrained": (prompts, of("untrained")),
            "gini": ([name for name in prompts if name != flows[2]], np.asarray(gini)),
            "place": (("rotation", flows[2]), measures.places(config.shots)),
            "worth": (single, of("single", "worth")),
            "same_label": (single, of("single", "same_label")),
            "relevance": (
                ("task", "run", "rows", "single", "fresh"),
                of("single", "relevance"),
            ),
            "novelty": (single[:3], of("single", "novelty")),
            "zero_shot": (("task", "run", "fresh"), of("single", "zero_shot")),
        },
        {"task": order, "layer": list(config.layers), "read": list(READS), "rows": list(ROWS)},
    )
