"""Is what clipping gains on two-class prompts more than a shift of label bias?"""

import functools

import numpy as np

from experiments.language import decoders, label_scores, sentences
from experiments.language.cells import cells, stack
from experiments.language.edits import Edits
from experiments.language.lm_label_bias.config import Config
from experiments.language.lm_label_bias.statements import UNCLIPPED, edits


class Margins:
    """The log-odds of class 1 by a decoder as it is, and after each change of one layer."""

    def __init__(self, config: Config):
        self.decoder = decoders.decoder(config)
        self.edited = functools.cache(Edits(self.decoder.params))

    def __call__(self, task, demonstrations, queries, layer, changes):  # -> [1 + E, B]
        template = sentences.template(task)
        questions = label_scores.questions(self.decoder, template, demonstrations, queries)
        kept = label_scores.keep(self.decoder, questions, (layer,))
        models = (None, *(self.edited(layer, *change) for change in changes))
        scores = [label_scores.label_scores(self.decoder, kept, layer, model) for model in models]
        return np.stack([s[:, 1] - s[:, 0] for s in scores]).astype(np.float32)


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    margins, wordings = Margins(config), [*config.tasks, *config.attacks]
    pools = [sentences.of_task(task) for _, task in wordings]
    sizes = [config.fresh] * len(config.tasks) + [config.attack_fresh] * len(config.attacks)

    def cell(place):
        kind, number, run = place
        task, size = wordings[number][1], sizes[number]
        every = sentences.sets(pools[number], task, config, run, number, fresh=size)
        demonstrations, fresh, _ = every
        if kind == "control":
            few, change = fresh.take(range(config.control_fresh)), ("mlp", max(config.rates))
            return {"margin": margins(task, demonstrations, few, config.shallow, [change])}
        queries, changes = sentences.with_content_free(fresh), edits(config).values()
        values = margins(task, demonstrations, queries, config.deep, changes)
        margin, free = np.split(values, [len(fresh)], axis=1)
        return {"margin": margin, "content_free": free[0], "label": np.asarray(fresh.labels)}

    kinds = ["task"] * len(config.tasks) + ["attack"] * len(config.attacks)
    grid = [(kind, i, run) for i, kind in enumerate(kinds) for run in range(config.runs)]
    grid += [("control", 0, run) for run in range(config.runs)]
    values = cells(grid, cell, checkpoints, progress, "lm_label_bias: sets of demonstrations")
    control = [values["control", 0, run]["margin"] for run in range(config.runs)]
    variables = {"control_margin": (("run", "control_edit", "control_sentence"), control)}
    coordinates = {"edit": [UNCLIPPED, *edits(config)]}
    for kind in dict.fromkeys(kinds):
        rows = {place: cell for place, cell in values.items() if place[0] == kind}
        variables |= of_kind(kind, rows, (len(rows) // config.runs, config.runs))
        coordinates[kind] = [
            name for k, (name, _) in zip(kinds, wordings, strict=True) if k == kind
        ]
    return xr.Dataset(variables, coordinates)


def of_kind(kind: str, rows: dict, shape: tuple[int, int]) -> dict:
    """The variables of the tasks, or of the attacks, whose sentences are of another number."""
    sentence, front = f"{kind}_sentence", (kind, "run")
    axes = {"margin": ("edit", sentence), "content_free": ("text",), "label": (sentence,)}
    return {
        f"{kind}_{name}": ((*front, *own), stack(rows, name, shape)) for name, own in axes.items()
    }
