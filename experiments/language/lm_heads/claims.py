"""What `lm_heads` judges: effective heads, changes of answers, and what common maps miss."""

import numpy as np

from experiments.language.data_sets import families
from experiments.language.lm_heads.answers import Heads
from experiments.language.lm_heads.config import PRUNED, RANDOM, TOP
from lsa_lab.judging.statements import Statement, grid

A4 = "A4 (2408.04532), abstract, in our setting"
READING = "A4 (2408.04532), abstract, our reading, in our setting"
A2 = "A2 (2406.03768), Theorem 1, our reading, in our setting"
# How much a head matters: what is measured with it closed.
CHANGE = "by the change of the labels' probabilities, KL(whole, closed)"
IMPORTANCES = {
    "change": ("change of answers", CHANGE),
    "mean": ("mean ablation", f"{CHANGE}, with the head at its mean write"),
}
ONE = 1.5  # effective heads, where one does most
RISE = "by the rise of the label cross-entropy with the head closed"
JACKKNIFE = "averaged over sets (pseudo-values of the jackknife)"
GUESSING = "the whole model's cross-entropy is above that of guessing: there is no loss to rise"
AVERAGED = "N was that of each set by itself, which few sentences make uneven by chance"
APART = "added, a layer each: the mean over layers hid that one has one head"
MORE = "on 10 sentences of a set, too few"
WORDS = (
    "it was the best linear map of all tokens, which missed .25: with fewer words in a prompt than "
    "dimensions it is any function of the word, and exact where a word stands once"
)


def numbers(dataset) -> "dict[str, Heads]":
    return {name: Heads(dataset.sel(task=name)) for name in dataset.task.values}


def statements(config) -> tuple[Statement, ...]:
    before = "12, and 18" if config.runs > 12 else "18"
    family = families(
        config, over="sets of demonstrations", redrawn=f"{config.runs} fresh runs, {before} before"
    )
    first, later = "all heads of the first layer matter", "one head does most in a later layer"
    share = "effective heads of the first layer over the number of its heads"
    count = "effective heads of a later layer"
    left = "KL(whole, top head kept) over KL(whole, all closed)"
    top = "the top head is the one that changes answers to other sentences most"
    order = "rank correlation of the label margins with the whole model's"
    # Sentences count layers from 1; the first is not a later one.
    places = {1 + layer: place for place, layer in enumerate(config.layers)}
    layers = [*places][1:]

    def reading_words(reading, **_):
        name, importance = IMPORTANCES[reading]
        return dict(name=name, importance=importance)

    rises = family(
        "rises",
        A4,
        f"{{says}}, {RISE}",
        f"{{what}}, {JACKKNIFE},",
        unjudged=GUESSING,
        note="rises of either sign count where they are positive: noise makes heads seem alike",
        revision=f"{AVERAGED}; it was judged",
        sample=lambda h, data, layers: getattr(h[data], layers)("rise"),
        cells=grid(
            "rotten_tomatoes_first_rise rotten_tomatoes_later_rise", layers=("first", "later")
        ),
        words=lambda layers: (
            dict(says=first, what=share)
            if layers == "first"
            else dict(says=later, what=f"{count}, mean over later layers")
        ),
    )
    return (
        family(
            "first",
            READING,
            f"{first}, by {{name}}",
            f"{share}, {{importance}}, {JACKKNIFE},",
            at_least=0.75,
            revision=AVERAGED,
            sample=lambda h, data, reading: h[data].first(reading),
            cells=grid(
                "rotten_tomatoes_first_change rotten_tomatoes_first_mean", reading=IMPORTANCES
            ),
            words=reading_words,
        ),
        family(
            "later",
            READING,
            f"{later}, by {{name}}",
            f"{count}, {{importance}}, mean over later layers, {JACKKNIFE},",
            at_most=ONE,
            revision=AVERAGED,
            sample=lambda h, data, reading: h[data].later(reading),
            cells=grid(
                "rotten_tomatoes_later_change rotten_tomatoes_later_mean", reading=IMPORTANCES
            ),
            words=reading_words,
        ),
        family(
            "later_apart",
            READING,
            "one head does most in layer {layer}, by {name}",
            f"effective heads of layer {{layer}}, {{importance}}, {JACKKNIFE},",
            at_most=ONE,
            revision=APART,
            redrawn="",
            sample=lambda h, data, layer, reading: h[data].count(reading)[:, places[layer]],
            cells={
                f"rotten_tomatoes_layer_{layer}_{reading}": dict(layer=layer, reading=reading)
                for layer in layers
                for reading in IMPORTANCES
            },
            words=reading_words,
            message="one head does most in each later layer by itself, by change of answers and "
            "by mean ablation",
        ),
        family(
            "one_is_enough_apart",
            READING,
            "in layer {layer} its top head does nearly all that its heads do",
            left,
            "ratio",
            at_most=0.2,
            note=top,
            revision=APART,
            redrawn="",
            sample=lambda h, data, layer: np.exp(h[data].share_left[:, places[layer]]),
            cells={f"rotten_tomatoes_layer_{layer}_left": {"layer": layer} for layer in layers},
        ),
        family(
            "closed_apart",
            "derived here",
            "how far answers change with all heads of layer {layer} closed",
            "KL(whole, all closed), nats,",
            unjudged="a number beside the rows on one head",
            revision=APART,
            redrawn="",
            sample=lambda h, data, layer: h[data].changes_without("none")[:, places[layer]],
            cells={f"rotten_tomatoes_layer_{layer}_closed": {"layer": layer} for layer in layers},
        ),
        family(
            "one_is_enough",
            READING,
            "in a later layer its top head does nearly all that its heads do",
            f"{left}, geometric mean over later layers,",
            "ratio",
            at_most=0.2,
            note=top,
            sample=lambda h, data: np.exp(h[data].share_left[:, 1:].mean(1)),
            cells=grid("rotten_tomatoes_one_is_enough"),
        ),
        family(
            "pruned",
            READING,
            "all heads but the top one of each later layer can be removed",
            f"{order},",
            at_least=0.9,
            note="by the mean absolute slope; the cross-entropy of an empty answer is near the "
            "whole's",
            revision=MORE,
            sample=lambda h, data: h[data].order_kept[PRUNED],
            cells=grid("rotten_tomatoes_pruned"),
        ),
        family(
            "top_heads",
            "modelled on A4 (2408.04532), abstract",
            f"the {config.kept} top heads of each layer keep answers better than as many random "
            "ones",
            f"{order}, top less random,",
            at_least=0.0,
            revision=MORE,
            sample=lambda h, data: h[data].order_kept[TOP] - h[data].order_kept[RANDOM],
            cells=grid("rotten_tomatoes_top_heads"),
        ),
        family(
            "common_map",
            A2,
            "the tokens of a prompt have no common map, for a word's rows differ by context",
            "|H_L - mean of the word| / |H_L - H_0| after the last layer of words that recur, "
            "without the first token, unbiased for their number,",
            at_least=0.3,
            note="A2's layers are linear attention; which map the others lack is its open question",
            revision=WORDS,
            sample=lambda h, data: h[data].share_missed(),
            cells=grid("rotten_tomatoes_map"),
        ),
        *([rises] if config.rises_judged else ()),
    )
