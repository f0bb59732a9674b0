"""What the statements of `head_pruning` are judged by."""

import numpy as np

from experiments.heads.head_pruning import panels
from experiments.heads.head_pruning.config import CLAIMS, CLAIMS_OF_EACH
from lsa_lab import results
from lsa_lab.claims import about_the_mean, about_the_ratio


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
    settings = results.config_of(dataset)
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
