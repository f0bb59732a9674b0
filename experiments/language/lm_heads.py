"""Does a language model need all heads of its first layer, and one of each later layer (A4)?

A head matters by how far closing it moves the answer: KL(p, p') of the labels' probabilities, p'
with the head closed for the whole prompt. Every head of every layer is closed in turn. The
effective heads of a layer are exp(entropy) of its heads' shares of that sum, averaged over
collections of texts. Heads that are kept in pruned models are chosen on the other collections.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from scipy.stats import rankdata

from experiments.language import models as language_models
from experiments.language import texts
from experiments.language.drawing import draw_rows, name_rows
from lsa_lab.lab import Claim, compute_each, main, plotting
from lsa_lab.lm import cached_stream

TASK = 0.6  # the least share of right answers of a model that does the task
KEPT = ("top head", "random head")  # of each later layer, in pruned models


@dataclass(frozen=True)
class Config:
    model: str = "smollm2"  # a source of lsa_lab.lm, or the path of a GGUF file or of a folder
    collections: tuple[str, ...] = texts.TWELVE
    width: int = 20  # tokens of a question
    places: int = 0  # layers whose heads are closed, evenly from first to last; 0 for all
    shots: int = 4  # demonstrations before every question
    asked: int = 6  # questions of a collection with heads closed one by one
    tested: int = 40  # others, with all but one head of each later layer closed
    draws: int = 3  # of random heads to keep
    seed: int = 1802


SMOKE = dict(width=8, shots=2, asked=2, tested=4, draws=1, seed=1)
QUICK = dict(places=5, shots=2, asked=2, tested=8, draws=1)
TIERS = {
    "smoke": Config(language_models.RANDOM, (texts.INVENTED,) * 2, **SMOKE),
    "quick": Config(collections=("space/hockey", "tweets"), **QUICK, seed=2),
    "full": Config(),
}


def answer(model, cached, layer, masks, words):  # [M, L, H] -> [M, B]
    """Return the margin of each question under masks of heads that begin at a layer."""

    params, config = model.params, model.config

    def run(mask):
        stream = cached[layer]
        return cached_stream.resume(params, stream, config, at=layer, head_mask=mask)[:, -1]

    rows = jax.vmap(run)(jnp.asarray(masks, params.w_o.dtype))
    return np.asarray(language_models.read_margins(params, rows, words, config=config), float)


def find_change(whole, margin):  # -> KL of two labels' probabilities, in nats
    p, lost = 1 / (1 + np.exp(-whole)), np.logaddexp(0, -margin) - np.logaddexp(0, -whole)
    return p * lost + (1 - p) * (np.logaddexp(0, margin) - np.logaddexp(0, whole))


def measure_importance(model, pool, shown, asked, layers):  # -> [l, H]
    """Return the change of answers with each head of some layers closed, a mean over questions."""
    depth, count = model.config.num_layers, model.config.num_heads
    layers = [layer - 1 for layer in layers]  # from 0, as the library counts
    cached = language_models.cache_streams(model, pool.write(shown), pool.questions[asked], layers)
    opened = np.ones((count, depth, count))  # a mask for each head that is closed
    whole = answer(model, cached, layers[-1], opened, pool.words)[0]
    changes = []
    for layer in layers:
        masks = opened.copy()
        masks[:, layer] -= np.eye(count)
        changes.append(find_change(whole, answer(model, cached, layer, masks, pool.words)))
    return np.stack(changes).mean(-1)


def keep_heads(heads, later, shape):  # [l-1], [l-1], (L, H) -> mask [L, H]
    """Return a mask that keeps one head of each of some later layers, and all of the others."""
    mask = np.ones(shape)
    mask[np.array(later) - 1] = np.eye(shape[1])[heads]
    return mask


def average_shares(importance):  # [R, L, H] -> [L, H]
    """Return a head's share of the importance of its layer, a mean over collections."""
    return (importance / importance.sum(-1, keepdims=True)).mean(0)


def count_heads(shares):  # [..., H] -> [...]
    """Return exp(entropy), the number of heads that would matter equally."""
    return np.exp(-(shares * np.log(np.where(shares > 0, shares, 1))).sum(-1))


def choose_heads(importance, collection):  # -> [L-1]
    """Return the head of each later layer that matters most in the other collections."""
    return average_shares(np.delete(importance, collection, 0))[1:].argmax(-1)


def compute(config, models):
    model = language_models.load_model(config.model)
    layers = language_models.select_layers(model.config.num_layers, config.places)
    names, sizes = config.collections, (config.shots, config.asked, config.tested)
    generators = [np.random.default_rng([config.seed, place]) for place in range(len(names))]
    pools = texts.read_pools(config, model.tokenizer)
    pairs = zip(generators, pools, strict=True)
    parts = [texts.draw_rows(rng, pool.labels, *sizes) for rng, pool in pairs]

    def close(i):
        return measure_importance(model, pools[i], *parts[i][:2], layers)

    importance = np.stack(compute_each("heads closed", range(len(names)), close))

    shape = model.config.num_layers, model.config.num_heads

    def prune(i):  # -> margins [masks, B] of the whole model, with these heads, with random ones
        (shown, _, tested), pool = parts[i], pools[i]
        prompt = pool.write(shown), pool.questions[tested]
        random = generators[i].integers(shape[1], size=(config.draws, len(layers) - 1))
        kept = [keep_heads(x, layers[1:], shape) for x in (choose_heads(importance, i), *random)]
        cached = language_models.cache_streams(model, *prompt, (0,))
        return answer(model, cached, 0, np.stack([np.ones(shape), *kept]), pool.words)

    margins = np.stack(compute_each("pruned models", range(len(names)), prune))
    labels = [pool.labels[part[-1]] for pool, part in zip(pools, parts, strict=True)]
    data = {
        "importance": (("collection", "layer", "head"), importance),
        "margin": (("collection", "mask", "question"), margins),
        "label": (("collection", "question"), np.stack(labels)),
    }
    return xr.Dataset(data, {"collection": list(names), "layer": list(layers)})


