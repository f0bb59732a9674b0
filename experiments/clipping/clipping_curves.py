"""Which layers of a trained model tolerate clipping, and at which shots (A2, Figures 1 and 2)?

Transformers are trained to regress or to tell two classes apart. One part of one layer, its
attention or its MLP, is truncated, and the risk on fresh prompts is compared with that of the same
model unedited. The null is a random edit of the same matrices with the same Frobenius norm. An edit
is never chosen on the training on which it is tested. A2 also tests without demonstrations. Our
models have no such test: without demonstrations nothing is known of w, the best prediction is 0 in
both tasks, and clipping has no skill to reduce.
"""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from experiments.clipping import clipped
from experiments.clipping.clipped import PARTS
from experiments.models import tasks
from experiments.models.named import NamedModels
from lsa_lab.analyses.clipping import Edit
from lsa_lab.lab import Claim, geometric_mean, main, plotting
from lsa_lab.lm import readings

_, CLASSES = TASKS = tuple(clipped.MODELS)
KINDS = ("truncation", "random edit")
SHOTS = ("few", "trained")
DRASTIC = 0.75  # the least rate that is called drastic


@dataclass(frozen=True)
class Config(NamedModels):
    names: tuple[str, ...] = tuple(clipped.MODELS.values())  # trained models
    runs: int = 36  # trainings of each model at most
    shots: tuple[int, int] = (5, 10)  # few demonstrations, and as many as in training
    rates: tuple[float, ...] = (0.125, 0.25, 0.5, 0.75, 0.875, 0.9375)
    prompts: int = 600  # of each training, the same for all edits
    worst: float = 1.0  # risk over that of predicting 0; models above it are left out
    seed: int = 5301


TIERS = {
    "smoke": Config(small=True, runs=2, shots=(2, 4), rates=(0.5, 0.75), prompts=16, worst=1e9,
                    seed=1),
    "quick": Config(runs=9, rates=(0.25, 0.75, 0.9375), prompts=150, seed=2),
    "full": Config(),
}  # fmt: skip


def find_threshold_accuracies(answers, batch):  # [R, B], Prompt [R, B] -> [R]
    """Return the accuracy at a threshold that is chosen on the other half of the prompts."""
    labels = (np.asarray(batch.y_query) > 0).astype(int)
    scores = np.stack([np.zeros_like(answers), answers], axis=2)
    pairs = zip(scores, labels, strict=True)
    return np.array([readings.accuracy_after_best_shift(*pair) for pair in pairs])


def measure_model(config, runs):  # -> Dataset (run, shots, kind, layer, part, rate)
    spec, params = runs.spec, clipped.load_params(runs, config.runs)
    depth, count = spec.architecture.depth, len(params.w_q)
    key = jax.random.fold_in(jax.random.key(config.seed), TASKS.index(clipped.find_task(spec)))
    key_edits, key_prompts = jax.random.split(key)
    places = np.ndindex(depth, len(PARTS), len(config.rates))
    modules = tuple(PARTS.values())
    edits = [Edit(layer, modules[part], config.rates[rate]) for layer, part, rate in places]
    truncated = clipped.edit_all(params, edits)
    random = clipped.disturb_all(key_edits, params, truncated)
    models = clipped.join_edits(params, truncated, random)
    law = tasks.distribution(spec.task, dtype=jnp.float32)
    batch = tasks.draw_runs(key_prompts, law, count, config.prompts)
    rows = []
    for n in config.shots:
        few = clipped.shorten(batch, n)
        answers = np.asarray(clipped.predict_all(spec, models, few))
        row = {"risk": clipped.compute_risks(answers, few)}
        row["accuracy"] = clipped.compute_accuracies(answers, few)
        rows.append(row | {"threshold": find_threshold_accuracies(answers[:, 0], few)})
    tables = {name: np.stack([row[name] for row in rows], axis=1) for name in rows[0]}
    shape = (count, len(SHOTS), len(KINDS), depth, len(PARTS), len(config.rates))
    axes = ("run", "shots")
    data = {"threshold": (axes, tables.pop("threshold"))}
    for name, table in tables.items():
        data[f"unedited_{name}"] = axes, table[..., 0]
        data[name] = (*axes, "kind", "layer", "part", "rate"), table[..., 1:].reshape(shape)
    data["zero"] = "run", (np.asarray(batch.y_query, float) ** 2).mean(1)
    penalty = spec.task.noise_std**2 / max(spec.task.lengths)
    data["ridge"] = "run", np.asarray(tasks.ridge_risks(batch, penalty), float)
    coordinates = {"shots": list(SHOTS), "kind": list(KINDS), "layer": np.arange(depth) + 1}
    coordinates |= {"part": list(PARTS), "rate": list(config.rates)}
    able = [clipped.find_able(row["risk"][:, 0], batch, config.worst) for row in rows]
    kept = np.flatnonzero(np.all(able, axis=0))
    left_out = min(config.runs, spec.training.seeds) - len(kept)
    return xr.Dataset(data | {"left_out": left_out}, coordinates).isel(run=kept)


