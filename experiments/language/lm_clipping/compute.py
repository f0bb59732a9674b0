"""Readings after layers are clipped, and what searches for a rate gain."""

import itertools

import numpy as np

from experiments.language import decoders, sentences, spectra
from experiments.language.edits import Answers, Clipped
from experiments.language.lm_clipping import search
from experiments.language.lm_clipping.config import DROPPED, MATRICES, PARTS, Config
from lsa_lab.analyses.clipping import DROP
from lsa_lab.lm import readings
from lsa_lab.store import parts

READINGS = {"accuracy": readings.accuracy, "auc": readings.auc}


def compute(config: Config, *, progress=None, checkpoints=None):
    clipped = Clipped(decoders.decoder(config))

    def place(name):  # where a part shows how far it is, and keeps its runs
        return progress, checkpoints and checkpoints / name, f"lm_clipping: {name}"

    deep = config.deep and clip(config, config.deep, config.layers[-1:], clipped, *place("deep"))
    return parts.join(
        clip(config, config, config.layers, clipped, *place("layers")),
        **({"deep": deep} if deep else {}),
        search=search.search(config.search, clipped, *place("search")),
        spectra=spectra.by_layer(config.spectra, clipped.decoder.params, *place("spectra")),
    )


def clip(config: Config, texts, layers, clipped: Clipped, *place):
    """Parts of layers clipped and dropped, after sets of some texts; after the config's own at the
    ends of the layers single matrices too, and parts with other numbers of shots."""
    pools = [sentences.read(task) for _, task in texts.tasks]
    ends, modules = (layers[0], layers[-1]), tuple(PARTS.values())
    blocks = (layers, modules, (*config.rates, DROP))  # layers, modules and rates of edits
    matrices, at_ends = (ends, MATRICES, [config.matrix_rate]), (ends, modules, [max(config.rates)])
    own = dict(layer=layers, part=PARTS, rate=[*config.rates, DROPPED], reading=READINGS)
    axes = {"unclipped": ("reading",), "edited": tuple(own)}
    whole = texts is config
    if whole:
        own |= dict(end=ends, matrix=MATRICES, shots=config.other_shots)
        axes |= {"matrix_edited": ("end", "matrix", "reading")}
        axes |= {"shots_unclipped": ("shots", "reading")}
        axes |= {"shots_edited": ("shots", "end", "part", "reading")}

    def measure(number, run):
        task, most = texts.tasks[number][1], max(config.other_shots) if whole else texts.shots
        every, fresh, _ = sentences.sets(pools[number], task, texts, run, number, shots=most)
        every = sentences.alternate(every)

        def read(shots, edits):  # [2], [*E, 2]: unclipped, and by edit
            questions = sentences.ask(clipped.decoder, task, every.take(range(shots)), fresh)
            scores = Answers(clipped, questions, edits[0]).scores
            pairs = [(scores(edit), fresh.labels) for edit in (None, *itertools.product(*edits))]
            unclipped, *edited = [[of(*pair) for of in READINGS.values()] for pair in pairs]
            return unclipped, np.reshape(edited, (*map(len, edits), -1))

        values = dict(zip(("unclipped", "edited"), read(texts.shots, blocks), strict=True))
        if whole:
            others = zip(*(read(shots, at_ends) for shots in config.other_shots), strict=True)
            values["shots_unclipped"], edited = map(np.array, others)
            values["shots_edited"] = edited[..., 0, :]  # at one rate, as of single matrices
            values["matrix_edited"] = read(texts.shots, matrices)[1][..., 0, :]
        return values

    return decoders.table(texts, measure, axes, *place, **own)
