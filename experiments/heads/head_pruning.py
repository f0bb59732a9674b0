"""How many heads of a layer matter, and what does it cost to remove the others (A4, Figure 1c, d)?

The importance of a head is the rise of the risk when it alone writes nothing. A layer whose
importances have shares p has exp(-Σ p log p) effective heads; H equal heads count H. That is a
property of what a layer computes where its heads are identifiable: softmax heads, and narrow linear
heads. Merged heads as wide as a token can be mixed without any change of a prediction (docs/theory,
"Heads are not unique"), which changes their importances; we measure by how much. Removed heads are
chosen on other prompts than those on which the risk is measured. Nothing is trained again.
Predictions are clipped at twice the largest label, which bounds the risk of a pruned model.
"""

from dataclasses import dataclass
from functools import partial
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from experiments.heads import risks
from experiments.models.named import NamedModels
from lsa_lab.analyses import heads
from lsa_lab.lab import Claim, compute_each, geometric_mean, main, plotting, stack_rows
from lsa_lab.models.linear_attention import mix_heads

MERGED = "sparse"  # heads can be mixed; it also has variants with one head in each later layer
SOFTMAX = ("sparse softmax", "softmax attention", "transformer")
IDENTIFIABLE = (*SOFTMAX, "four narrow heads")
TOP, OTHERS, ANY = "top later heads", "random later heads", "as many at random"
KEPT = ("all", TOP, "top head of layer 1", OTHERS, ANY)
ALL_HEADS, ONE_LATER = (4, 4, 4), (4, 1, 1)  # variants of the merged models


@dataclass(frozen=True)
class Config(NamedModels):
    names: tuple[str, ...] = (MERGED, *IDENTIFIABLE)  # trained models
    n: int = 16  # demonstrations of a prompt, for every model
    prompts: int = 1024  # of each training: to measure importance on, and as many for the risk
    draws: int = 4  # of each random choice of heads, and of mixings
    worst: float = 1.0  # risk over that of the answer 0: a training above it is left out
    seed: int = 1711


TIERS = {
    "smoke": Config((MERGED, SOFTMAX[0]), True, prompts=64, draws=2, worst=99, seed=1),
    "quick": Config((MERGED, SOFTMAX[0]), prompts=256, draws=2, seed=2),
    "full": Config(),
}


def measure_importance(model, batch):  # -> [L, H], by how much the risk rises without each head
    gates = np.asarray(model.gates)
    single = 1 - np.eye(gates.size).reshape(-1, *gates.shape)
    masks = np.concatenate([gates[None], gates * single])
    values = risks.mask_risks(model, batch, masks)
    return (values[1:] - values[0]).reshape(gates.shape)


def choose_masks(importance, key, draws):  # [L, H] -> {kept: [M, L, H]}
    """Return the masks of each choice of heads; random choices have several."""
    scores = jnp.asarray(importance)
    chosen = (jnp.ones_like(scores), heads.prune(scores), heads.prune_first_layer(scores))
    masks = dict(zip(KEPT, (mask[None] for mask in chosen), strict=False))
    for tag, draw in enumerate((heads.prune_to_random_heads, heads.remove_at_random)):
        keys = jax.random.split(jax.random.fold_in(key, tag), draws)
        masks[(OTHERS, ANY)[tag]] = np.stack([draw(key, scores) for key in keys])
    return masks


def draw_pair(config, runs, run):  # -> two Prompts [B]: to choose heads on, and for the risk
    seeds = (config.seed + 2 * run, config.seed + 2 * run + 1)
    return [risks.draw_prompts(runs.spec.task, s, config.prompts, config.n) for s in seeds]


def prune_run(config, models, item):  # -> {"importance": [L, H], "risk": [kept], "zero": []}
    name, run = item
    runs = models[name]
    model, (chosen_on, batch) = risks.select_run(runs.models(), run), draw_pair(config, runs, run)
    if model.gates is None:
        model = model.replace(gates=np.ones((runs.spec.architecture.depth, 4)))
    importance = measure_importance(model, chosen_on)
    masks = choose_masks(importance, jax.random.key(config.seed + run), config.draws)
    every = np.concatenate([*masks.values()])
    values = iter(risks.mask_risks(model, batch, every))
    means = [np.exp(np.mean([np.log(next(values)) for _ in rows])) for rows in masks.values()]
    return {"importance": importance, "risk": means, "zero": (batch.y_query**2).mean()}


