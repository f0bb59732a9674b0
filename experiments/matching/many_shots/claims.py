"""What `many_shots` judges: errors at many demonstrations, and where a fixed divisor is unsafe.

Errors are medians over prompts, then over runs: linear stacks explode on rare prompts.
"""

from functools import partial

from experiments.matching.configs import trained_length
from experiments.matching.many_shots.config import ALL, LINEAR
from lsa_lab.judging.statements import Statement, grid
from lsa_lab.store import results

A3 = "A3 (2506.04579), section 4.6"


def growth(dataset, model, scaling="by n"):  # [run]
    """The error at the most demonstrations that a model is given, over that at the length of
    training."""
    config = results.config_of(dataset)
    error = dataset.softmax.rename(few="shots")
    if model != "softmax":
        error = dataset.error.sel(noise=config.noise_std, model=model, scaling=scaling)
    return error.sel(shots=max(error.shots.values)) / error.sel(shots=trained_length(config))


def trained_bayes_ratios(dataset):  # of descent, linear and softmax
    """How far from the best at the length of training: median errors over the Bayes rule's."""
    config = results.config_of(dataset)
    n = trained_length(config)
    here = dataset.sel(noise=config.noise_std, shots=n, few=n).median("run")
    linear = here.error.sel(scaling="by n")
    errors = [*(linear.sel(model=model) for model in LINEAR), here.softmax]
    return [float(error / here.bayes) for error in errors]


def long_bayes_ratio(dataset, model):  # [run]
    """The error over the Bayes rule's."""
    config = results.config_of(dataset)
    end = dataset.sel(noise=config.noise_std, shots=max(config.shots))
    return end.error.sel(model=model, scaling="by n") / end.bayes


def classes_lost(dataset, model):  # [run]
    """The share of wrong classes at many demonstrations less that at few."""
    few, many = results.config_of(dataset).class_shots
    share = dataset.softmax_wrong.rename(few="shots")
    if model != "softmax":
        share = dataset.wrong.sel(model=model)
    return share.sel(shots=many) - share.sel(shots=few)


def statements(config) -> tuple[Statement, ...]:
    n, most, (few, many) = trained_length(config), max(config.shots), config.class_shots
    longest = max(count for count in config.shots if count <= config.softmax_most)
    error = "the error, median over prompts,"
    median = partial(
        Statement,
        statistic="median",
        revision="models are trained to the end, at d = 8; they were trained briefly",
        redrawn=f"{config.runs} fresh runs, 12 before",
    )
    return (
        median(
            "normalised",
            f"{A3}, open question",
            "Divided by n, the {model} stack gains from demonstrations beyond the trained length",
            f"{error} at {most} demonstrations, of softmax at {longest}, over that at {n}",
            at_most=1.0,
            sample=lambda d, model: growth(d, model).values,
            note="the descent is constructed, the linear and the softmax stack are trained",
            cells=grid("descent_normalised linear_normalised softmax", model=ALL),
            message="Divided by n, all three stacks gain from demonstrations beyond the trained "
            "length",
        ),
        median(
            "overshoots",
            f"derived here, on {A3}, open question",
            "Divided by the trained length, the {model} stack overshoots",
            f"{error} at {most} demonstrations over that at {n}",
            at_least=10.0,
            sample=lambda d, model: growth(d, model, "fixed").values,
            cells=grid("descent_fixed linear_fixed", model=LINEAR),
            message="Divided by the trained length, a constructed descent and our trained linear "
            "attention overshoot",
        ),
        median(
            "bayes",
            f"modelled on {A3}",
            "Divided by n, the {model} stack uses demonstrations almost as the Bayes rule does",
            f"{error} over the Bayes rule's at {most}",
            at_most=2.0,
            sample=lambda d, model: long_bayes_ratio(d, model).values,
            cells=grid("descent_bayes linear_bayes", model=LINEAR),
            message="Divided by n, a constructed descent and our trained linear attention use many "
            "demonstrations almost as the Bayes rule does",
        ),
        Statement(
            "classes",
            "{source}",
            f"From {few} to {many} demonstrations the {{model}} stack loses in classification",
            f"the share of wrong classes at {many} less that at {few}, on the same prompts",
            at_least=0.0,
            note="two classes, the sign of w·x + noise; the query has none; the models are trained "
            "on regression",
            redrawn=f"{config.runs} fresh runs of twice the prompts, 9 before",
            sample=lambda d, model: classes_lost(d, model).values,
            cells=grid("descent_classes linear_classes softmax_classes", model=ALL),
            words=lambda model: dict(
                source=f"modelled on {A3}" if model == "descent" else f"{A3}, in our setting"
            ),
            message=f"From {few} to {many} demonstrations all three stacks lose in classification",
        ),
    )
