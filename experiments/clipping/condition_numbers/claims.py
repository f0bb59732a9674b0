"""What the statements of `condition_numbers` are judged by."""

import numpy as np

from experiments.clipping.layer_ends import shallow_and_deep
from lsa_lab import results
from lsa_lab.claims import about_the_mean


def trend(logs, settings):  # (run, layer, ...) -> (run, ...)
    """Deep less shallow."""
    shallow, deep = shallow_and_deep(logs, settings.ends)
    return deep - shallow


def rank_correlation(left, right):  # (run, layer, module) twice -> [R]
    """Spearman's over the layers of a run, averaged over modules; there are no ties."""

    def places(values):
        order = values.transpose("run", "module", "layer").values
        return order.argsort(-1).argsort(-1) - (order.shape[-1] - 1) / 2

    a, b = places(left), places(right)
    return ((a * b).sum(-1) / (a**2).sum(-1)).mean(-1)


def claims(dataset):
    settings = results.config_of(dataset)
    final, first = dataset.isel(steps=-1), dataset.isel(steps=0)
    after, before = (np.log10(when.condition) for when in (final, first))
    mean = "mean over runs, modules and layers of log10 of the condition number,"
    ends = f"the last {settings.ends} layers less the first {settings.ends},"
    spearman = "mean over runs and modules of Spearman's correlation over layers of the"
    clipping_ratio = f"with the risk after clipping {settings.rate:g} over that before,"
    deeper, by_chance = (trend(some, settings).mean("module") for some in (after, before))
    last = after.isel(layer=-1) - after.isel(layer=slice(-1)).mean("layer")
    shrunk = np.log10(final.stable_rank / first.stable_rank).mean(("layer", "module"))
    seen, derived = "A2 (2406.03768), figure 3", "derived here"
    rows = (
        ("deep_is_larger", seen, "Deep layers have larger condition numbers than shallow ones",
         f"{mean} {ends} >= 0", deeper, {"at_least": 0.0}),
        ("last_is_largest", seen, "The last layer has a larger condition number than the others",
         f"{mean} the last layer less the mean of the others, >= 0", last.mean("module"),
         {"at_least": 0.0}),
        ("random_is_level", derived, "Random weights are as well conditioned deep as shallow",
         f"{mean} {ends} before training, within ± {settings.same:g}", by_chance,
         {"at_least": -settings.same, "at_most": settings.same}),
        ("training_tilts", derived, "It is training that makes deep layers worse conditioned",
         f"{mean} {ends} after training less before, >= 0", deeper - by_chance, {"at_least": 0.0}),
        ("training_raises", derived, "Training raises condition numbers",
         f"{mean} after training less before, >= 0", (after - before).mean(("layer", "module")),
         {"at_least": 0.0}),
        ("stable_rank_falls", derived, "Training lowers stable ranks",
         "mean over runs, modules and layers of log10 of the stable rank, after training less "
         "before, <= 0", shrunk, {"at_most": 0.0}),
        ("condition_tells", "A2 (2406.03768), section 3.4", "Of the layers that with the larger "
         "condition number bears clipping better", f"{spearman} condition number {clipping_ratio} "
         "<= 0", rank_correlation(after, final.ratio), {"at_most": 0.0}),
        ("stable_rank_tells", derived, "Of the layers that with the smaller stable rank bears "
         "clipping better", f"{spearman} stable rank {clipping_ratio} >= 0",
         rank_correlation(final.stable_rank, final.ratio), {"at_least": 0.0}),
    )  # fmt: skip
    return [
        about_the_mean(f"condition_numbers.{name}", source, statement, criterion, samples, **bound)
        for name, source, statement, criterion, samples, bound in rows
    ]
