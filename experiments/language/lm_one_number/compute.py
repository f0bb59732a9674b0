"""Clip, disturb and calibrate a decoder on the same sentences."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from experiments.language import decoders, sentences
from experiments.language.edits import Clipped, condition_numbers
from experiments.language.language_config import PARTS
from experiments.language.lm_one_number.config import (
    BOTH,
    CALIBRATED,
    KINDS,
    METHODS,
    READINGS,
    SEARCHES,
    TEMPERATURE,
    THRESHOLD,
    UNEDITED,
    Config,
)
from lsa_lab.lm import halts, readings, text
from lsa_lab.lm.decoder import logits


class Asked:
    """Questions after demonstrations, walked once to some layers and then on with any edit."""

    def __init__(self, decoder, writer, demonstrations, queries, layers):
        self.decoder, (prefix, _) = decoder, writer.demonstrations(demonstrations)
        ids, self.last = writer.questions(queries)
        self.words, config = jnp.asarray(writer.label_ids), decoder.config
        start = halts.start(decoder.params, jnp.asarray(prefix), jnp.asarray(ids), config)
        self.kept = halts.keep(decoder.params, start, config, layers)

    def scores(self, layer: int, own=None) -> np.ndarray:  # [B, C]
        """The logit of each label word, with one layer's leaves replaced by ``own``."""
        params, config = self.decoder.params, self.decoder.config
        rows = halts.finish(params, self.kept[layer], config, at=layer, edit=own)
        return np.asarray(_read(params, rows, self.last, self.words, config=config), float)


@functools.partial(jax.jit, static_argnames="config")
def _read(params, rows, last, words, *, config):
    return logits(params, halts.last_rows(rows, last), config, words)


def compute(config: Config, *, progress=None, checkpoints=None):
    clipped = Clipped(decoders.decoder(config))
    decoder = clipped.decoder
    deepest = [_deepest(condition_numbers(decoder.params, name), config) for name in PARTS.values()]
    pools = [_pool(task, decoder, config) for _, task in config.tasks]

    def edits_of(seed):  # -> scores of an edit of either kind, from any questions
        def edited(questions, kind, edit):
            own = clipped.disturbed(edit, seed) if kind == KINDS[1] else clipped.layer(edit)
            return questions.scores(edit[0], own)

        return edited

    def measure(number, run):
        pool, writer = pools[number]
        demonstrations, fresh, others = sentences.sets(
            pool, config.tasks[number][1], config, run, number, others=config.validation
        )
        (seed,) = np.random.SeedSequence([config.seed, number, run, 1]).generate_state(1).tolist()
        edited = edits_of(seed)
        validation = Asked(decoder, writer, demonstrations, others, set(deepest))
        plain = validation.scores(max(deepest))
        places = list(itertools.product(KINDS, zip(deepest, PARTS.values(), strict=True)))
        tried = np.array(
            [
                [edited(validation, kind, (*place, rate)) for rate in config.rates]
                for kind, place in places
            ]
        )  # [K P, Q, V, C]
        choices = [choose(plain, own, others.labels) for own in tried]
        test = Asked(
            decoder,
            writer,
            demonstrations,
            sentences.add_content_free(fresh),
            {*deepest, *config.layers},
        )
        free = len(text.CONTENT_FREE)
        own = test.scores(max(deepest))
        unedited, content_free = own[:-free], own[-free:]
        pairs = maps(plain, others.labels, unedited, content_free)
        for name, (kind, place), choice, values in zip(
            SEARCHES, places, choices, tried, strict=True
        ):
            pairs[name] = (
                (plain, unedited)
                if choice is None
                else (values[choice], edited(test, kind, (*place, config.rates[choice]))[:-free])
            )
        layers = [
            [
                [
                    _shares(unedited, edited(test, kind, (layer, part, config.layer_rate))[:-free])
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
    variables = decoders.table(config, measure, axes, progress, checkpoints, "lm_one_number")
    variables["deepest"] = "part", deepest
    return xr.Dataset(
        variables,
        {
            "task": [name for name, _ in config.tasks],
            "rule": list(METHODS),
            "reading": list(READINGS),
            "kind": list(KINDS),
            "part": list(PARTS),
            "clipping": list(config.rates),
            "layer": list(config.layers),
            "measure": ["R2", "share"],
        },
    )


def _pool(task, decoder, config):
    """Sentences whose questions have one width, and their writer."""
    template = sentences.template(task)
    pool = sentences.read(task)
    if task.source != "invented":
        pool = sentences.cut_to(pool, decoder.tokenizer, template, config.width)
    return pool, sentences.Writer(decoder.tokenizer, template, config.width)


def _deepest(conditions, config) -> int:
    return int(max(np.argsort(conditions, kind="stable")[-config.top_k :]))


def choose(plain, tried, labels) -> int | None:
    """The first of the edits that gain most on validation; None where none gains."""
    gains = [readings.accuracy(s, labels) - readings.accuracy(plain, labels) for s in tried]
    return int(np.argmax(gains)) if max(gains) > 0 else None


def maps(plain, labels, unedited, content_free) -> dict:
    """Scores on validation and on test by each map of the unedited answer."""
    shift = readings.best_threshold_shift(plain, labels)
    temperature = readings.best_affine(plain, labels, shift=False)
    both = readings.best_affine(plain, labels)
    return {
        UNEDITED: (plain, unedited),
        THRESHOLD: tuple(readings.shifted(each, shift) for each in (plain, unedited)),
        TEMPERATURE: tuple(readings.affine(each, *temperature) for each in (plain, unedited)),
        CALIBRATED: tuple(
            readings.contextual_calibration(each, content_free) for each in (plain, unedited)
        ),
        BOTH: tuple(readings.affine(each, *both) for each in (plain, unedited)),
    }


def read(validation, scores, validation_labels, labels) -> list[float]:
    """Accuracy, AUC, the cross-entropy, and that after an affine map fitted on validation."""
    after = readings.affine(scores, *readings.best_affine(validation, validation_labels))
    return [
        readings.accuracy(scores, labels),
        readings.auc(scores, labels),
        readings.cross_entropy(scores, labels),
        readings.cross_entropy(after, labels),
    ]


def _shares(before, after) -> tuple[float, float]:
    return readings.affine_shares(before[:, 1] - before[:, 0], after[:, 1] - after[:, 0])
