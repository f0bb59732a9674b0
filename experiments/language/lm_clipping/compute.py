"""Readings after layers are clipped, and what searches for a rate gain."""

import itertools

import numpy as np
import xarray as xr

from experiments.language import decoders, sentences, spectra
from experiments.language.edits import Answers, Clipped
from experiments.language.lm_clipping import search
from experiments.language.lm_clipping.config import (
    DROPPED,
    MATRICES,
    PARTS,
    READINGS,
    Config,
    Spectra,
)
from lsa_lab.analyses.clipping import DROP
from lsa_lab.lm import readings
from lsa_lab.models import leaves
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
        spectra=measure_spectra(config.spectra, clipped.decoder.params, *place("spectra")),
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

        def read(shots, edits):
            questions = sentences.ask(clipped.decoder, task, every.take(range(shots)), queries)
            return read_edits(clipped, questions, edits, fresh.labels)

        unclipped, edited = np.split(read(config.shots, blocks + matrices), [1])
        others = np.stack([read(shots, at_ends) for shots in config.other_shots])
        return {
            "unclipped": unclipped[0],
            "edited": edited[: len(blocks)].reshape(-1, len(PARTS), len(rates), 3),
            "matrix_edited": edited[len(blocks) :].reshape(-1, len(MATRICES), 3),
            "shots_unclipped": others[:, 0],
            "shots_edited": others[:, 1:].reshape(-1, len(ends), len(PARTS), 3),
        }

    axes = AXES | {
        "matrix_edited": ("end", "matrix", "reading"),
        "shots_unclipped": ("shots", "reading"),
        "shots_edited": ("shots", "end", "part", "reading"),
    }
    own = dict(end=ends, matrix=MATRICES, shots=config.other_shots)
    return decoders.table(config, measure, axes, *place, **places(config, config.layers), **own)


def clip_deep(config: Config, clipped: Clipped, *place):
    """Parts of the deepest layer clipped and dropped, after sets that ``clip_layers`` has not."""
    texts, layer = config.deep, max(config.layers)
    pools = [sentences.read(task) for _, task in texts.tasks]
    edits = list(itertools.product([layer], PARTS.values(), (*config.rates, DROP)))

    def measure(number, run):
        task = texts.tasks[number][1]
        own, fresh, _ = sentences.sets(pools[number], task, texts, run, number)
        questions = sentences.ask(clipped.decoder, task, sentences.alternate(own), fresh)
        unclipped, *edited = read_edits(clipped, questions, edits, fresh.labels)
        return {"unclipped": unclipped, "edited": np.reshape(edited, (1, len(PARTS), -1, 3))}

    return decoders.table(texts, measure, AXES, *place, **places(config, [layer]))


AXES = {"unclipped": ("reading",), "edited": ("layer", "part", "rate", "reading")}


def places(config, layers) -> dict:
    return dict(reading=READINGS, layer=layers, part=PARTS, rate=[*config.rates, DROPPED])


def read_edits(clipped: Clipped, questions, edits, labels) -> np.ndarray:  # [1 + E, 3]
    """Readings of the first of the questions, whose labels these are: unclipped, and by edit."""
    answers = Answers(clipped, questions, {layer for layer, *_ in edits})
    every = (answers.scores(edit) for edit in (None, *edits))
    return np.array([readings_of(scores[: len(labels)], labels) for scores in every])


def readings_of(scores, labels) -> list[float]:
    """Accuracy, AUC, and the cross-entropy but for a constant shift."""
    own = (readings.accuracy, readings.auc, readings.cross_entropy_after_best_shift)
    return [reading(scores, labels) for reading in own]


def measure_spectra(config: Spectra, params, progress=None, folder=None, label="spectra"):
    """The Dataset of the part: matrices of each layer, in float64, heads stacked as in A2."""
    stacks = [leaf for part in PARTS.values() for leaf in leaves.matrices(params, part).values()]

    def of_layer(layer):
        rng = np.random.default_rng([config.seed, layer])
        stored = [np.asarray(stack[layer], float) for stack in stacks]

        def of_draws(draw):  # -> [matrix, draw, share]
            every = ([draw(matrix) for _ in range(config.draws)] for matrix in stored)
            return [[spectra.values_at(each, config.shares) for each in draws] for draws in every]

        return {
            "stored": [spectra.values_at(matrix, config.shares) for matrix in stored],
            "rounded": of_draws(
                lambda m: m + spectra.rounding_error(rng, m, config.bits, config.block)
            ),
            "random": of_draws(lambda m: spectra.random_alike(rng, m)),
        }

    places = [(layer,) for layer in range(len(stacks[0]))]
    arrays = decoders.cells(places, of_layer, progress, folder, label)
    axes = {"stored": ("matrix", "share")}
    axes |= dict.fromkeys(("rounded", "random"), ("matrix", "draw", "share"))
    return xr.Dataset(
        {name: (("depth", *axes[name]), values) for name, values in arrays.items()},
        {"matrix": list(MATRICES), "share": list(config.shares)},
    )
