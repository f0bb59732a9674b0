"""Readings after layers are clipped, and what searches for a rate gain."""

import itertools

import numpy as np
import xarray as xr

from experiments.language import decoders, sentences
from experiments.language.edits import Answers, Clipped, split_content_free
from experiments.language.lm_clipping import search, spectra
from experiments.language.lm_clipping.config import DROPPED, MATRICES, PARTS, READINGS, Config
from lsa_lab.analyses.clipping import DROP
from lsa_lab.lm import readings
from lsa_lab.store import parts


def compute(config: Config, *, progress=None, checkpoints=None):
    clipped = Clipped(decoders.decoder(config))

    def place(name):  # where a part shows how far it is, and keeps its runs
        return progress, checkpoints and checkpoints / name, f"lm_clipping: {name}"

    deep = {} if config.deep is None else {"deep": clip_deep(config, clipped, *place("deep"))}
    return parts.join(
        clip_layers(config, clipped, *place("layers")),
        **deep,
        search=search.search(config.search, clipped, *place("search")),
        spectra=spectra.measure(config.spectra, clipped.decoder.params, *place("spectra")),
    )


def clip_layers(config: Config, clipped: Clipped, *place):
    """Parts of all layers clipped; at the ends single matrices too, and other numbers of shots."""
    pools = [sentences.read(task) for _, task in config.tasks]
    ends, rates = (min(config.layers), max(config.layers)), (*config.rates, DROP)
    blocks = list(itertools.product(config.layers, PARTS.values(), rates))
    matrices = [(layer, name, config.matrix_rate) for layer in ends for name in MATRICES]
    at_ends = list(itertools.product(ends, PARTS.values(), [max(config.rates)]))

    def measure(number, run):
        task, most = config.tasks[number][1], max(config.other_shots)
        every, fresh, _ = sentences.sets(pools[number], task, config, run, number, shots=most)
        every, queries = sentences.alternate(every), sentences.add_content_free(fresh)

        def ask(shots, edits):  # -> scores [B, C], readings [E, 3]
            own, layers = every.take(range(shots)), {layer for layer, *_ in edits}
            questions = sentences.ask(clipped.decoder, task, own, queries)
            answers = Answers(clipped, questions, layers)
            edited = [split_content_free(answers.scores(edit))[0] for edit in edits]
            return answers.scores(), np.array([readings_of(each, fresh.labels) for each in edited])

        plain, edited = ask(config.shots, blocks + matrices)
        others = [ask(shots, at_ends) for shots in config.other_shots]
        shape = len(config.layers), len(PARTS), len(rates), -1
        return {
            "unclipped": readings_of(split_content_free(plain)[0], fresh.labels),
            "edited": edited[: len(blocks)].reshape(shape),
            "matrix_edited": edited[len(blocks) :].reshape(len(ends), len(MATRICES), -1),
            "shots_unclipped": [
                readings_of(split_content_free(scores)[0], fresh.labels) for scores, _ in others
            ],
            "shots_edited": [each.reshape(len(ends), len(PARTS), -1) for _, each in others],
        }

    axes = {
        "unclipped": ("reading",),
        "edited": ("layer", "part", "rate", "reading"),
        "matrix_edited": ("end", "matrix", "reading"),
        "shots_unclipped": ("shots", "reading"),
        "shots_edited": ("shots", "end", "part", "reading"),
    }
    return xr.Dataset(
        decoders.table(config, measure, axes, *place),
        {
            "task": [name for name, _ in config.tasks],
            "reading": list(READINGS),
            "layer": list(config.layers),
            "part": list(PARTS),
            "rate": [*config.rates, DROPPED],
            "end": list(ends),
            "matrix": list(MATRICES),
            "shots": list(config.other_shots),
        },
    )


def clip_deep(config: Config, clipped: Clipped, *place):
    """Parts of the deepest layer clipped and dropped, after sets that ``clip_layers`` has not."""
    texts, layer = config.deep, max(config.layers)
    pools, rates = [sentences.read(task) for _, task in texts.tasks], (*config.rates, DROP)

    def measure(number, run):
        task = texts.tasks[number][1]
        own, fresh, _ = sentences.sets(pools[number], task, texts, run, number)
        questions = sentences.ask(clipped.decoder, task, sentences.alternate(own), fresh)
        answers = Answers(clipped, questions, {layer})
        edits = itertools.product([layer], PARTS.values(), rates)
        edited = [readings_of(answers.scores(edit), fresh.labels) for edit in edits]
        return {
            "unclipped": readings_of(answers.scores(), fresh.labels),
            "edited": np.reshape(edited, (1, len(PARTS), len(rates), -1)),
        }

    axes = {"unclipped": ("reading",), "edited": ("layer", "part", "rate", "reading")}
    coordinates = dict(task=[name for name, _ in texts.tasks], reading=list(READINGS))
    coordinates |= dict(layer=[layer], part=list(PARTS), rate=[*config.rates, DROPPED])
    return xr.Dataset(decoders.table(texts, measure, axes, *place), coordinates)


def readings_of(scores, labels) -> list[float]:
    """Accuracy, AUC, and the cross-entropy but for a constant shift."""
    own = (readings.accuracy, readings.auc, readings.cross_entropy_after_best_shift)
    return [reading(scores, labels) for reading in own]
