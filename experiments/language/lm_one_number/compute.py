"""Clip, disturb and calibrate a decoder on the same sentences."""

import itertools

import numpy as np

from experiments.language import decoders, sentences, spectra
from experiments.language.edits import Answers, Clipped, split_content_free
from experiments.language.language_config import PARTS
from experiments.language.lm_one_number import config as names
from experiments.language.lm_one_number.config import KINDS, METHODS, SEARCHES, Config
from lsa_lab.analyses import clipping
from lsa_lab.lm import readings


def compute(config: Config, *, progress=None, checkpoints=None):
    clipped = Clipped(decoders.decoder(config))
    decoder = clipped.decoder
    conditions = [clipping.condition_numbers(decoder.params, name) for name in PARTS.values()]
    deepest = [spectra.deepest_of(each, config.top_k) for each in conditions]
    pools = [  # invented sentences have one width as they are
        sentences.of_one_width(task, decoder.tokenizer, config.width, task.source != "invented")
        for _, task in config.tasks
    ]

    def measure(number, run):
        pool, writer = pools[number]
        demonstrations, fresh, others = sentences.sets(
            pool, config.tasks[number][1], config, run, number, others=config.validation
        )
        (seed,) = np.random.SeedSequence([config.seed, number, run, 1]).generate_state(1).tolist()
        seeds = dict(zip(KINDS, (None, seed), strict=True))
        validation = Answers(clipped, writer.ask(demonstrations, others), set(deepest))
        plain = validation.scores()
        places = list(itertools.product(KINDS, zip(deepest, PARTS.values(), strict=True)))
        tried = np.array(
            [
                [validation.scores((*place, rate), seed=seeds[kind]) for rate in config.rates]
                for kind, place in places
            ]
        )  # [K P, Q, V, C]
        choices = [choose(plain, own, others.labels) for own in tried]
        questions = writer.ask(demonstrations, sentences.add_content_free(fresh))
        test = Answers(clipped, questions, {*deepest, *config.layers})
        unedited, content_free = split_content_free(test.scores(at=max(deepest)))

        def edited(kind, edit):
            return split_content_free(test.scores(edit, seed=seeds[kind]))[0]

        pairs = maps(plain, others.labels, unedited, content_free)
        searched = zip(SEARCHES, places, choices, tried, strict=True)
        for name, (kind, place), choice, values in searched:
            pairs[name] = plain, unedited
            if choice is not None:
                pairs[name] = values[choice], edited(kind, (*place, config.rates[choice]))
        layers = [
            [
                [
                    _shares(unedited, edited(kind, (layer, part, config.layer_rate)))
                    for layer in config.layers
                ]
                for part in PARTS.values()
            ]
            for kind in KINDS
        ]
        by_rate = [[_shares(plain, values) for values in own] for own in tried]
        kinds = (len(KINDS), len(PARTS))
        return {
            "test": [read(*pairs[name], others.labels, fresh.labels) for name in METHODS],
            "rate": np.reshape([0.0 if c is None else config.rates[c] for c in choices], kinds),
            "shares": np.reshape(by_rate, (*kinds, len(config.rates), 2)),
            "layer_shares": layers,
        }

    axes = {
        "test": ("rule", "reading"),
        "rate": ("kind", "part"),
        "shares": ("kind", "part", "clipping", "measure"),
        "layer_shares": ("kind", "part", "layer", "measure"),
    }
    own = dict(rule=METHODS, reading=names.READINGS, kind=KINDS, part=PARTS)
    own |= dict(clipping=config.rates, layer=config.layers, measure=["R2", "share"])
    place = progress, checkpoints, "lm_one_number"
    dataset = decoders.table(config, measure, axes, *place, **own)
    return dataset.assign(deepest=("part", deepest))


def choose(plain, tried, labels) -> int | None:
    """The first of the edits that gain most on validation; None where none gains."""
    gains = [readings.accuracy(s, labels) - readings.accuracy(plain, labels) for s in tried]
    return int(np.argmax(gains)) if max(gains) > 0 else None


def maps(plain, labels, unedited, content_free) -> dict:
    """Scores on validation and on test by each map of the unedited answer."""
    shift = readings.best_threshold_shift(plain, labels)
    temperature = readings.best_affine(plain, labels, shift=False)
    both = readings.best_affine(plain, labels)
    both_sets = plain, unedited
    return {
        names.UNEDITED: both_sets,
        names.THRESHOLD: [readings.shift_scores(each, shift) for each in both_sets],
        names.TEMPERATURE: [readings.map_scores(each, *temperature) for each in both_sets],
        names.CALIBRATED: [readings.contextual_calibration(x, content_free) for x in both_sets],
        names.BOTH: [readings.map_scores(each, *both) for each in both_sets],
    }


def read(validation, scores, validation_labels, labels) -> list[float]:
    """Accuracy, AUC, the cross-entropy, and that after an affine map fitted on validation."""
    after = readings.map_scores(scores, *readings.best_affine(validation, validation_labels))
    three = readings.accuracy, readings.auc, readings.cross_entropy
    return [*(reading(scores, labels) for reading in three), readings.cross_entropy(after, labels)]


def _shares(before, after) -> tuple[float, float]:
    return readings.affine_shares(before[:, 1] - before[:, 0], after[:, 1] - after[:, 0])
