"""What does clipping do to a language model, and does Algorithm 1 gain more than one number (A2)?

Clipping at a rate keeps that share fewer of the singular values of each matrix of a layer's
attention or MLP. Algorithm 1 clips the deepest of the two layers with the largest condition numbers
at the rate with the best accuracy on validation questions. Beside it stand the same search among
random edits of the same Frobenius norm, and maps of the answer with one number: a threshold fitted
on the same questions, and contextual calibration. Units are collections of texts.
"""

from dataclasses import dataclass

import jax
import numpy as np
import xarray as xr

from experiments.language import models as language_models
from experiments.language import texts
from experiments.language.drawing import draw_rows, name_rows
from experiments.language.edits import Answers, Editor
from lsa_lab.analyses import clipping
from lsa_lab.lab import Claim, compute_each, main, plotting, stack_rows
from lsa_lab.lm import readings
from lsa_lab.models.blocks import layer_params

PARTS = {"attention": "attention", "the MLP": "mlp"}  # of a layer
KINDS = ("clipped", "random")  # edits of the same norm
PLACES = ("shallow", "deep")  # the second layer and the last but one, as in A2
READINGS = ("accuracy", "AUC")
ALGORITHM, RANDOM, THRESHOLD, CALIBRATION = METHODS = (
    "Algorithm 1", "random edits", "threshold", "contextual calibration",
)  # fmt: skip


@dataclass(frozen=True)
class Config:
    model: str = "smollm2"  # a source of lsa_lab.lm, or the path of a GGUF file or of a folder
    collections: tuple[str, ...] = texts.TWELVE
    width: int = 20  # tokens of a question
    shots: int = 4  # demonstrations before every question
    other_shots: tuple[int, int] = (2, 8)  # few and many
    rates: tuple[float, ...] = (0.9, 0.99)  # of the shallow and the deep layer
    searched_rates: tuple[float, ...] = (0.1, 0.5, 0.9, 0.99)  # of Algorithm 1
    top_k: int = 2  # layers with the largest condition numbers; it clips the deepest
    compared: int = 0  # the number of last layers whose condition numbers are compared, 0 for all
    asked: int = 40  # questions of a collection, and as many others for validation
    seed: int = 1803


SMOKE = dict(width=8, shots=2, other_shots=(0, 4), rates=(0.5,), searched_rates=(0.5,), asked=8)
QUICK = dict(other_shots=(2, 6), searched_rates=(0.5, 0.9), compared=2, asked=10)
TIERS = {
    "smoke": Config(language_models.RANDOM, (texts.INVENTED,) * 2, **SMOKE, seed=1),
    "quick": Config(collections=("space/hockey", "tweets"), rates=(0.9,), **QUICK, seed=2),
    "full": Config(),
}


def as_scores(margin):  # [B] -> [B, 2]
    return np.stack([np.zeros_like(margin), margin], axis=1)


def measure(margin, labels):  # -> accuracy, AUC
    scores = as_scores(margin)
    return np.array([readings.accuracy(scores, labels), readings.auc(scores, labels)])


def choose_layers(config, params):  # -> one layer for each part
    """Return the deepest of the layers with the largest condition numbers, as A2 does."""
    leaves = jax.tree.map(lambda leaf: leaf[-config.compared :], layer_params(params))
    conditions = [clipping.condition_numbers(leaves, part) for part in PARTS.values()]
    first = len(params.w_q) - len(conditions[0])
    return [first + int(max(np.argsort(each)[-config.top_k :])) for each in conditions]


def measure_shots(config, editor, model, pool, parts, shallow):  # -> [2]
    """Return the AUC that sharp clipping of the shallow layer costs after few and many shots."""
    costs = []
    for shown in parts[:2]:
        answers = Answers(model, pool, shown, pool.questions[parts[-1]], {shallow})
        labels, edits = pool.labels[parts[-1]], [None]
        edits += [editor.clip(shallow, part, max(config.rates)) for part in PARTS.values()]
        whole, *clipped = (measure(answers.read(shallow, edit), labels)[1] for edit in edits)
        costs.append(whole - np.mean(clipped))
    return np.array(costs)


def search(config, editor, validation, tested, labels, place, kind, seed):
    """Run Algorithm 1 for one part; return its gain of accuracy, and what each rate moves."""
    layer, part = place
    edits = [editor.edit(kind, layer, part, rate, seed) for rate in config.searched_rates]
    plain = validation.read(layer)
    tried = [validation.read(layer, edit) for edit in edits]
    scores = [measure(margin, labels[0])[0] for margin in (plain, *tried)]
    best = int(np.argmax(scores))  # no edit is the first, and the first of equals is taken
    chosen = None if best == 0 else edits[best - 1]
    after, before = tested.read(layer, chosen), tested.read(layer)
    shares = [readings.affine_share(plain, margin) for margin in tried]
    gain = measure(after, labels[1])[0] - measure(before, labels[1])[0]
    return gain, np.mean(shares)


