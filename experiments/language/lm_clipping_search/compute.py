"""Does A2's search for a clipping rate improve a language model on fresh sentences?"""

import itertools

import numpy as np

from experiments.language import decoders, label_scores, sentences
from experiments.language.cells import cells
from experiments.language.edits import Edits
from experiments.language.lm_clipping_search.config import PARTS, SEARCHES, WIDE, Config
from lsa_lab.analyses.clipping.ranks import condition
from lsa_lab.lm import readings
from lsa_lab.lm.text import CONTENT_FREE
from lsa_lab.models import leaves

READ = ("accuracy", "auc", "fitted")


class Scores:
    """The label scores of questions after demonstrations, by a decoder and its edits."""

    def __init__(self, decoder, edits, task, demonstrations, queries, layers):
        template = sentences.template(task)
        questions = label_scores.questions(decoder, template, demonstrations, queries)
        self.decoder, self.edits = decoder, edits
        self.kept = label_scores.keep(decoder, questions, layers)
        self.plain = label_scores.label_scores(decoder, self.kept, max(layers))

    def __call__(self, edit):  # (layer, module, rate), or None -> [B, C]
        if edit is None:
            return self.plain
        model = self.edits(*edit)
        return label_scores.label_scores(self.decoder, self.kept, edit[0], model)


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    decoder = decoders.decoder(config)
    edits, pools = Edits(decoder.params), [sentences.of_task(task) for _, task in config.tasks]
    conditions = {part: condition_numbers(decoder.params, part) for part in PARTS}
    places = candidates(config, conditions)
    layers = sorted({layer for edits in places.values() for layer, *_ in edits})

    def judge(place):
        number, run = place
        task = config.tasks[number][1]
        demonstrations, fresh, others = sentences.sets(
            pools[number], task, config, run, number, others=config.validation
        )
        validation = Scores(decoder, edits, task, demonstrations, others, layers)
        base = readings.accuracy(validation.plain, others.labels)
        tried = {edit: validation(edit) for every in places.values() for edit in every}
        gains = {edit: readings.accuracy(s, others.labels) - base for edit, s in tried.items()}
        chosen = {name: best(every, gains) for name, every in places.items()}
        at = {edit[0] for edit in chosen.values() if edit} or {max(layers)}
        queries = sentences.with_content_free(fresh)
        test = Scores(decoder, edits, task, demonstrations, queries, at)
        tried[None] = validation.plain
        models = [None, *chosen.values()]
        fits = [(tried[edit], others.labels) for edit in models]
        rows = [
            tested(test(edit), fresh.labels, *fit) for edit, fit in zip(models, fits, strict=True)
        ]
        return {
            "validation_gain": [gains.get(edit, 0.0) for edit in chosen.values()],
            "layer": [edit[0] if edit else -1 for edit in chosen.values()],
            "rate": [edit[2] if edit else 0.0 for edit in chosen.values()],
            "module": [
                list(PARTS.values()).index(edit[1]) if edit else -1 for edit in chosen.values()
            ],
            "unclipped": rows[0],
            "clipped": rows[1:],
            "calibrated": calibrated(test.plain, fresh.labels),
        }

    grid = list(itertools.product(range(len(config.tasks)), range(config.runs)))
    values = cells(grid, judge, checkpoints, progress, "lm_clipping_search: sets of demonstrations")
    shape = (len(config.tasks), config.runs)
    axes = {"unclipped": ("reading",), "clipped": ("search", "reading"), "calibrated": ()}
    variables = {
        name: (("task", "run", *axes.get(name, ("search",))), x.reshape(*shape, *x.shape[1:]))
        for name, x in values.items()
    }
    variables["condition"] = (("part", "depth"), np.stack(list(conditions.values())))
    return xr.Dataset(
        variables,
        {
            "task": [name for name, _ in config.tasks],
            "search": list(SEARCHES),
            "reading": list(READ),
            "part": list(PARTS),
        },
    )


def condition_numbers(params, part) -> np.ndarray:  # [L]
    """s_1/s_min of each layer, of a part's matrices the largest; heads are stacked."""
    every = leaves.matrices(params, PARTS[part]).values()
    spectra = (np.linalg.svd(np.asarray(x, float), compute_uv=False) for x in every)
    return np.max([np.asarray(condition(values)) for values in spectra], axis=0)


def candidates(config, conditions) -> dict[str, list[tuple]]:
    """The edits (layer, module, rate) that each search tries, the smallest rates first."""
    by_search = {}
    for (part, module), name in zip(PARTS.items(), SEARCHES, strict=False):
        largest = np.argsort(conditions[part], kind="stable")[-config.top_k :]
        by_search[name] = [(int(max(largest)), module, rate) for rate in config.rates]
    grid = itertools.product(config.wide_rates, config.wide_layers, PARTS.values())
    wide = [(layer, module, rate) for rate, layer, module in grid]
    return by_search | {WIDE: wide}


def best(edits, gains):
    """The first of those that gain most on validation; None where none gains."""
    chosen = max(edits, key=lambda edit: gains[edit])
    return chosen if gains[chosen] > 0 else None


def tested(scores, labels, validation, validation_labels) -> list[float]:
    """Accuracy, AUC, and the accuracy at the threshold fitted on validation."""
    own = scores[: len(labels)]
    shift = readings.best_threshold_shift(validation, validation_labels)
    fitted = readings.accuracy(readings.shifted(own, shift), labels)
    return [readings.accuracy(own, labels), readings.auc(own, labels), fitted]


def calibrated(scores, labels) -> float:
    """The accuracy of the unclipped model after contextual calibration."""
    own, free = scores[: len(labels)], scores[-len(CONTENT_FREE) :]
    return readings.accuracy(readings.contextual_calibration(own, free), labels)
