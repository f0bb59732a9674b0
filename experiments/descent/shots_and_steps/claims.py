"""Errors of trained models beside fewer shots, the Bayes rule and none, for each run."""

import numpy as np

from experiments.descent.shots_and_steps.config import MODELS
from lsa_lab import results


def samples(dataset) -> dict[str, np.ndarray]:  # {id: [R]}
    d, n = (getattr(results.config_of(dataset), name) for name in "dn")
    first = -(-(dataset.sizes["look"] - 1) // 10)  # the checkpoint after a tenth of the training
    by_model = {}
    for name in MODELS:
        error = dataset.error.sel(model=name).transpose("run", "noise", "shots")
        up_to_n = error.sel(shots=error.shots <= n).values
        learning = dataset.learning.sel(model=name).transpose("run", "noise", "look").values
        by_model |= {
            f"{name}_shots": (up_to_n[..., 1:] / up_to_n[..., :-1]).max((1, 2)),
            f"{name}_fewest": (up_to_n[..., -1] / up_to_n[..., 0]).max(1),
            f"{name}_steps": (learning[..., -1] / learning[..., first]).max(1),
            f"{name}_steps_everywhere": later_over_earlier(dataset, name, n),
            f"{name}_bayes": over_bayes(dataset, name).values,
            f"{name}_zero_d": left_over(dataset, name, d).values,
            f"{name}_zero_2d": left_over(dataset, name, 2 * d).values,
        }
    return by_model


def later_over_earlier(dataset, model, n) -> np.ndarray:  # [R]
    """The error after training over that after a tenth of it, at the number of shots up to n, and
    with noise or without, where it is largest."""
    errors = dataset.sel(model=model, shots=dataset.shots <= n)
    return (errors.error / errors.early).max(("noise", "shots")).values


def over_bayes(dataset, model):  # [R]
    """The error with noise at the trained length over that of the Bayes rule."""
    with_noise = dataset.isel(noise=1).sel(shots=results.config_of(dataset).n)
    return with_noise.error.sel(model=model) / with_noise.known.sel(rule="Bayes rule")


def left_over(dataset, model, shots):  # [R]
    """The error without noise, as a share of d, the error without shots."""
    error = dataset.error.isel(noise=0).sel(model=model, shots=shots)
    return error / results.config_of(dataset).d