def compute(config, models):
    groups = {clipped.find_task(r.spec): measure_model(config, r) for r in models.values()}
    return xr.DataTree.from_dict(groups)


def select(result, task, shots="trained"):  # -> Dataset, or None
    return result[task].to_dataset().sel(shots=shots) if task in result.children else None


def drastic_factors(data, kind=KINDS[0]):  # -> (run, layer, part)
    """Return what an edit multiplies the risk by, a geometric mean over drastic rates."""
    factors = data["risk"].sel(kind=kind) / data["unedited_risk"]
    return np.exp(np.log(factors.sel(rate=slice(DRASTIC, None))).mean("rate"))


def best_for_others(costs):  # (run, ...) -> [R]
    """Return the cost of each run at the place of the least mean cost over the other runs."""
    table = costs.transpose("run", ...).values.reshape(costs.sizes["run"], -1)
    others = table.sum(0) - table
    return table[np.arange(len(table)), others.argmin(1)]


def best_factor(data, kind=KINDS[0]):  # -> [R]
    logs = np.log(data["risk"].sel(kind=kind) / data["unedited_risk"])
    return np.exp(best_for_others(logs))


def factor_of_best(result, task):  # -> [R], or None
    data = select(result, task)
    return None if data is None else best_factor(data)


def over_random(result, task, edit):  # -> [R], or None
    """Return the factor of truncation over that of random edits, each at its place."""
    data = select(result, task)
    if data is None:
        return None
    if edit == BEST:
        first, second = (best_factor(data, kind) for kind in KINDS)
        return first / second
    part = edit.removeprefix("drastic, last ")
    first, second = (drastic_factors(data, kind).sel(part=part) for kind in KINDS)
    return (first / second).isel(layer=-1).values


def factor_of_last(result, task, part):  # -> [R], or None
    data = select(result, task)
    return None if data is None else drastic_factors(data).sel(part=part).isel(layer=-1).values


def over_last(result, task, layer):  # -> [R], or None
    data = select(result, task)
    if data is None or layer >= data.sizes["layer"]:
        return None
    factors = drastic_factors(data).sel(part="attention")
    return (factors.sel(layer=layer) / factors.isel(layer=-1)).values


def skill_kept(result, task, part):  # -> [R], or None
    """Return the share of the skill that is left with layer 1 truncated at the largest rate.

    The skill is 1 - risk / risk of predicting 0; for two classes it is 2 accuracy - 1. Models
    without skill are left out.
    """
    data = select(result, task)
    if data is None:
        return None
    sharp = data.sel(kind=KINDS[0], part=part, layer=1).isel(rate=-1)
    if task == CLASSES:
        after, before = (2 * sharp[name] - 1 for name in ("accuracy", "unedited_accuracy"))
    else:
        after, before = (1 - sharp[name] / sharp["zero"] for name in ("risk", "unedited_risk"))
    skilled = before.values > 0
    return np.maximum(after.values[skilled] / before.values[skilled], 0) if any(skilled) else None


