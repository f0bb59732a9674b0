"""Do all heads of the first layer matter, and one head of each later layer?"""

import numpy as np

from experiments import style
from experiments.configs.head_importance import ABOUT_MODELS, CLAIMS, SUBJECTS, TIERS, Config
from experiments.parts import importance_grid as grid
from experiments.parts import importance_numbers as numbers
from experiments.parts import importance_panels as panels
from experiments.parts.head_patterns import OTHERS
from experiments.parts.sparse_training import trained
from lsa_lab import results
from lsa_lab.claims import about_the_mean

__all__ = ["TIERS", "Config", "claims", "compute", "plot"]


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    made = {
        name: trained(config.families, name, config.retrain, progress) for name in config.models
    }
    families = [one.family for one in made.values()]
    sizes = {
        "run": max(family.seeds for family in families),
        "layer": max(family.depth for family in families),
        "head": max(family.heads for family in families),
        "look": max(family.looks for family in families),
        "state": len(grid.STATES),
        "representative": 1 + len(OTHERS),
    }
    variables, coordinates = grid.measured(config, made)
    filled = {
        name: (dims, grid.padded(blocks, dims, sizes)) for name, (dims, blocks) in variables.items()
    }
    for name, (dims, rise) in list(filled.items()):
        if "rise" in name:
            filled[name.replace("rise", "effective")] = (dims[:-1], grid.effective(rise))
    return xr.Dataset(filled, coordinates)


def plot(dataset):
    settings = results.settings(dataset)
    drawn = panels.draw(dataset)
    lost = int(sum(numbers.lost(dataset.isel(model=i)) for i in range(dataset.sizes["model"])))
    style.caption(
        drawn,
        f"{message(dataset, settings)} "
        f"a-h: shares of a layer's importance (rise of the risk without the head), its heads "
        f"sorted, mean over seeds; then N_l = exp(entropy) and the sum of the rises (grey: below "
        f"{settings.dead:g} of the first layer's). i: filled N_1, hollow the mean of later N_l. "
        f"j: mean ablation is zero ablation, for x and -x are as likely. k: other weights of the "
        f"same functions; filled as trained. l: hollow random weights of the same size. m, n: "
        f"hollow as grey; crosses: rises of the median prompt's error, which does not see prompts "
        f"that explode; dashed and shaded: the criteria. Points: mean and 95 % interval over "
        f"seeds; {lost} diverged runs left out. n = {settings.n}, {settings.prompts} prompts.",
    )
    return drawn


def message(dataset, settings) -> str:
    models = [numbers.one_model(dataset, name, "full") for name, form in SUBJECTS if form == "full"]
    able = [m for m in models if m is not None and float(m.risk.mean() / m.ridge) < 1]
    if not able:
        return "None of the models with h heads in every layer beats ridge."
    found = [about(model, settings, "full") for model in able]
    first, typical, later = (
        [one[name].mean() for one in found] for name in ("first", "first_of_median", "later")
    )
    return (
        f"Models with h heads in every layer that beat ridge (sparse tasks) use {min(first):.2f} "
        f"h to {max(first):.2f} h effective heads in the first layer ({min(typical):.2f} h to "
        f"{max(typical):.2f} h for the median prompt), and {min(later):.1f} to {max(later):.1f} in "
        f"the later layer that has most."
    )


def claims(dataset):
    settings = results.settings(dataset)
    made = []
    for subject in SUBJECTS:
        model = numbers.one_model(dataset, *subject)
        if model is None or not len(numbers.counts(model)):
            continue
        for name, samples in about(model, settings, subject[1]).items():
            key = f"{name}.{'_'.join(subject).replace(' ', '_')}"
            which = str(model.model.values)
            if name == "later_that_matter" and not numbers.matters(model, settings)[1:].any():
                continue  # a claim about layers of which there are none says nothing
            made.append(_claim(settings, key, ABOUT_MODELS[name], samples, which))
    for name, (samples, which) in others(dataset).items():
        made.append(_claim(settings, name, CLAIMS[name], samples, which))
    return made


def about(model, settings, form):
    """Samples of the claims about one model."""
    count, alive = numbers.counts(model), numbers.matters(model, settings)
    h, typical = float(model.heads.values[0]), numbers.counts(model, "effective_of_median")
    found = {"first": count[:, 0] / h, "first_of_median": typical[:, 0] / h}
    if form == "full":
        found["later"] = _largest(count[:, 1:])
        found["later_that_matter"] = _largest(count[:, 1:] * alive[1:])
    return found


def _largest(count):  # [R, L] -> [R]
    return count[:, count.mean(0).argmax()]


def others(dataset):
    """Samples of the other claims, and which model they are about; those that can be judged."""
    judged = [model for s in SUBJECTS if (model := numbers.one_model(dataset, *s)) is not None]
    ratios = {str(m.model.values): _finite(m.risk.values) / float(m.ridge) for m in judged}
    worst = max(ratios, key=lambda name: ratios[name].mean())
    found = {"found": (ratios[worst], worst)}
    sparse, dense = (numbers.one_model(dataset, name, "full") for name in ("depth 3", "dense"))
    if dense is not None:
        some = zip(numbers.counts(dense)[:, 0], numbers.counts(sparse)[:, 0], strict=False)
        found["dense"] = (np.array([few - many for few, many in some]), "dense")
    way = dataset.isel(way=-1)
    looks = way.effective_on_the_way.transpose("run", "look", "layer").values[..., 0]
    looks = _finite(looks[:, np.isfinite(looks).any(0)])
    found["settled"] = (np.abs(looks[:, -1] - looks[:, -2]), str(way.way.values))
    agree = numbers.agreement(dataset.sel(ablation=["zero", "mean", "resample"]))[1:]
    found["ablations"] = (agree[agree.mean(1).argmin()], "depth 3")
    first = dataset.effective_represented.sel(representative="orthogonal").isel(layer=0)
    shares = {
        str(name): _finite(first.sel(again=name).values)
        / float(numbers.one_model(dataset, str(name), "full").heads.values[0])
        for name in dataset.again.values
    }
    found["representative"] = _least(shares)
    for name, values in (("construction", dataset.built), ("seeds", dataset.across.isel(layer=0))):
        more = values.sel(state="trained") - values.sel(state="random")
        found[name] = _least({str(p): _finite(more.sel(pair=p).values) for p in more.pair.values})
    return found


def _least(samples):
    """The model with the smallest mean."""
    name = min(samples, key=lambda name: samples[name].mean())
    return samples[name], name


def _finite(values):  # [R, ...] -> the runs that are finite
    return values[np.isfinite(values).all(tuple(range(1, values.ndim)))]


def _claim(settings, key, texts, samples, model):
    source, statement, measured, bounds = texts
    limits = {side: getattr(settings, bound) for side, bound in bounds.items()}
    ((side, limit),) = limits.items()
    return about_the_mean(
        f"head_importance.{key}",
        source,
        statement.format(model=model),
        f"{measured} {'<=' if side == 'at_most' else '>='} {limit:g}; {len(samples)} seeds",
        samples,
        **limits,
    )
