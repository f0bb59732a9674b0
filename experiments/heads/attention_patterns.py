"""Do separate trainings learn the same attention patterns (A4, attention patterns)?

Heads are compared by their attention maps on one fixed set of prompts: the distance of two heads is
the total variation between their weights, averaged over tokens and prompts. Two trainings have no
common order of heads, so that the distance of their layers is the least mean over permutations. It
is smaller than that of arbitrary heads even if trainings have nothing in common. The null exchanges
heads: the 2H heads of the two layers are split into two sets of H in every way, and each split is
aligned in the same manner. The ratio to the geometric mean over splits is 1 if heads are
exchangeable, below 1 if both trainings learn one set of patterns, and above 1 if heads of one
training are alike.

Pairs of trainings share trainings. A sample is a jackknife pseudo-value, one for each training, of
the mean log ratio over all pairs.
"""

from dataclasses import dataclass
from functools import partial
from itertools import combinations

import jax
import numpy as np
import xarray as xr
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from experiments.heads import risks
from experiments.heads.head_pruning import LOOKS, SOFTMAX
from experiments.models.model import prepare_prompt, transformer_config
from experiments.models.named import NamedModels
from lsa_lab import prompts
from lsa_lab.lab import Claim, compute_each, geometric_mean, main, plotting
from lsa_lab.models import transformer


@dataclass(frozen=True)
class Config(NamedModels):
    names: tuple[str, ...] = SOFTMAX  # trained models
    n: int = 16  # demonstrations of a prompt
    prompts: int = 128  # the same for all trainings of a model
    shown: int = 3  # trainings in the figure, with one prompt
    seed: int = 1721


TIERS = {
    "smoke": Config(SOFTMAX[:1], True, prompts=4, shown=2, seed=1),
    "quick": Config(SOFTMAX[:1], prompts=32, seed=2),
    "full": Config(),
}


@jax.jit
def compute_maps(model, batch):  # Model, Prompt [B] -> [L, H, B, T, n]
    config = transformer_config(model.spec)

    def maps(prompt):
        read, _ = prepare_prompt(model.spec.architecture, prompt)
        weights = model.factored()
        trace = transformer.forward(weights, prompts.tokens(read), config, model.gates)
        return transformer.attention(weights, trace, config)[..., :-1]  # the query is no key

    return jax.vmap(maps, out_axes=2)(batch)


def compute_distances(maps):  # [R, H, B, T, n] -> mean total variations [R, H, R, H]
    runs, count, *rows = maps.shape
    flat = maps.reshape(runs * count, -1)
    distances = cdist(flat, flat, "cityblock") / (2 * rows[0] * rows[1])
    return distances.reshape(runs, count, runs, count)


def compare_pair(distances):  # [2H, 2H], the heads of two layers -> aligned, exchanged
    """Return the distance of the two layers, and its geometric mean over all splits in two."""
    heads = set(range(len(distances)))
    count = len(heads) // 2
    splits = [(0, *rows) for rows in combinations(range(1, 2 * count), count - 1)]
    blocks = [distances[np.ix_(rows, sorted(heads - {*rows}))] for rows in splits]
    values = [block[linear_sum_assignment(block)].mean() for block in blocks]
    return values[0], np.exp(np.mean(np.log(values)))  # the first split is that into trainings


def compare_runs(distances):  # [R, H, R, H] -> [R, R] twice
    """Return aligned and exchanged distances of all pairs of trainings, 0 on the diagonal."""
    runs = len(distances)
    aligned, exchanged = np.zeros((2, runs, runs))
    for r, s in combinations(range(runs), 2):
        pair = distances[[r, s]][:, :, [r, s]].reshape(2 * distances.shape[1], -1)
        aligned[r, s], exchanged[r, s] = compare_pair(pair)
    return aligned + aligned.T, exchanged + exchanged.T


def compute_model(config, runs):  # -> {"aligned", "exchanged": [L, R, R], "shown": [S, L, H, T, n]}
    models, kept = runs.models(), np.flatnonzero(runs.finished[-1])
    batch = risks.draw_prompts(runs.spec.task, config.seed, config.prompts, config.n)
    maps = np.stack([compute_maps(risks.select_run(models, r), batch) for r in kept])
    pairs = [compare_runs(compute_distances(layer)) for layer in maps.swapaxes(0, 1)]
    aligned, exchanged = map(np.stack, zip(*pairs, strict=True))
    shown = np.stack([order_heads(maps[0], each) for each in maps[: config.shown]])
    return {"aligned": aligned, "exchanged": exchanged, "shown": shown[:, :, :, 0]}


def order_heads(reference, maps):  # [L, H, B, T, n] twice -> [L, H, B, T, n]
    """Return the maps with the heads of each layer in the order nearest to the reference."""
    layers = []
    for fixed, moved in zip(reference, maps, strict=True):
        distances = compute_distances(np.stack([fixed, moved]))[0, :, 1]
        layers.append(moved[linear_sum_assignment(distances)[1]])
    return np.stack(layers)


