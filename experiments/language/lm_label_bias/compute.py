"""Is what clipping gains on two-class prompts more than a shift of label bias?"""

import functools
import itertools

import numpy as np

from experiments.language import decoders, label_scores, sentences
from experiments.language.cells import cells
from experiments.language.edits import Edits
from experiments.language.lm_label_bias.config import UNCLIPPED, Config, edits


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

    def sets(number, run):
        size = config.fresh if number < len(config.tasks) else config.attack_fresh
        task = wordings[number][1]
        return task, sentences.sets(pools[number], task, config, run, number, fresh=size)

    def judge(place):
        task, (demonstrations, fresh, _) = sets(*place)
        queries, changes = sentences.with_content_free(fresh), edits(config).values()
        values = margins(task, demonstrations, queries, config.deep, changes)
        margin, free = np.split(values, [len(fresh)], axis=1)
        return {"margin": margin, "content_free": free[0], "label": fresh.labels}

    def judge_control(place):
        task, (demonstrations, fresh, _) = sets(*place)
        few, change = fresh.take(range(config.control_fresh)), ("mlp", max(config.rates))
        return {"margin": margins(task, demonstrations, few, config.shallow, [change])}

    def table(kind, numbers, judge):
        places = list(itertools.product(numbers, range(config.runs)))
        folder = checkpoints and checkpoints / kind
        values = cells(places, judge, folder, progress, f"lm_label_bias: {kind}")
        shape = (len(numbers), config.runs)
        return {name: x.reshape(*shape, *x.shape[1:]) for name, x in values.items()}

    control = table("control", [0], judge_control)["margin"][0]
    variables = {"control_margin": (("run", "control_edit", "control_sentence"), control)}
    coordinates = {"edit": [UNCLIPPED, *edits(config)]}
    first = 0
    for kind, named in (("task", config.tasks), ("attack", config.attacks)):
        numbers, first = range(first, first + len(named)), first + len(named)
        if named:
            coordinates[kind] = [name for name, _ in named]
            for name, values in table(kind, numbers, judge).items():
                variables[f"{kind}_{name}"] = ((kind, "run", *AXES[name](kind)), values)
    return xr.Dataset(variables, coordinates)


AXES = {
    "margin": lambda kind: ("edit", f"{kind}_sentence"),
    "content_free": lambda kind: ("text",),
    "label": lambda kind: (f"{kind}_sentence",),
}
