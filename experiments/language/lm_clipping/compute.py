"""Which layers of a language model tolerate clipping, and is anything gained but label bias?"""

import itertools

import numpy as np

from experiments.language import decoders, label_scores, sentences
from experiments.language.cells import cells
from experiments.language.edits import Edits
from experiments.language.lm_clipping.config import DROPPED, MATRICES, PARTS, READINGS, Config
from lsa_lab.analyses.clipping import DROP
from lsa_lab.lm import readings
from lsa_lab.lm.text import CONTENT_FREE


class Readings:
    """What a decoder's label scores say, as it is and after edits of its layers."""

    def __init__(self, decoder):
        self.decoder, self.edits = decoder, Edits(decoder.params)

    def __call__(self, task, demonstrations, queries, edits):  # -> scores [B, C], readings [E, 3]
        """The scores of the decoder as it is, and what those after each edit (layer, module, rate)
        say of the queries without the content-free texts at their end."""
        template, labels = sentences.template(task), queries.labels[: -len(CONTENT_FREE)]
        questions = label_scores.questions(self.decoder, template, demonstrations, queries)
        layers = {layer for layer, *_ in edits}
        kept = label_scores.keep(self.decoder, questions, layers)
        plain = label_scores.label_scores(self.decoder, kept, max(layers))
        edited = []
        for layer, *change in edits:
            model = self.edits(layer, *change)
            scores = label_scores.label_scores(self.decoder, kept, layer, model)
            edited.append(of_scores(scores[: len(labels)], labels))
        return plain, np.array(edited)


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    read = Readings(decoders.decoder(config))
    pools = [sentences.of_task(task) for _, task in config.tasks]
    most = max(config.other_shots)
    ends = (min(config.layers), max(config.layers))
    rates = (*config.rates, DROP)
    parts = list(itertools.product(config.layers, PARTS.values(), rates))
    matrices = [(layer, name, config.matrix_rate) for layer in ends for name in MATRICES]
    at_ends = list(itertools.product(ends, PARTS.values(), [max(config.rates)]))

    def cell(place):
        number, run = place
        task = config.tasks[number][1]
        every, fresh, _ = sentences.sets(pools[number], task, config, run, number, shots=most)
        every, queries = sentences.alternating(every), sentences.with_content_free(fresh)
        own = every.take(range(config.shots))
        plain, edited = read(task, own, queries, parts + matrices)
        values = {"edited": edited[: len(parts)], "matrix": edited[len(parts) :]}
        values |= of_plain(plain, fresh.labels)
        for shots in config.other_shots:
            plain, edited = read(task, every.take(range(shots)), queries, at_ends)
            unclipped = of_plain(plain, fresh.labels)["unclipped"]
            values |= {f"edited_{shots}": edited, f"unclipped_{shots}": unclipped}
        return values

    places = list(itertools.product(range(len(config.tasks)), range(config.runs)))
    values = cells(places, cell, checkpoints, progress, "lm_clipping: sets of demonstrations")
    shape, axes = (len(config.tasks), config.runs), ("task", "run")

    def rows(name, *grid):
        table = values[name]
        return table.reshape(*shape, *grid, *table.shape[1 + bool(grid) :])

    def at_shots(name, *grid):
        return np.stack([rows(f"{name}_{shots}", *grid) for shots in config.other_shots], axis=2)

    number = (len(config.layers), len(PARTS), len(rates))
    return xr.Dataset(
        {
            "unclipped": ((*axes, "reading"), rows("unclipped")),
            "rival": ((*axes, "rival_of"), rows("rival")),
            "edited": ((*axes, "layer", "part", "rate", "reading"), rows("edited", *number)),
            "matrix_edited": (
                (*axes, "end", "matrix", "reading"),
                rows("matrix", len(ends), len(MATRICES)),
            ),
            "shots_unclipped": ((*axes, "shots", "reading"), at_shots("unclipped")),
            "shots_edited": (
                (*axes, "shots", "end", "part", "reading"),
                at_shots("edited", len(ends), len(PARTS)),
            ),
        },
        {
            "task": [name for name, _ in config.tasks],
            "reading": list(READINGS),
            "rival_of": ["calibrated", "threshold"],
            "layer": list(config.layers),
            "part": list(PARTS),
            "rate": [*config.rates, DROPPED],
            "end": list(ends),
            "matrix": list(MATRICES),
            "shots": list(config.other_shots),
        },
    )


def of_scores(scores, labels) -> list[float]:
    """Accuracy, AUC, and the cross-entropy but for a constant shift."""
    own = (readings.accuracy, readings.auc, readings.cross_entropy_after_best_shift)
    return [reading(scores, labels) for reading in own]


def of_plain(scores, labels) -> dict:
    """The readings of the unclipped model, and the accuracies of its rivals to clipping."""
    own, free = scores[: len(labels)], scores[len(labels) :]
    calibrated = readings.accuracy(readings.contextual_calibration(own, free), labels)
    fitted = readings.accuracy_after_best_shift(own, labels)
    return {"unclipped": of_scores(own, labels), "rival": [calibrated, fitted]}
