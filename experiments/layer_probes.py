"""In which layer is the answer readable, and are layer 1's tokens preprocessed covariates?"""

import numpy as np

from experiments import style
from experiments.configs.layer_probes import CLAIMS, TIERS, Config
from experiments.parts import probe_panels as panels
from experiments.parts import probing, sparse_models
from experiments.parts.first_layer_descent import FEATURES, descents
from experiments.parts.probing import RULES
from lsa_lab import results
from lsa_lab.claims import about_the_mean, about_the_ratio

__all__ = ["TIERS", "Config", "claims", "compute", "plot"]


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    looked = config.present(config.dissected)
    names = list(dict.fromkeys([*config.present(config.panels), *looked]))
    made = []
    for name in names:
        found = measure(config, probing.load(config, name, progress), name in looked)
        made.append(found.expand_dims(case=[name]))
    whole = xr.merge(made, join="outer", compat="no_conflicts").sel(case=names)
    models = list(dict.fromkeys(model for one in made for model in one.model.values))
    labels = {"rule": list(RULES), "feature": list(FEATURES)}
    return whole.sel(model=models).assign_coords(labels)


def measure(config, case, looked_at: bool):
    """Of one family; ``looked_at``: descent on its first layer too."""
    import xarray as xr

    found = probing.readers(config, case)
    axes = ("model", "run", "layer")
    names = ("reader", "own", "held", "control")
    made = {name: (axes, found[:, :, i]) for i, name in enumerate(names)}
    heads = [int(model.masks[0, 0].sum()) for model in case.models.values()]
    d = sparse_models.width(case.family) - case.family.scratch - 1
    made["share"] = ("model", np.minimum(np.array(heads) / d, 1.0))
    made["known"] = ("rule", probing.known(config, case))
    made["noise"] = ((), case.family.noise_std)
    made["lost"] = ((), case.lost)
    if looked_at:
        made["descent"] = (("run", "feature", "half", "step"), descents(config, case))
    coords = {"layer": np.arange(case.family.depth + 1), "run": np.arange(case.runs)}
    return xr.Dataset(made, {**coords, "model": list(case.models)})


def best(dataset, case: str):  # [run, feature]
    """Risk at the step that is best on the first half of the prompts, on the second half."""
    found = panels.there(dataset.descent, case)
    step = found.isel(half=0).argmin("step")
    return found.isel(half=1).isel(step=step)


def last(dataset, case: str, name: str = "reader"):  # [model, run]
    return panels.there(dataset[name], case).isel(layer=-1)


def plot(dataset):
    settings = results.settings(dataset)
    names = list(dataset.case.values)
    shown = [name for name in settings.panels if name in names][:4]
    looked = [name for name in settings.dissected if name in names]
    drawn, axes = style.figure(12.0, 6.6, (2, 4))
    for ax, case in zip(axes, shown, strict=False):
        panels.readers(ax, dataset, case)
    ends = np.array([ax.get_ylim() for ax, _ in zip(axes, shown, strict=False)])
    for ax in axes[: len(shown)]:
        ax.set_ylim(ends[:, 0].min(), ends[:, 1].max())
    for ax, case in zip(axes[4:6], (looked[0], looked[-1]), strict=True):
        panels.descent(ax, dataset, case)
    panels.first_layers(axes[6], dataset, looked)
    panels.held(axes[7], dataset, looked[0])
    axes[0].legend(loc="upper right")
    handles, labels = axes[4].get_legend_handles_labels()
    for ax, part in zip(axes[4:6], (slice(4), slice(4, None)), strict=True):  # one for both
        ax.legend(handles[part], labels[part], loc="upper right")
    pruned = [last(dataset, case) for case in shown]
    ratio = [np.log(r.sel(model="pruned") / r.sel(model="full")).mean() for r in pruned]
    style.caption(
        drawn,
        f"a to d: excess risk of the best linear reader of the query's token after each layer "
        f"(filled) and of the model's own read-out (hollow), n = {settings.n}. After the last "
        f"layer of the pruned model the reader's risk is {np.exp(min(ratio)):.2g} to "
        f"{np.exp(max(ratio)):.2g} times that of the full one. e, f: descent inside each prompt on "
        f"features without the label slot, each token asked as a query (own labels: tokens as they "
        f"stand). g: by the heads of each layer; dashes: one of the d coordinates for each head of "
        f"layer 1; crosses: r_j x_j of other prompts; random: untrained weights. Medians of seeds "
        f"and the middle 80 % of them; trainings that have not finished are left out: "
        f"{int(dataset.lost.sum())}. Our setting, modelled on Chen et al. 2408.04532.",
    )
    return drawn


def samples(dataset, settings) -> dict:  # claim -> [cases, R]
    """What each claim is about, for every family that it is about."""
    read = [name for name in settings.panels if name in dataset.case.values]
    looked = [name for name in settings.dissected if name in dataset.case.values]
    made = {name: [] for name in CLAIMS}
    for case in read:
        full = panels.there(dataset.reader.sel(model="full"), case).transpose("layer", "run").values
        ridge = float(dataset.known.sel(case=case, rule="ridge"))
        made["steady"] += list(full[1:] / full[:-1])
        made["not_yet"].append(full[1] / ridge)
        made["at_last"].append(full[-1] / ridge)
        others = last(dataset, case)
        made["pruned"].append(others.sel(model="pruned").values / full[-1])
        made["single"].append(others.sel(model="single head").values / full[-1])
    for case in looked:
        risk = {str(f): best(dataset, case).sel(feature=f).values for f in FEATURES}
        full, single, raw, formula, shuffled, _ = risk.values()
        made["descent_raw"].append(full / raw)
        made["descent_single"].append(full / single)
        made["descent_formula"].append(full / formula)
        made["descent_control"].append(shuffled / raw)
        held, control = (
            panels.there(found.sel(layer=1), case).transpose("model", "run")
            for found in (dataset.held, dataset.control)
        )
        made["held"].append(held.sel(model="full").values)
        made["held_by_more"].append((held.sel(model="full") - held.sel(model="single head")).values)
        made["control"] += [one for one in control.values if np.isfinite(one).all()]
    return made


def claims(dataset):
    settings = results.settings(dataset)
    made = []
    for name, every in samples(dataset, settings).items():
        source, statement, measured, ((side, bound),) = *CLAIMS[name][:3], CLAIMS[name][3].items()
        bound = getattr(settings, bound)
        of_shares = name in ("held", "held_by_more", "control")
        middle = np.mean if of_shares else lambda ratios: np.log(ratios).mean()
        worst = (max if side == "at_most" else min)(every, key=middle)
        criterion = f"{measured} {'<=' if side == 'at_most' else '>='} {bound:g}"
        kind = about_the_mean if of_shares else about_the_ratio
        row = (f"layer_probes.{name}", source, statement, criterion)
        made.append(kind(*row, worst, **{side: bound}))
    return made