def mix_run(config, runs, run):  # -> {"importance": [1 + draws, L, H], "risk": [2]}
    rows = runs.spec.architecture.rows
    variants = (runs.models(rows.index(row)) for row in (ALL_HEADS, ONE_LATER))
    full, one_later = (risks.select_run(variant, run) for variant in variants)
    chosen_on, batch = draw_pair(config, runs, run)
    depth, count = full.gates.shape
    key = jax.random.key(config.seed + run)
    mixings = jax.random.orthogonal(key, count, (config.draws, depth), dtype=jnp.float32)
    mixed = [full.replace(params=mix_heads(full.params, mixing)) for mixing in mixings]
    importances = [measure_importance(model, chosen_on) for model in (full, *mixed)]
    values = [float(risks.measure_risk(model.plain(), batch)) for model in (full, one_later)]
    changed = float(risks.measure_risk(mixed[0].plain(), batch))
    if not np.isclose(changed, values[0], rtol=1e-2):
        raise ArithmeticError(f"a mixing changed the risk from {values[0]} to {changed}")
    return {"importance": importances, "risk": values, "zero": (batch.y_query**2).mean()}


def compute(config, models):
    groups = {}
    for name in config.names:
        finished = np.flatnonzero(models[name].finished.all(0)).tolist()  # in all variants
        if name == MERGED:
            rows = compute_each(name, finished, partial(mix_run, config, models[name]))
            dims = {"importance": ("run", "mixing", "layer", "head"), "risk": ("run", "variant")}
        else:
            items = list(product([name], finished))
            rows = compute_each(name, items, partial(prune_run, config, models))
            dims = {"importance": ("run", "layer", "head"), "risk": ("run", "kept")}
        kept = {} if name == MERGED else {"kept": list(KEPT)}
        group = xr.Dataset(stack_rows(rows, dims), kept)
        works = group["risk"][:, 0] < config.worst * np.array([row["zero"] for row in rows])
        group = group.isel(run=np.flatnonzero(works))
        lost = models[name].spec.training.seeds - group.sizes["run"]
        groups[name] = group.assign(left_out=lost)
    return xr.DataTree.from_dict(groups)


def count_heads(result, model):  # -> (run, layer), or None
    """Return the effective heads of each layer as trained."""
    if model not in result.children:
        return None
    importance = result[model]["importance"]
    if model == MERGED:
        importance = importance.isel(mixing=0)
    values = importance.transpose("run", "layer", "head").values
    return np.asarray(jax.vmap(heads.effective_heads)(jnp.asarray(values)))


def first_less_exchanged(result, model):  # -> [R], or None
    """Return N_1 less the mean over layers, its value if the layers were exchanged at random."""
    counts = count_heads(result, model)
    return None if counts is None else counts[:, 0] - counts.mean(1)


def later_heads(result, model):  # -> [R], or None
    counts = count_heads(result, model)
    return None if counts is None else counts[:, 1:].mean(1)


def compare(result, model, over, under="all"):  # -> [R], or None
    if model not in result.children:
        return None
    risk = result[model]["risk"]
    return (risk.sel(kept=over) / risk.sel(kept=under)).values


def over_pruned(result, model, kept):  # -> [R], or None
    return compare(result, model, kept, TOP)


def trained_so(result):  # -> [R], or None
    if MERGED not in result.children:
        return None
    risk = result[MERGED]["risk"].transpose("run", "variant").values
    return risk[:, 1] / risk[:, 0]


def mixing_moves(result):  # -> [R], or None
    """Return the mean |N - N'| over layers and mixings, N as trained and N' after a mixing."""
    if MERGED not in result.children:
        return None
    values = result[MERGED]["importance"].transpose("run", "mixing", "layer", "head").values
    counts = np.asarray(jax.vmap(jax.vmap(heads.effective_heads))(jnp.asarray(values)))
    return np.abs(counts[:, 1:] - counts[:, :1]).mean((1, 2))


