"""What the statements of `shots_and_steps` are judged by."""

import numpy as np

from experiments.models.stacks import MODELS
from lsa_lab import results
from lsa_lab.claims import Claim, verdict_of
from lsa_lab.statistics import median_interval


def claims(dataset):
    """Medians over runs: of linear attention at few shots a single prompt decides the mean."""
    settings = results.config_of(dataset)
    d, n = settings.d, settings.n
    bayes = dataset.known.isel(noise=1).sel(rule="Bayes rule", shots=n).values
    made = []
    for name in MODELS:
        error = dataset.error.sel(model=name).transpose("run", "noise", "shots")
        up_to_n = error.sel(shots=[count for count in settings.shots if count <= n]).values
        exact, noisy = error.isel(noise=0) / d, error.isel(noise=1)
        share = "the excess risk without noise, as a share of that without shots,"
        rows = {
            "shots": (
                "falls with every further shot up to the trained length",
                "the largest ratio of neighbours, with noise and without,",
                (up_to_n[..., 1:] / up_to_n[..., :-1]).max((1, 2)),
                settings.growth,
            ),
            "bayes": (
                "comes close to that of the Bayes rule at the trained length",
                f"the ratio of excess risks with noise {settings.noise_std}",
                noisy.sel(shots=n).values / bayes,
                settings.bayes_factor,
            ),
            "zero_d": ("is zero at d shots", share, exact.sel(shots=d).values, settings.zero),
            "zero_2d": ("is zero at 2d shots", share, exact.sel(shots=2 * d).values, settings.zero),
        }
        for which, (statement, measured, samples, bound) in rows.items():
            interval = median_interval(samples)
            made.append(
                Claim(
                    f"shots_and_steps.{name}_{which}",
                    "Garg et al. 2208.01066; A2 (2406.03768), figure 5",
                    f"The error of trained {name} attention {statement}",
                    f"median over runs of {measured} <= {bound} "
                    "(statistic changed after a first run: it was the mean)",
                    float(np.median(samples)),
                    interval,
                    verdict_of(interval, at_most=bound),
                )
            )
    return made
