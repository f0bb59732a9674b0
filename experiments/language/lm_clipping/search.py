"""A2's search for a layer and a rate to clip, and a wider one, each tested on fresh sentences."""

import itertools
from functools import partial

import numpy as np

from experiments.language import decoders, sentences, spectra
from experiments.language.edits import Answers, Clipped, split_content_free
from experiments.language.lm_clipping.config import PARTS, SEARCHES, WIDE
from lsa_lab.lm import readings

READ = ("accuracy", "auc", "fitted")


def search(config, clipped: Clipped, *place):
    params, pools = clipped.decoder.params, [sentences.read(task) for _, task in config.tasks]
    conditions = {part: spectra.condition_numbers(params, name) for part, name in PARTS.items()}
    searches = candidates(config, conditions)
    layers = {layer for edits in searches.values() for layer, *_ in edits}

    def measure(number, run):
        task = config.tasks[number][1]
        demonstrations, fresh, others = sentences.sets(
            pools[number], task, config, run, number, others=config.validation
        )
        ask = partial(sentences.ask, clipped.decoder, task, demonstrations)
        validation = Answers(clipped, ask(others), layers)
        every = [None, *(edit for own in searches.values() for edit in own)]
        tried = {edit: validation.scores(edit) for edit in dict.fromkeys(every)}
        accuracies = {edit: readings.accuracy(s, others.labels) for edit, s in tried.items()}
        gains = {edit: accuracy - accuracies[None] for edit, accuracy in accuracies.items()}
        chosen = [choose(every, gains) for every in searches.values()]
        at = {edit[0] for edit in chosen if edit} or {max(layers)}
        test = Answers(clipped, ask(sentences.add_content_free(fresh)), at)
        rows = [
            read_test(test.scores(edit), fresh.labels, tried[edit], others.labels)
            for edit in (None, *chosen)
        ]
        calibrated = readings.contextual_calibration(*split_content_free(test.scores()))
        return {
            "validation_gain": [gains[edit] for edit in chosen],
            "layer": [edit[0] if edit else -1 for edit in chosen],
            "rate": [edit[2] if edit else 0.0 for edit in chosen],
            "module": [list(PARTS.values()).index(edit[1]) if edit else -1 for edit in chosen],
            "unclipped": rows[0],
            "clipped": rows[1:],
            "calibrated": readings.accuracy(calibrated, fresh.labels),
        }

    axes = dict.fromkeys(("validation_gain", "layer", "rate", "module"), ("search",))
    axes |= {"unclipped": ("reading",), "clipped": ("search", "reading"), "calibrated": ()}
    dataset = decoders.table(config, measure, axes, *place, search=SEARCHES, reading=READ)
    rows = np.stack(list(conditions.values()))
    return dataset.assign_coords(part=list(PARTS)).assign(condition=(("part", "depth"), rows))


def candidates(config, conditions) -> dict[str, list[tuple]]:
    """The edits (layer, module, rate) that each search tries, the smallest rates first."""
    by_search = {}
    for (part, module), name in zip(PARTS.items(), SEARCHES, strict=False):
        layer = spectra.deepest_of(conditions[part], config.top_k)
        by_search[name] = [(layer, module, rate) for rate in config.rates]
    grid = itertools.product(config.wide_rates, config.wide_layers, PARTS.values())
    return by_search | {WIDE: [(layer, module, rate) for rate, layer, module in grid]}


def choose(edits, gains):
    """The first of those that gain most on validation; None where none gains."""
    chosen = max(edits, key=lambda edit: gains[edit])
    return chosen if gains[chosen] > 0 else None


def read_test(scores, labels, validation, validation_labels) -> list[float]:
    """Accuracy, AUC, and the accuracy at the threshold fitted on validation."""
    own, _ = split_content_free(scores)
    shift = readings.best_threshold_shift(validation, validation_labels)
    fitted = readings.accuracy(readings.shifted(own, shift), labels)
    return [readings.accuracy(own, labels), readings.auc(own, labels), fitted]
