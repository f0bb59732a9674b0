"""A2's search for a layer and a rate to clip, and a wider one, each tested on fresh sentences."""

import itertools
from functools import partial

from experiments.language import decoders, sentences, spectra
from experiments.language.edits import Answers, Clipped, split_content_free
from experiments.language.lm_clipping.config import PARTS, SEARCHES, WIDE
from lsa_lab.analyses import clipping
from lsa_lab.lm import readings

READ = ("accuracy", "auc", "fitted")


def search(config, clipped: Clipped, *place):
    pools = [sentences.read(task) for _, task in config.tasks]
    searches = candidates(config, clipped.decoder.params)
    every = [None, *(edit for own in searches.values() for edit in own)]
    layers = {layer for layer, *_ in every[1:]}

    def measure(number, run):
        task = config.tasks[number][1]
        demonstrations, fresh, others = sentences.sets(
            pools[number], task, config, run, number, others=config.validation
        )
        ask = partial(sentences.ask, clipped.decoder, task, demonstrations)
        validation = Answers(clipped, ask(others), layers)
        tried = {edit: validation.scores(edit) for edit in dict.fromkeys(every)}
        accuracies = {edit: readings.accuracy(s, others.labels) for edit, s in tried.items()}
        chosen = [choose(own, accuracies) for own in searches.values()]
        at = {edit[0] for edit in chosen if edit} or {max(layers)}
        test = Answers(clipped, ask(sentences.add_content_free(fresh)), at)
        rows = [
            read_test(test.scores(edit), fresh.labels, tried[edit], others.labels)
            for edit in (None, *chosen)
        ]
        calibrated = readings.contextual_calibration(*split_content_free(test.scores()))
        return {
            "validation_gain": [accuracies[edit] - accuracies[None] for edit in chosen],
            "unclipped": rows[0],
            "clipped": rows[1:],
            "calibrated": readings.accuracy(calibrated, fresh.labels),
        }

    axes = {"validation_gain": ("search",), "unclipped": ("reading",)}
    axes |= {"clipped": ("search", "reading"), "calibrated": ()}
    return decoders.table(config, measure, axes, *place, search=SEARCHES, reading=READ)


def candidates(config, params) -> dict[str, list[tuple]]:
    """The edits (layer, module, rate) that each search tries, the smallest rates first."""
    by_search = {}
    for module, name in zip(PARTS.values(), SEARCHES, strict=False):
        layer = spectra.deepest_of(clipping.condition_numbers(params, module), config.top_k)
        by_search[name] = [(layer, module, rate) for rate in config.rates]
    grid = itertools.product(config.wide_rates, config.wide_layers, PARTS.values())
    return by_search | {WIDE: [(layer, module, rate) for rate, layer, module in grid]}


def choose(edits, accuracies):
    """The first of those that gain most on validation; None where none gains."""
    return max((None, *edits), key=lambda edit: accuracies[edit])


def read_test(scores, labels, validation, validation_labels) -> list[float]:
    """Accuracy, AUC, and the accuracy at the threshold fitted on validation."""
    own, _ = split_content_free(scores)
    shift = readings.best_threshold_shift(validation, validation_labels)
    fitted = readings.accuracy(readings.shift_scores(own, shift), labels)
    return [readings.accuracy(own, labels), readings.auc(own, labels), fitted]
