"""Can all heads but one be removed from every later layer, and what do other removals cost?"""

import numpy as np

from experiments import style
from experiments.configs.head_pruning import CLAIMS, CLAIMS_OF_EACH, TIERS, Config
from experiments.parts import head_search, pruning
from experiments.parts import pruning_panels as panels
from experiments.parts.pruning import JUDGE, RULES, SEARCH, TREATMENTS
from lsa_lab import results
from lsa_lab.claims import about_the_mean, about_the_ratio

__all__ = ["TIERS", "Config", "claims", "compute", "plot"]


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    deep = config.present(config.deep)
    names = deep + config.present(config.beside)
    made = []
    for name in names:
        found = measure(config, pruning.load(config, name, progress), name in deep)
        made.append(found.expand_dims(case=[name]))
    whole = xr.merge(made, join="outer", compat="no_conflicts").sel(case=names)
    return whole.assign_coords(treatment=list(TREATMENTS), rule=list(RULES))


def measure(config, case, taken_apart: bool):
    """Of one family; ``taken_apart``: over n, layer by layer, and head by head."""
    import xarray as xr

    searched = pruning.batches(config, case, SEARCH, config.n, config.search)
    scores = pruning.importances(config, case)
    best = head_search.best_choices(config, case, searched)
    masks = pruning.treatments(config, case, scores, best)
    lengths = config.lengths if taken_apart else (config.n,)
    risk = np.stack([judge(config, case, masks, n) for n in lengths], axis=-1)
    if best is None:
        risk[:, TREATMENTS.index("best later heads")] = np.nan
    made = {
        "risk": (("run", "treatment", "n"), risk),
        "importance": (("run", "layer", "head"), scores),
        "lost": ((), case.lost),
    }
    coords = {"n": list(lengths), "run": np.arange(case.runs)}
    coords["layer"] = np.arange(1, case.family.depth + 1)
    coords["head"] = np.arange(1, case.family.heads + 1)
    if taken_apart:
        made |= take_apart(config, case, searched)
        known = [pruning.known(config, case, n) for n in lengths]
        made["known"] = (("run", "rule", "n"), np.stack(known, axis=-1))
        coords["kept"] = np.arange(case.gates.sum(), 0, -1, dtype=int)
        coords["size"] = np.arange(case.family.heads + 1)
    return xr.Dataset(made, coords)


def judge(config, case, masks, n: int):  # -> [R, treatments]
    batch = pruning.batches(config, case, JUDGE, n, config.prompts)
    found = pruning.geometric(pruning.judged(config, case, batch, masks), config.draws)
    return np.concatenate([found, pruning.judged_so(config, case, batch)[:, None]], axis=1)


def take_apart(config, case, searched):
    """Greedy pruning of the network, and the best subsets of one layer, the others whole."""
    order = head_search.greedy(config, case, searched)  # [R, K, L, H]
    subsets, worth = head_search.best_subsets(config, case, searched)
    flat = subsets.reshape(case.runs, -1, *case.gates.shape)
    fresh = pruning.batches(config, case, JUDGE, config.n, config.prompts)
    found = pruning.judged(config, case, fresh, np.concatenate([order, flat], axis=1))
    ahead, later = np.split(found, [order.shape[1]], axis=1)
    return {
        "greedy": (("run", "kept"), ahead),
        "left": (("run", "kept", "layer"), order.sum(3)),
        "subset": (("run", "layer", "size"), later.reshape(subsets.shape[:3])),
        "shapley": (("run", "layer", "head"), worth),
    }


