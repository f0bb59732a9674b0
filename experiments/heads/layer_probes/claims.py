"""What the statements of `layer_probes` are judged by."""

import numpy as np

from experiments.heads.layer_probes import panels
from experiments.heads.layer_probes.config import CLAIMS
from experiments.heads.layer_probes.first_layer_descent import FEATURES
from lsa_lab import results
from lsa_lab.claims import about_the_mean, about_the_ratio


def best(dataset, case: str):  # [run, feature]
    """Risk at the step that is best on the first half of the prompts, on the second half."""
    found = panels.there(dataset.descent, case)
    step = found.isel(half=0).argmin("step")
    return found.isel(half=1).isel(step=step)


def last(dataset, case: str, name: str = "reader"):  # [model, run]
    return panels.there(dataset[name], case).isel(layer=-1)


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
    settings = results.config_of(dataset)
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