def few_over_trained(result, task, layer):  # -> [R], or None
    if task not in result.children or layer > result[task].sizes["layer"]:
        return None
    few, trained = (drastic_factors(select(result, task, shots)) for shots in SHOTS)
    return (few / trained).sel(part="attention", layer=layer).values


def few_added(result, task, kind):  # -> [R], or None
    """Return what drastic edits of layer 1 add to the risk, over that of predicting 0.

    It is the difference between few shots and as many as in training.
    """
    if task not in result.children:
        return None
    added = []
    for shots in SHOTS:
        data = select(result, task, shots).sel(rate=slice(DRASTIC, None))
        risks = data["risk"].sel(kind=kind, part="attention", layer=1).mean("rate")
        added.append((risks - data["unedited_risk"]) / data["zero"])
    return (added[0] - added[1]).values


def accuracy_over(result, baseline):  # -> [R], or None
    """Return the accuracy after the best truncation for the other runs, less that of a baseline."""
    data = select(result, CLASSES)
    if data is None:
        return None
    change = data["accuracy"] - data["unedited_accuracy"]
    best, disturbed = (-best_for_others(-change.sel(kind=kind)) for kind in KINDS)
    moved = (data["threshold"] - data["unedited_accuracy"]).values
    return best - {"no edit": 0, "a threshold": moved, "random edits": disturbed}[baseline]


def deep_less_shallow(result, part):  # -> [R], or None
    data = select(result, CLASSES)
    if data is None:
        return None
    accuracy = (
        data["accuracy"].sel(kind=KINDS[0], part=part, rate=slice(DRASTIC, None)).mean("rate")
    )
    return (accuracy.isel(layer=-1) - accuracy.sel(layer=1)).values


BEST = "best for others"
EDITS = (BEST, *(f"drastic, last {part}" for part in PARTS))
PAIRED = "none: the ratio is paired, and 1 without a difference"
FACTOR = f"the risk truncated over unedited, a geometric mean over rates from {DRASTIC:g},"
LAYERS = (1, 2)
FULL = TIERS["full"]
ratio = partial(Claim, statistic="ratio")
CLAIMS = (
    ratio("best_edit", "A2, Figure 1 (i)", "In {task} the truncation that is best for the other "
          "trainings lowers the risk of a trained transformer",
          "the risk after this truncation over that unedited", factor_of_best, at_most=1.0,
          over={"task": TASKS}, null="over_random"),
    ratio("over_random", "derived here", "In {task} a truncation ({edit}) leaves a lower risk than "
          "random edits with the same norm", "the risk after truncation over that after random "
          "edits", over_random, at_most=1.0, over={"task": TASKS, "edit": EDITS}, null=PAIRED,
          note="the best random edit is chosen as the best truncation is"),
    ratio("last_layer", "A2, Figure 1 (ii), deep layers", "In {task} the last layer's {part} can "
          "be truncated drastically without much loss", FACTOR, factor_of_last, at_most=1.1,
          over={"task": TASKS, "part": tuple(PARTS)}, null="over_random"),
    ratio("over_last", "A2, Figure 1 (ii), shallow layers", "In {task} drastic truncation of "
          "attention does more damage in layer {layer} than in the last layer",
          f"{FACTOR} in this layer over that in the last", over_last, at_least=1.0,
          over={"task": TASKS, "layer": LAYERS}, null=PAIRED),
    Claim("skill_kept", "A2, Figure 1 (ii), shallow layers", "In {task} truncating the first "
          "layer's {part} at the largest rate leaves a guess", "the share of the skill that is "
          "left; predicting 0, or a guess of the class, has none", skill_kept, at_most=0.1,
          over={"task": TASKS, "part": tuple(PARTS)}, null="none: the unedited model keeps 1"),
    ratio("few_shots", "A2, Figure 2", "In {task} drastic truncation of the attention of layer "
          "{layer} multiplies the risk by less with few shots",
          f"{FACTOR} at {FULL.shots[0]} shots over that at {FULL.shots[1]}", few_over_trained,
          at_most=1.0, over={"task": TASKS, "layer": LAYERS}, null=PAIRED,
          note="with few shots the unedited risk is larger; few_added is the other reading"),
    Claim("few_added", "A2, Figure 2", "What drastic edits ({kind}) of the first layer's attention "
          "add to the risk in {task} with few shots, less with as many as in training",
          "the added risk over that of predicting 0, averaged over rates "
          f"from {DRASTIC:g}, at {FULL.shots[0]} shots less at {FULL.shots[1]}", few_added,
          over={"task": TASKS, "kind": KINDS}, null="none: 0 if shots do not matter",
          note="post hoc: added when the registered result was known"),
    Claim("accuracy", "A2, Figure 1 (i)", "The truncation that is best for the other trainings "
          "gives two-class models a higher accuracy than {baseline}",
          "the accuracy after this truncation less that of the baseline", accuracy_over,
          at_least=0.0, over={"baseline": ("no edit", "a threshold", "random edits")},
          null="none: the difference is paired, and 0 without an effect",
          note="the threshold is chosen on other prompts of the same training"),
    Claim("deep_less_shallow", "A2, Figure 1 (ii), shallow layers", "Two-class models keep a "
          "higher accuracy with the {part} of the last layer truncated drastically than with that "
          "of the first", f"the difference of accuracies, averaged over rates from {DRASTIC:g}",
          deep_less_shallow, at_least=0.0, over={"part": tuple(PARTS)},
          null="none: the difference is paired, and 0 if layers are alike"),
)  # fmt: skip