def find_pseudo_values(result):  # -> [R, L]
    """Return R N(all) - (R - 1) N(all but one) of the effective heads N.

    Their mean is N less its bias, and their spread is that of N (Quenouille 1956).
    """
    importance = result["importance"].transpose("collection", "layer", "head").values
    count = len(importance)
    without = [count_heads(average_shares(np.delete(importance, i, 0))) for i in range(count)]
    return count * count_heads(average_shares(importance)) - (count - 1) * np.stack(without)


def first_less_later(result):  # -> [R]
    heads = find_pseudo_values(result)
    return heads[:, 0] - heads[:, 1:].mean(1)


def later_heads(result):  # -> [R]
    return find_pseudo_values(result)[:, 1:].mean(1)


def same_head(result):  # -> [R]
    importance = result["importance"].transpose("collection", "layer", "head").values
    tops = importance[:, 1:].argmax(-1)
    others = [choose_heads(importance, i) for i in range(len(importance))]
    return (tops == np.stack(others)).mean(1) - 1 / importance.shape[-1]


def find_accuracy(result):  # -> [R, masks]
    margins = result["margin"].transpose("collection", "mask", "question").values
    return ((margins > 0) == result["label"].values[:, None]).mean(-1)


def pruned(result):  # -> [R], or None where the model does no task
    accuracy = find_accuracy(result)
    accuracy = accuracy[accuracy[:, 0] >= TASK]
    return accuracy[:, 1] - accuracy[:, 0] if len(accuracy) else None


def order_kept(result):  # -> [R, kinds]
    """Return the rank correlation of a pruned model's margins with those of the whole model."""
    margins = result["margin"].transpose("collection", "mask", "question").values
    ranks = rankdata(margins, axis=-1)
    rows = [[np.corrcoef(whole, x)[0, 1] for x in others] for whole, *others in ranks]
    return np.array([[top, np.mean(random)] for top, *random in rows])


def pruned_less_random(result):  # -> [R]
    return order_kept(result) @ [1, -1]


CLAIMS = (
    Claim("first_less_later", "A4, Figure 1c, first layer",
          "The first layer of a language model uses more of its heads than later layers do",
          "effective heads of the first layer less the mean of all later layers",
          first_less_later, at_least=0.0, null="none: the difference is 0 if layers are alike"),
    Claim("later_heads", "A4, Figure 1c, later layers",
          "In the later layers of a language model one head does most",
          "effective heads of a later layer, mean over all of them", later_heads, at_most=2.0,
          null="none: all heads of a layer", note="two heads that matter equally count as 2"),
    Claim("same_head", "A4, Figure 1c, later layers",
          "The head that matters most in a later layer is the same for other texts",
          "the share of later layers in which the top head is the top head in the other "
          "collections, less that by chance", same_head, at_least=0.0, null="none: by chance 0"),
    Claim("pruned", "A4, Figure 1d", "Removing all but the top head of each later layer costs a "
          "language model no accuracy", "accuracy with one head in each later layer less that of "
          "the whole model", pruned, at_least=-0.02, null="pruned_less_random"),
    Claim("pruned_less_random", "A4, Figure 1d", "The top head of each later layer keeps more of a "
          "language model's answers than a random head does", "rank correlation with the whole "
          "model's margins, of the top heads less random ones", pruned_less_random, at_least=0.0,
          null="none: the difference is paired"),
)  # fmt: skip


def plot(result, config):  # -> Figure, caption
    figure, (left, right) = plotting.figure(6.75, 2.6, (1, 2), width_ratios=(3, 2))
    heads, count = find_pseudo_values(result), result.sizes["head"]
    layers = result["layer"].values
    plotting.mean_points(left, layers, heads, color=plotting.BLUE, marker="o", ls="none")
    for level in (1, count):
        left.axhline(level, color="grey", lw=0.8, ls=":")
    left.set(xlabel="layer", ylabel="effective heads", title="Heads that matter, by layer")
    left.set(ylim=(0, count + 1), yticks=range(1, count + 1))
    kept = order_kept(result)
    draw_rows(right, range(2), kept.T)
    name_rows(right, KEPT)
    right.set(xlabel="rank correlation with the whole model", title="One head in later layers")
    accuracy = find_accuracy(result)
    able = accuracy[:, 0] >= TASK
    return figure, (
        f"In {language_models.describe_model(config.model)} {heads[:, 0].mean():.1f} of {count} "
        f"heads matter in the first layer, and {heads[:, 1:].mean():.1f} in a later one. With only "
        f"the top head of each later layer the margins' rank correlation with the whole model's is "
        f"{kept[:, 0].mean():.2f}, and with random heads {kept[:, 1].mean():.2f} (strokes: "
        f"collections). The whole model answers at least {TASK:.0%} of questions right in "
        f"{able.sum()} of {len(able)} collections. Bars are 95 % intervals, dotted lines one head "
        "and all; a jackknife removes bias, so that an estimate may lie above all."
    )


if __name__ == "__main__":
    main(__file__)
