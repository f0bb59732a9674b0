"""What the statements of `bound_and_gap` are judged by."""

import numpy as np

from experiments.descent.bound_and_gap.config import PLACE
from lsa_lab import results
from lsa_lab.claims import about_the_mean


def ranks_agree(dataset):  # -> three of [G]
    """Spearman's correlation with the gap over the settings of each group: of the bound over all
    settings, of the bound at equal n, averaged over n, and of 1/√n over all settings."""
    from scipy.stats import spearmanr

    def agreement(*pair):
        flat = [a.stack(place=PLACE).transpose("group", "place").values for a in pair]
        return np.array([spearmanr(*rows).statistic for rows in zip(*flat, strict=True)])

    gap, bound = dataset.gap, dataset.bound
    parts = [agreement(bound.sel(shots=[n]), gap.sel(shots=[n])) for n in dataset.shots.values]
    count = (dataset.shots**-0.5).broadcast_like(gap)
    return agreement(bound, gap), np.mean(parts, axis=0), agreement(count, gap)


def claims(dataset):
    settings = results.config_of(dataset)
    c, b, margin = f"(c = {settings.update_noise:g})", settings.largest_loss, settings.least_margin
    least, advantage = settings.rank_correlation, settings.advantage
    everywhere, at_equal_n, by_count = ranks_agree(dataset)
    spearman = "mean over tasks of Spearman's correlation"

    def at_worst(samples):  # -> [G]
        return min(samples.stack(place=PLACE).transpose("place", "group").values, key=np.mean)

    table = (
        ("above", f"The bound lies above the gap of descent, which has no noise {c}",
         f"mean of bound - |gap| at the worst setting >= {margin:g}; a comparison, not a test",
         at_worst(dataset.bound - np.abs(dataset.gap)), margin),
        ("above_with_noise", f"The bound lies above the gap of descent with the noise assumed {c}",
         f"mean of bound - |gap| at the worst setting >= {margin:g}",
         at_worst(dataset.bound - np.abs(dataset.noisy_gap)), margin),
        ("says_something", f"The bound is below the largest loss {b:g}, which bounds every gap {c}",
         "mean of largest loss - bound at the setting where the bound is largest >= 0",
         at_worst(b - dataset.bound), 0.0),
        ("ranks", "The bound ranks depths, numbers of demonstrations and noises as the gap does",
         f"{spearman} over all settings >= {least:g}", everywhere, least),
        ("ranks_at_equal_n", "It ranks depths and noises as the gap does where n is the same",
         f"{spearman} at equal n, averaged over n, >= {least:g}", at_equal_n, least),
        ("better_than_counting", "The bound ranks settings at least as well as 1/√n alone",
         f"mean paired difference of the rank correlations >= {advantage:g}",
         everywhere - by_count, advantage),
    )  # fmt: skip
    found = []
    for name, statement, criterion, samples, bound in table:
        compares = name == "better_than_counting"
        source = "derived here" if compares else "A2 (2406.03768), Theorem 2"
        name = f"bound_and_gap.{name}"
        found.append(about_the_mean(name, source, statement, criterion, samples, at_least=bound))
    return found
