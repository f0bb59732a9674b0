"""A2's search for a layer and a rate to clip, and a wider one, each tested on fresh sentences.

What comes before an edited layer is walked once, and every edit of it goes on from there.
"""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jax import Array

from experiments.language import decoders, sentences
from experiments.language.edits import Clipped, Edit, condition_numbers
from experiments.language.lm_clipping.config import PARTS, SEARCHES, WIDE
from lsa_lab.lm import halts, readings, text
from lsa_lab.lm.decoder import Params, logits
from lsa_lab.lm.text import CONTENT_FREE


class Answers:
    """Queries after demonstrations, walked once to some layers, and then on with any edit there."""

    def __init__(self, clipped: Clipped, task, demonstrations, queries, layers):
        self.clipped, self.decoder = clipped, clipped.decoder
        self.questions = text.ask(
            sentences.template(task),
            demonstrations,
            queries,
            self.decoder.tokenizer,
            self.decoder.config.context,
        )
        layers, prefix = sorted(set(layers)), jnp.asarray(self.questions.prefix)
        self.last, self.kept = layers[-1], []
        params, config = self.decoder.params, self.decoder.config
        for bucket in self.questions.buckets:
            start = halts.start(params, prefix, jnp.asarray(bucket.ids), config)
            self.kept.append(halts.keep(params, start, config, layers))

    def scores(self, edit: Edit | None = None) -> np.ndarray:  # [B, C]
        """The logit of each label word after each question, of the decoder as it is or edited in
        one of the layers that were walked to."""
        layer, own = (edit[0], self.clipped.layer(edit)) if edit else (self.last, None)
        params, config, asks = self.decoder.params, self.decoder.config, self.questions
        scores = np.full((len(asks.labels), len(asks.label_ids)), np.nan)
        words = jnp.asarray(asks.label_ids)
        for bucket, halted in zip(asks.buckets, self.kept, strict=True):
            rows = halts.finish(params, halted[layer], config, at=layer, edit=own)
            read = _read(params, rows, jnp.asarray(bucket.last), words, config=config)
            scores[bucket.rows] = np.asarray(read, float)[: len(bucket.rows)]
        return scores


def split_content_free(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # [B, C], [K, C]
    """Scores of the queries, and of the texts at their end that say nothing."""
    return scores[: -len(CONTENT_FREE)], scores[-len(CONTENT_FREE) :]


@functools.partial(jax.jit, static_argnames="config")
def _read(params: Params, rows: Array, last: Array, words: Array, *, config) -> Array:
    return logits(params, halts.last_rows(rows, last), config, words)


READ = ("accuracy", "auc", "fitted")


def search(config, clipped: Clipped, *place):
    params, pools = clipped.decoder.params, [sentences.read(task) for _, task in config.tasks]
    conditions = {part: condition_numbers(params, name) for part, name in PARTS.items()}
    searches = candidates(config, conditions)
    layers = {layer for edits in searches.values() for layer, *_ in edits}

    def measure(number, run):
        task = config.tasks[number][1]
        demonstrations, fresh, others = sentences.sets(
            pools[number], task, config, run, number, others=config.validation
        )
        validation = Answers(clipped, task, demonstrations, others, layers)
        edits = [None, *(edit for every in searches.values() for edit in every)]
        tried = {edit: validation.scores(edit) for edit in dict.fromkeys(edits)}
        accuracies = {edit: readings.accuracy(s, others.labels) for edit, s in tried.items()}
        gains = {edit: accuracy - accuracies[None] for edit, accuracy in accuracies.items()}
        chosen = [choose(every, gains) for every in searches.values()]
        at = {edit[0] for edit in chosen if edit} or {max(layers)}
        test = Answers(clipped, task, demonstrations, sentences.add_content_free(fresh), at)
        rows = [
            read_test(test.scores(edit), fresh.labels, tried[edit], others.labels)
            for edit in (None, *chosen)
        ]
        own, free = split_content_free(test.scores())
        calibrated = readings.contextual_calibration(own, free)
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
    variables = decoders.table(config, measure, axes, *place)
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


def candidates(config, conditions) -> dict[str, list[tuple]]:
    """The edits (layer, module, rate) that each search tries, the smallest rates first."""
    by_search = {}
    for (part, module), name in zip(PARTS.items(), SEARCHES, strict=False):
        largest = np.argsort(conditions[part], kind="stable")[-config.top_k :]
        by_search[name] = [(int(max(largest)), module, rate) for rate in config.rates]
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
