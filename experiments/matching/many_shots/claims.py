"""What the statements of `many_shots` are judged by."""

import numpy as np

from experiments.matching.many_shots.config import CLAIMS, LINEAR, SCALINGS
from lsa_lab import results
from lsa_lab.claims import about_the_median


def _crossing(shots, values, level):
    """The first number of demonstrations at which values [R, shots] reach a level, between grid
    points by a power law; the last number where they never do."""
    found = []
    for row in np.asarray(values, float):
        above = np.flatnonzero(row >= level)
        if len(above) == 0 or above[0] == 0:
            found.append(shots[-1] if len(above) == 0 else shots[0])
            continue
        j = above[0]
        share = np.log(level / row[j - 1]) / np.log(row[j] / row[j - 1])
        found.append(shots[j - 1] * (shots[j] / shots[j - 1]) ** share)
    return np.array(found)


def predicted(dataset):  # [R]
    """The number of demonstrations from which η λ_max(XᵀX), divided by n of training, exceeds 2."""
    return _crossing(dataset.shots.values, dataset.largest.transpose("run", "shots"), 2.0)


def claims(dataset):
    settings = results.config_of(dataset)
    n, most, noisy = settings.n, max(settings.shots), dataset.sel(noise=settings.noise_std)
    error = noisy.error.transpose("run", "model", "scaling", "shots")
    growth = (error.sel(shots=most) / error.sel(shots=n)).transpose("run", "model", "scaling")
    longest = max(dataset.few.values)
    samples = {"softmax": (noisy.softmax.sel(few=longest) / noisy.softmax.sel(few=n)).values}
    for model in LINEAR:
        by_n, fixed = (growth.sel(model=model, scaling=s).values for s in SCALINGS)
        best = error.sel(model=model, scaling="by n", shots=most)
        samples[f"{model}_normalised"], samples[f"{model}_fixed"] = by_n, fixed
        samples[f"{model}_bayes"] = best / noisy.bayes.sel(shots=most)
    clean = dataset.error.sel(noise=0.0, model="descent", scaling="fixed")
    unsafe = clean.transpose("run", "shots")
    harm = _crossing(dataset.shots.values, unsafe, no_shots(settings))
    samples["threshold"] = harm / predicted(dataset)
    known = vars(settings) | {"most": most, "longest": longest}
    known["1/threshold_factor"] = 1 / settings.threshold_factor
    made = []
    for name, (source, statement, criterion, bounds) in CLAIMS.items():
        limits = {side: known[bound] for side, bound in bounds.items()}
        said = (source, statement, criterion.format(**known), samples[name])
        made.append(about_the_median(f"many_shots.{name}", *said, **limits))
    return made


def no_shots(settings):
    """The median squared error of predicting 0: (w·x)² is a product of χ² variables."""
    rng = np.random.default_rng(0)
    w, x = rng.standard_normal((2, 100_000, settings.d))
    return float(np.median((w * x).sum(1) ** 2))