def compare_methods(config, editor, answers, layers, labels, content_free, seed):
    places = [*zip(layers, PARTS.values(), strict=True)]
    searched = [
        [search(config, editor, *answers, labels, place, kind, seed) for place in places]
        for kind in KINDS
    ]
    gains, shares = np.moveaxis(np.array(searched).mean(1), -1, 0)
    plain, before = (each.read(max(layers)) for each in answers)
    shift = readings.best_threshold_shift(as_scores(plain), labels[0])
    scores, free = as_scores(before), as_scores(content_free)
    others = [readings.shift_scores(scores, shift), readings.contextual_calibration(scores, free)]
    usual = readings.accuracy(scores, labels[1])
    return [*gains, *(readings.accuracy(each, labels[1]) - usual for each in others)], shares


def measure_collection(config, model, editor, layers, pool, place):
    sizes = (*config.other_shots, config.shots, config.asked, config.asked)
    seeds = [config.seed, place]
    parts = texts.draw_rows(np.random.default_rng(seeds), pool.labels, *sizes)
    few, many, shown, fitted, asked = parts
    last = model.config.num_layers - 1
    places = 1, last - 1
    validation = Answers(model, pool, shown, pool.questions[fitted], set(layers))
    tested = Answers(model, pool, shown, pool.questions[asked], {*layers, *places, last})
    free = Answers(model, pool, shown, pool.content_free, {last}).read(last)
    labels = [pool.labels[rows] for rows in (fitted, asked)]
    answers = validation, tested
    gains, shares = compare_methods(config, editor, answers, layers, labels, free, seeds)
    change = np.zeros((len(KINDS), len(PARTS), len(PLACES), len(config.rates), len(READINGS)))
    before = measure(tested.read(max(places)), labels[1])
    for k, p, i, r in np.ndindex(change.shape[:-1]):
        edit = editor.edit(KINDS[k], places[i], [*PARTS.values()][p], config.rates[r], seeds)
        change[k, p, i, r] = measure(tested.read(places[i], edit), labels[1]) - before
    whole = measure(tested.read(last), labels[1])
    dropped = tested.read(last, editor.clip(last, PARTS["attention"], "drop"))
    return {
        "whole": whole,
        "change": change,
        "cost": measure_shots(config, editor, model, pool, (few, many, asked), 1),
        "dropped": measure(dropped, labels[1]) - whole,
        "gain": np.array(gains),
        "share": shares,
    }


def compute(config, models):
    model = language_models.load_model(config.model)
    editor, layers = Editor(model.params), choose_layers(config, model.params)
    names, pools = config.collections, texts.read_pools(config, model.tokenizer)

    def run(place):
        return measure_collection(config, model, editor, layers, pools[place], place)

    rows = compute_each("collections", range(len(names)), run)
    axes = {"whole": ("reading",), "change": ("kind", "part", "place", "rate", "reading")}
    axes |= {"cost": ("shots",), "dropped": ("reading",), "gain": ("rule",), "share": ("kind",)}
    data = stack_rows(rows, {name: ("collection", *each) for name, each in axes.items()})
    coordinates = {"collection": list(names), "kind": list(KINDS), "part": list(PARTS)}
    coordinates |= {"place": list(PLACES), "rate": list(config.rates), "shots": ["few", "many"]}
    coordinates |= {"reading": list(READINGS), "rule": list(METHODS)}
    return xr.Dataset(data, coordinates).assign(searched=("part", np.array(layers) + 1))


def change(result, part, reading, place="deep", kind="clipped"):  # -> [R]
    """Return the change of a reading by edits of one layer, a mean over rates."""
    own = result["change"].sel(part=part, reading=reading, place=place, kind=kind)
    return own.mean("rate").values


def deep_less_random(result, part, reading):  # -> [R]
    return change(result, part, reading) - change(result, part, reading, kind="random")


def shallow_less_deep(result, part):  # -> [R]
    return change(result, part, "AUC", "shallow") - change(result, part, "AUC")


def few_less_many(result):  # -> [R]
    return (result["cost"].sel(shots="few") - result["cost"].sel(shots="many")).values


def dropped(result):  # -> [R]
    return result["dropped"].sel(reading="accuracy").values


def find_gain(result, method):  # -> [R]
    return result["gain"].sel(rule=method).values


def algorithm_gains(result):  # -> [R]
    return find_gain(result, ALGORITHM)