ratio = partial(Claim, statistic="ratio")
PAIRED = "none: the ratio is paired, and 1 without an effect"
EACH = {"model": IDENTIFIABLE}
CLAIMS = (
    Claim("first_layer", "A4, Figure 1c, first layer",
          "The number of effective heads in the first layer ({model}), less that in a layer chosen "
          "at random", "N_1 less the mean of N_l over layers", first_less_exchanged, over=EACH,
          null="none: the difference is paired, and 0 if layers are exchanged"),
    Claim("later_layers", "A4, Figure 1c, later layers", "One head dominates each later layer "
          "({model})", "the mean of N_l over later layers", later_heads, at_most=1.5, over=EACH,
          null="none: heads that matter alike count 4"),
    ratio("pruned", "A4, Figure 1d", "Removing all but the top head of each later layer ({model}) "
          "raises the risk by at most a tenth", "the risk of the pruned model over that of the "
          "full one", partial(compare, over=TOP), at_most=1.1, over=EACH, null="others"),
    ratio("others", "derived here", "Keeping {kept} ({model}) costs more than keeping the top "
          "later heads", "the risk over that of the model with its top later heads", over_pruned,
          at_least=1.0, over=EACH | {"kept": (OTHERS, ANY)}, null=PAIRED),
    ratio("trained_so", "A4, Abstract, pattern", "Merged linear attention trained with heads 4,1,1 "
          "has at most 1.1 times the risk of that with heads 4,4,4", "the risk with 4,1,1 over "
          "that with 4,4,4", trained_so, at_most=1.1, null=PAIRED),
    Claim("mixing", "derived here", "In merged linear attention a random orthogonal mixing of the "
          "heads, which changes no prediction, moves the number of effective heads of a layer",
          "the mean over layers of the absolute change of N_l", mixing_moves,
          null="none: 0 where heads are identifiable"),
)  # fmt: skip

COLOURS = (plotting.VERMILION, plotting.ORANGE, plotting.PURPLE, plotting.BLUE)
LOOKS = plotting.looks(IDENTIFIABLE, "sDPo", COLOURS)


def plot(result, config):  # -> Figure, caption
    figure, (left, right) = plotting.figure(6.75, 2.8, (1, 2), width_ratios=(1, 1.1))
    names = [name for name in config.names if name != MERGED]
    for i, name in enumerate(names):
        counts, look = count_heads(result, name), LOOKS[name] | dict(ls="none", capsize=1.5)
        places = np.arange(counts.shape[1]) + 1 + 0.12 * (i - (len(names) - 1) / 2)
        plotting.mean_points(left, places, counts, name, **look)
        left.axhline(counts.mean(), color=look["color"], lw=0.6, ls=":", zorder=0)
    left.set(xlabel="layer", ylabel="effective heads of 4", ylim=(0.8, 5.4), yticks=range(1, 5))
    left.set_title("Effective heads")
    left.set_xticks(range(1, 1 + max(count_heads(result, name).shape[1] for name in names)))
    left.legend(loc="upper center", ncols=2)
    runs = {n: np.stack([compare(result, n, kept) for kept in KEPT[1:]], axis=1) for n in names}
    y = range(len(KEPT) - 1)
    plotting.series(right, y, runs, LOOKS, "ratio", 0.16, rows=True, elinewidth=1.2)
    right.axvline(1.1, color="grey", lw=0.8, ls=":")
    ticks = [tick for tick in (1, 2, 3, 5, 10, 20, 50, 100) if tick < right.get_xlim()[1]]
    plotting.log_axes(right, x=True, ticks=ticks)
    labels = "top of each\nlater layer", "top of\nlayer 1 only", "random of each\nlater layer"
    right.set_yticks(y, [*labels, "as many,\nat random"])
    right.set(ylim=(len(KEPT) - 1.5, -0.5), xlim=(0.95, None))
    right.set(xlabel="risk / full model's", title="What is kept")
    later = [later_heads(result, name).mean() for name in names]
    costs = [geometric_mean(compare(result, name, TOP)) for name in names]
    lost = sum(int(result[name]["left_out"]) for name in config.names)
    return figure, (
        f"Later layers of models with identifiable heads have {min(later):.2g} to {max(later):.2g} "
        f"effective heads of 4. Keeping only the top head of each later layer multiplies the risk "
        f"by {min(costs):.2g} or more. In merged linear attention a mixing of heads, which changes "
        f"no prediction, moves the number by {mixing_moves(result).mean():.2g} on average. Dotted: "
        f"means over layers (a), a tenth more risk (b). {lost} trainings are left out."
    )


if __name__ == "__main__":
    main(__file__)
