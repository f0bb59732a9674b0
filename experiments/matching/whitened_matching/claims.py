"""Gaps and errors after whitened matching over those after its rivals, as statements ask."""

import numpy as np

from experiments.matching.learners import tag
from experiments.matching.whitened_matching.config import directions, served
from experiments.matching.whitened_matching.statements import CASES, MATCHING, RIVALS
from lsa_lab import results
from lsa_lab.statistics import spearman, worst_elsewhere

WHITE, PLAIN, SCALED = MATCHING


def over(values, rival):
    """Gaps or errors of whitened matching over those of a rival."""
    axis = "rule" if "rule" in values.dims else "few_rule"
    return values.sel({axis: WHITE}) / values.sel({axis: rival})


def samples(dataset) -> dict[str, np.ndarray]:  # {id: [R]}
    config = results.config_of(dataset)
    dataset = dataset.transpose("run", ...)
    depth, deepest = config.depth, max(config.depths)
    used = dataset.used_gap.sel(depth=depth)
    knee = used.sel(used=config.d + 1) / used.sel(used=config.d)
    few = dataset.n_gap.sel(n=[n for n in config.sizes if n <= directions(config.d)], depth=depth)

    def at_worst(rival, depth, dims):
        return worst_elsewhere(over(dataset.d_gap.sel(d=dims, depth=depth), rival).values)

    def on_average(rival, depth):
        ratio = over(dataset.d_gap.sel(d=served(config), depth=depth), rival)
        return np.exp(np.log(ratio).mean("d")).values

    cases = over(dataset.case_error.sel(depth=deepest), PLAIN)
    return {
        "knee_whitened": knee.sel(matched=WHITE).values,
        "knee_plain": knee.sel(matched=PLAIN).values,
        "nearer": at_worst(PLAIN, depth, served(config)),
        "nearer_on_average": on_average(PLAIN, depth),
        "nearer_deep": at_worst(PLAIN, deepest, served(config)),
        "nearer_shallow": at_worst(PLAIN, min(config.depths), served(config)),
        "beyond": over(dataset.d_gap.sel(d=max(config.dims), depth=depth), PLAIN).values,
        "few": worst_elsewhere(over(few, PLAIN).values),
        "scaled": at_worst(SCALED, depth, served(config)),
        "scaled_deep": on_average(SCALED, deepest),
        **{f"over_{tag(rival)}": at_worst(rival, depth, list(config.dims)) for rival in RIVALS},
        **{f"case_{tag(case)}": cases.sel(case=case).values for case in CASES},
        "bound": (dataset.bound / dataset.distance).sel(depth=deepest).values,
        "ranks": ranks(dataset, depth),
    }


def ranks(dataset, depth):  # -> [R]
    """Spearman's correlation of whitened objectives and gaps, less that of plain ones."""
    gaps = dataset.random_gap.sel(depth=depth).values
    white, plain = (dataset.objective.sel(matched=rule).values for rule in MATCHING[:2])
    rows = zip(white, plain, gaps, strict=True)
    return np.array([spearman(w, gap) - spearman(p, gap) for w, p, gap in rows])
