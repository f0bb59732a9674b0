"""What `shots_and_steps` judges: errors of trained models beside fewer shots, the Bayes rule and
none, for each run."""

import numpy as np

from experiments.descent.shots_and_steps.config import MODELS
from lsa_lab.judging.statements import Statement, grid
from lsa_lab.store import results

CHANGED, ADDED = "it was the mean", "added"


def trained_lengths(dataset, model) -> np.ndarray:  # [R, noise, shots]
    """The errors at the numbers of shots up to that of training."""
    error = dataset.error.sel(model=model).transpose("run", "noise", "shots")
    return error.sel(shots=error.shots <= results.config_of(dataset).n).values


def worst_further_shot(dataset, model) -> np.ndarray:  # [R]
    error = trained_lengths(dataset, model)
    return (error[..., 1:] / error[..., :-1]).max((1, 2))


def most_over_fewest(dataset, model) -> np.ndarray:  # [R]
    error = trained_lengths(dataset, model)
    return (error[..., -1] / error[..., 0]).max(1)


def end_over_tenth(dataset, model) -> np.ndarray:  # [R]
    """The error at n shots after training over that after a tenth of it."""
    first = -(-(dataset.sizes["look"] - 1) // 10)  # the checkpoint after a tenth of the training
    learning = dataset.learning.sel(model=model).transpose("run", "noise", "look").values
    return (learning[..., -1] / learning[..., first]).max(1)


def end_over_tenth_everywhere(dataset, model) -> np.ndarray:  # [R]
    """The same at the number of shots up to n, and with noise or without, where it is largest."""
    errors = dataset.sel(model=model, shots=dataset.shots <= results.config_of(dataset).n)
    return (errors.error / errors.early).max(("noise", "shots")).values


def ratio_to_bayes(dataset, model):  # [R]
    """The error with noise at the trained length over that of the Bayes rule."""
    with_noise = dataset.isel(noise=1).sel(shots=results.config_of(dataset).n)
    return with_noise.error.sel(model=model) / with_noise.known.sel(rule="Bayes rule")


def share_left(dataset, model, shots_over_d):  # [R]
    """The error without noise, as a share of d, the error without shots."""
    d = results.config_of(dataset).d
    return dataset.error.isel(noise=0).sel(model=model, shots=shots_over_d * d) / d


def statements(config) -> tuple[Statement, ...]:
    # At lengths it was not trained at the mean over prompts is that of the rare prompt at which a
    # polynomial of degree 3^L explodes; at few shots a single prompt decides the mean over runs.
    rare = f"mean over prompts; polynomials of degree {3**config.depth} explode on a few of them"
    next_to_nothing = "at two shots there is next to nothing to learn"
    share = "the excess risk without noise, as a share of that without shots,"
    ratio = "the ratio of the two, the larger of those with noise and without,"

    def limits(**notes):
        return lambda model: dict(limit=notes.get(model, ""))

    def row(id, rest, **more):
        return Statement(
            id,
            "Garg et al. 2208.01066; A2 (2406.03768), figure 5, in our setting",
            f"The error of our trained {{model}} attention {rest}",
            statistic="median",
            redrawn=f"{config.runs} fresh runs, 8 before",
            message=f"The error of our trained attention, linear or softmax, {rest}",
            **more,
        )

    zero, growth = dict(at_most=0.01, revision=CHANGED), dict(at_most=1.0, note="{limit}")
    return (
        row(
            "zero_2d",
            "is zero at 2d shots",
            measured=share,
            sample=lambda d, model: share_left(d, model, 2).values,
            cells=grid("linear_zero_2d softmax_zero_2d", model=MODELS),
            **zero,
        ),
        row(
            "zero_d",
            "is zero at d shots",
            measured=share,
            note="{limit}",
            sample=lambda d, model: share_left(d, model, 1).values,
            cells=grid("linear_zero_d softmax_zero_d", model=MODELS),
            words=limits(linear=rare),
            **zero,
        ),
        row(
            "bayes",
            "comes close to that of the Bayes rule at the trained length",
            measured=f"the ratio of excess risks with noise {config.noise_std}",
            at_most=1.5,
            revision=CHANGED,
            sample=lambda d, model: ratio_to_bayes(d, model).values,
            cells=grid("linear_bayes softmax_bayes", model=MODELS),
        ),
        row(
            "shots",
            f"falls with every further shot up to the {config.n} of training",
            measured="the largest ratio of neighbours, with noise and without,",
            revision=CHANGED,
            sample=worst_further_shot,
            cells=grid("linear_shots softmax_shots", model=MODELS),
            words=limits(linear=rare),
            **growth,
        ),
        row(
            "fewest",
            f"is smaller at the {config.n} shots of training than at {min(config.shots)}",
            measured=ratio,
            revision=ADDED,
            sample=most_over_fewest,
            cells=grid("linear_fewest softmax_fewest", model=MODELS),
            words=limits(linear=rare),
            **growth,
        ),
        row(
            "steps",
            f"at {config.n} shots is smaller at the end of training than after a tenth of it",
            measured=ratio,
            at_most=1.0,
            revision=ADDED,
            sample=end_over_tenth,
            cells=grid("linear_steps softmax_steps", model=MODELS),
        ),
        row(
            "steps_everywhere",
            f"falls with training at every number of shots up to {config.n}, as in figure 5(b)",
            measured="the error at the end over that after a tenth of training, the largest over "
            "numbers of shots, with noise and without,",
            revision=ADDED,
            sample=end_over_tenth_everywhere,
            cells=grid("linear_steps_everywhere softmax_steps_everywhere", model=MODELS),
            words=limits(linear=rare, softmax=next_to_nothing),
            **growth,
        ),
    )
