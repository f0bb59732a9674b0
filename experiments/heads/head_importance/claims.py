"""What the statements of `head_importance` are judged by."""

import numpy as np

from experiments.heads.head_importance import numbers
from experiments.heads.head_importance.config import ABOUT_MODELS, CLAIMS, SUBJECTS
from lsa_lab import results
from lsa_lab.claims import about_the_mean


def claims(dataset):
    settings = results.config_of(dataset)
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