def plot(dataset):
    settings = results.settings(dataset)
    deep = [name for name in settings.deep if name in dataset.case.values]
    drawn, axes = style.figure(11.0, 6.8, (2, 3))
    for ax, case in zip(axes, (deep[0], deep[-1]), strict=False):
        panels.over_lengths(ax, dataset, case)
        ax.set_ylim(None, 60 * ax.get_ylim()[1])  # room for the legend
    axes[0].legend(ncols=2, loc="upper right")
    panels.of_all_cases(axes[2], dataset)
    for case, color in zip(deep, style.COLOURS, strict=False):
        panels.greedy(axes[3], dataset, case, color)
        panels.left(axes[4], dataset, case, color)
        panels.layers(axes[5], dataset, case, color)
    for ax in (axes[3], axes[5]):
        ax.axhline(settings.unchanged, color="grey", lw=0.8, ls="--")
        style.log_axes(ax, y=True)
        ax.set(ylabel="risk / that of the full model")
    for ax in axes[3:5]:
        ax.invert_xaxis()
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.set(xlabel="heads left in the network")
    axes[4].set(ylabel="heads left in a layer")
    axes[5].set(xlabel="heads kept in one layer, the others whole")
    for ax, title in zip(
        axes[3:],
        ("greedy pruning", "where greed leaves heads", "the best subset of one layer"),
        strict=True,
    ):
        ax.set_title(title)
        ax.legend()
    worst = [f"{panels.middle(panels.ratios(dataset, case, 'pruned')):.2g}" for case in deep]
    style.caption(
        drawn,
        f"With all heads of layer 1 and the most important one of each later layer (pruned) the "
        f"risk is {' and '.join(worst)} times that of the full model ({', '.join(deep)}; "
        f"n = {settings.n}). Dashed: {settings.unchanged:g}, what counts as unchanged. d: hollow, "
        f"as many heads chosen by that rule (squares) or trained so (triangles). Heads are chosen "
        f"on other prompts than those judged on; importance and Shapley's value name the same top "
        f"head in {panels.agreement(dataset, deep):.0%} of later layers. Heads of linear attention "
        f"as wide as a token can be mixed without changing their layer, narrow and softmax ones "
        f"cannot. Medians of seeds and the middle 80 % of them; trainings that have not finished "
        f"are left out: {int(dataset.lost.sum())}. Our setting, modelled on Chen et al. "
        f"2408.04532.",
    )
    return drawn


def at_the_end(dataset, case, settings):  # -> [R], [R]
    """Share of layer 1's heads, and mean heads of later layers, that greedy pruning leaves before
    the risk exceeds ``unchanged`` times that of the full model."""
    risk = panels.there(dataset.greedy, case).sortby("kept", ascending=False)
    left = panels.there(dataset.left, case).sel(kept=risk.kept)
    over = (risk / risk.isel(kept=0)).values > settings.unchanged
    last = np.where(over.any(1), over.argmax(1), over.shape[1]) - 1
    held = left.transpose("run", "kept", "layer").values[np.arange(len(last)), last]
    whole = left.isel(kept=0, run=0).sel(layer=1).item()
    return held[:, 0] / whole, held[:, 1:].mean(1)


def claims(dataset):
    settings = results.settings(dataset)
    deep = [name for name in settings.deep if name in dataset.case.values]
    rows = []
    for case in deep:
        for name, treatment in (
            ("pruned", "pruned"), ("best", "best later heads"), ("trained", "trained so")
        ):  # fmt: skip
            text, *rest = CLAIMS_OF_EACH[name][1:]
            source = CLAIMS_OF_EACH[name][0]
            label = f"{name}_{case.replace(' ', '_').replace(',', '')}"
            row = (source, text.format(case=case.capitalize()), *rest)
            rows.append((label, row, panels.ratios(dataset, case, treatment)))
    for name, treatment in (
        ("first_layer", "top head of layer 1"),
        ("random_heads", "random later heads"),
        ("at_random", "as many at random"),
    ):
        over = [panels.ratios(dataset, case, treatment, "pruned") for case in deep]
        rows.append((name, CLAIMS[name], min(over, key=lambda some: np.log(some).mean())))
    for name, case in (("dense", "dense"), ("narrow", "narrow keys"), ("softmax", "softmax")):
        if case in dataset.case.values:
            rows.append((name, CLAIMS[name], panels.ratios(dataset, case, "pruned")))
    ends = [at_the_end(dataset, case, settings) for case in deep]
    rows.append(("greedy_first", CLAIMS["greedy_first"], min((e[0] for e in ends), key=np.mean)))
    rows.append(("greedy_later", CLAIMS["greedy_later"], max((e[1] for e in ends), key=np.mean)))
    made = []
    for name, (source, statement, measured, bounds), samples in rows:
        if len(samples):
            ((side, bound),) = bounds.items()
            bound = getattr(settings, bound)
            criterion = f"{measured} {'<=' if side == 'at_most' else '>='} {bound:g}"
            kind = about_the_mean if name.startswith("greedy") else about_the_ratio
            row = (f"head_pruning.{name}", source, statement, criterion)
            made.append(kind(*row, samples, **{side: bound}))
    return made