def compute(config, models):
    rows = compute_each("models", [*models.values()], partial(compute_model, config))
    dims = dict.fromkeys(("aligned", "exchanged"), ("layer", "run", "other"))
    dims["shown"] = ("training", "layer", "head", "token", "demonstration")
    groups = [xr.Dataset({key: (dims[key], row[key]) for key in dims}) for row in rows]
    return xr.DataTree.from_dict(dict(zip(models, groups, strict=True)))


def jackknife(values):  # [R, R], symmetric -> [R]
    """Return the pseudo-values R θ - (R - 1) θ_r of the mean θ over pairs; θ_r is that without r.

    θ is a U-statistic of order two, for which the jackknife variance is consistent (Arvesen 1969).
    """
    runs = len(values)
    if runs == 2:
        return values[0, 1:]  # one pair is one sample
    means = (values.sum(1) - np.diag(values)) / (runs - 1)
    return (2 * (runs - 1) * means - runs * means.mean()) / (runs - 2)


def log_ratios(result, model):  # -> [L, R, R], 0 on the diagonal
    if model not in result.children:
        return None
    group = result[model].to_dataset().transpose("layer", "run", "other", ...)
    aligned, exchanged = group["aligned"].values, group["exchanged"].values
    diagonal = np.eye(aligned.shape[1], dtype=bool)[None]
    return np.log(np.where(diagonal, 1, aligned) / np.where(diagonal, 1, exchanged))


def over_exchanged(result, model):  # -> [R], or None
    """Return pseudo-values of the ratio of aligned to exchanged distances, over all layers."""
    logs = log_ratios(result, model)
    return None if logs is None else np.exp(jackknife(logs.mean(0)))


def first_over_later(result, model):  # -> [R], or None
    logs = log_ratios(result, model)
    return None if logs is None else np.exp(jackknife(logs[0] - logs[1:].mean(0)))


ratio = partial(Claim, statistic="ratio", source="A4, Attention patterns", over={"model": SOFTMAX})
CLAIMS = (
    ratio("same_heads", statement="Two trainings have more similar heads in a layer than if the "
          "heads were exchanged between them ({model})", quantity="the aligned distance of two "
          "trainings over that of exchanged heads, geometric mean over layers",
          sample=over_exchanged, at_most=1.0, null="none: 1 if heads are exchangeable"),
    ratio("first_layer", statement="The distance of two trainings over that of exchanged heads: "
          "the value of the first layer, divided by that of later layers ({model})",
          quantity="the ratio in the first layer over its geometric mean in later layers",
          sample=first_over_later, null="none: 1 if layers do not differ"),
)  # fmt: skip


def plot(result, config):  # -> Figure, caption
    figure, (left, right) = plotting.figure(6.75, 2.9, (1, 2), width_ratios=(1.25, 1))
    name = config.names[0]
    shown = result[name]["shown"].isel(layer=0).values
    trainings, heads, tokens, n = shown.shape
    tiles = np.full((trainings, tokens + 1, heads, n + 1), np.nan)
    tiles[:, :tokens, :, :n] = shown.transpose(0, 2, 1, 3)
    image = tiles.reshape(trainings * (tokens + 1), heads * (n + 1))[:-1, :-1]
    left.imshow(image, cmap="Blues", vmin=0, aspect="auto", interpolation="nearest")
    left.set_xticks((n + 1) * np.arange(heads) + n / 2, range(1, heads + 1))
    left.set_yticks((tokens + 1) * np.arange(trainings) + tokens / 2, range(1, trainings + 1))
    left.tick_params(length=0)
    left.set(xlabel="head, aligned", ylabel="training", title=f"{name}, layer 1".capitalize())
    left.spines[:].set_visible(False)
    for i, model in enumerate(config.names):
        logs, look = log_ratios(result, model), LOOKS[model] | dict(ls="none", capsize=1.5)
        runs = np.exp(np.stack([jackknife(layer) for layer in logs], axis=1))
        places = np.arange(len(logs)) + 1 + 0.1 * (i - (len(config.names) - 1) / 2)
        plotting.mean_points(right, places, runs, model, "ratio", **look)
    right.axhline(1, color="grey", lw=0.8, ls=":")
    right.set(xlabel="layer", ylabel="distance / that of exchanged heads", title="All pairs")
    right.set_xticks(range(1, 1 + max(len(log_ratios(result, x)) for x in config.names)))
    right.legend()
    means = {model: geometric_mean(over_exchanged(result, model)) for model in config.names}
    aligned = [result[model]["aligned"].values for model in config.names]  # 0 on the diagonal
    spans = [x.mean() * x.shape[1] / (x.shape[1] - 1) for x in aligned]
    return figure, (
        "The distance between the attention maps of aligned heads of two trainings is "
        f"{', '.join(f'{mean:.3g} ({model})' for model, mean in means.items())} times that after "
        "heads are exchanged between the trainings. The distance is at "
        f"most {max(spans):.2g} in total variation. (a) The first layer of {name} models on one "
        "prompt: a row of tiles is a training, a column an aligned head; a tile has a row for "
        "each token and a column for each demonstration. (b) Geometric means over pairs, with "
        "jackknife intervals; heads that are exchangeable have 1."
    )


if __name__ == "__main__":
    main(__file__)