LOOKS = plotting.looks(PARTS, "so", (plotting.VERMILION, plotting.BLUE))


def plot(result, config):  # -> Figure, caption
    tasks = [task for task in TASKS if task in result.children]
    picture, axes = plotting.figure(6.75, 2.7, (1, len(tasks)), sharey=True)
    for ax, task in zip(axes, tasks, strict=True):
        data = select(result, task)
        layers = data["layer"].values
        for i, part in enumerate(LOOKS):
            for kind, shift in zip(KINDS, (-0.1, -0.04), strict=True):
                look = {} if kind == KINDS[0] else dict(ls="none", mfc="white", alpha=0.7)
                look |= dict(label=f"{part}, {kind}", lw=0.8, **LOOKS[part])
                runs, places = drastic_factors(data, kind).sel(part=part), layers + 0.2 * i + shift
                plotting.mean_points(ax, places, runs, statistic="ratio", **look)
        plotting.log_axes(ax, y=True)
        ax.axhline(1, color="grey", lw=0.8, ls=":")
        ax.set(xlabel="layer that is edited", xticks=layers, title=task.capitalize())
    plotting.log_axes(axes[0], y=True, y_ticks=(0.5, 1, 1.5, 2, 3, 5, 10, 20, 50))
    axes[0].set_ylabel("risk edited / unedited")
    axes[-1].legend()
    return picture, (
        f"{' '.join(describe(select(result, task), task) for task in tasks)} Points are geometric "
        f"means of trainings and of rates from {DRASTIC:g} to {max(config.rates):g}."
    )


def describe(data, task) -> str:
    means = np.exp(np.log(drastic_factors(data)).mean("run")).sel(part="attention")
    if task == CLASSES:
        quality = f"an accuracy of {float(data['unedited_accuracy'].mean()):.3f}"
    else:
        ratio = geometric_mean(data["unedited_risk"] / data["ridge"])
        quality = f"{ratio:.2f} times the risk of ridge regression"
    return (
        f"In {task} drastic truncation of the first layer's attention multiplies the risk by "
        f"{float(means[0]):.3g}, and of the last layer's by {float(means[-1]):.3g}; the "
        f"{data.sizes['run']} models have {quality} unedited ({int(data['left_out'])} left out)."
    )


if __name__ == "__main__":
    main(__file__)