def less_algorithm(result, method):  # -> [R]
    return find_gain(result, method) - find_gain(result, ALGORITHM)


def algorithm_less_random(result):  # -> [R]
    return -less_algorithm(result, RANDOM)


def share_less_random(result):  # -> [R]
    return (result["share"].sel(kind="clipped") - result["share"].sel(kind="random")).values


MARGIN = 0.02  # of an accuracy or an AUC: a difference of practical size
WHOLE = "of a language model"
PAIRED = "none: the difference is paired, and 0 without an effect"
CLAIMS = (
    Claim("deep", "A2, Figure 1 (ii), deep layers",
          f"Clipping {{part}} of the last layer but one sharply costs no {{reading}} {WHOLE}",
          "the change of the reading, a mean over rates", change, at_least=-MARGIN,
          over={"part": tuple(PARTS), "reading": READINGS}, null="deep_less_random"),
    Claim("deep_less_random", "derived here", f"Clipping {{part}} of the last layer but one costs "
          f"no more {{reading}} {WHOLE} than random edits of the same norm",
          "the change of the reading less that by random edits", deep_less_random, at_least=-MARGIN,
          over={"part": tuple(PARTS), "reading": READINGS}, null=PAIRED),
    Claim("shallow_less_deep", "A2, Figure 1 (ii), shallow layers",
          f"Clipping {{part}} sharply costs more AUC {WHOLE} in the second layer than in the last "
          "but one", "the change of the AUC in the second layer less that in the last but one",
          shallow_less_deep, at_most=0.0, over={"part": tuple(PARTS)}, null=PAIRED),
    Claim("few_less_many", "A2, Figure 2", "With fewer shots clipping the second layer costs less "
          f"AUC {WHOLE}", "the AUC lost with few shots less that lost with many", few_less_many,
          at_most=0.0, null=PAIRED),
    Claim("dropped", "A2, Appendix B.6", "Dropping the attention of the last layer leaves the "
          f"accuracy {WHOLE} as it was", "accuracy without it less that of the whole model",
          dropped, at_least=-MARGIN, at_most=MARGIN, null="none: 0 without an effect"),
    Claim("algorithm_gains", "A2, Figure 4", f"Algorithm 1 raises the accuracy {WHOLE}",
          "the gain of accuracy on fresh questions, a mean over attention and MLP",
          algorithm_gains, at_least=0.0, null="algorithm_less_random"),
    Claim("algorithm_less_random", "A2, Figure 4", f"Algorithm 1 raises the accuracy {WHOLE} more "
          "than the same search among random edits of the same norm", "the gain of accuracy less "
          "that by random edits", algorithm_less_random, at_least=0.0, null=PAIRED),
    Claim("less_algorithm", "derived here",
          f"One number of the answer ({{method}}) raises the accuracy {WHOLE} at least as much as "
          "Algorithm 1 does", "the gain of accuracy by the method less that by Algorithm 1",
          less_algorithm, at_least=0.0, over={"method": METHODS[2:]}, null=PAIRED),
    Claim("share_less_random", "derived here", "An affine map of the answer explains more of what "
          f"clipping changes {WHOLE} than of what random edits change", "the share of the squared "
          "change of the margin that the best affine map explains, less that for random edits",
          share_less_random, at_least=0.0, null=PAIRED),
)  # fmt: skip


def plot(result, config):  # -> Figure, caption
    figure, (left, right) = plotting.figure(6.75, 2.7, (1, 2))
    rows = [(part, place) for place in PLACES for part in PARTS]
    for kind, color, shift in zip(KINDS, plotting.COLOURS, (-0.12, 0.12), strict=False):
        values = [change(result, part, "AUC", place, kind) for part, place in rows]
        draw_rows(left, np.arange(len(rows)) + shift, values, kind, color)
    name_rows(left, [f"{part.removeprefix('the ')},\n{place}" for part, place in rows])
    left.set(xlabel="change of AUC", title="One layer clipped")
    left.legend()
    gains = [find_gain(result, method) for method in METHODS]
    draw_rows(right, range(len(METHODS)), gains)
    name_rows(right, METHODS)
    right.set(xlabel="gain of accuracy", title="Algorithm 1 and one number")
    algorithm, random, threshold, calibration = (gain.mean() for gain in gains)
    return figure, (
        f"Algorithm 1 changes the accuracy of {language_models.describe_model(config.model)} by "
        f"{algorithm:+.3f}, the same search among random edits by {random:+.3f}. A threshold "
        f"fitted on the same questions changes it by {threshold:+.3f}, and contextual calibration "
        f"by {calibration:+.3f}. Points are means over {len(gains[0])} collections (strokes), bars "
        "95 % intervals."
    )


if __name__ == "__main__":
    main(__file__)
