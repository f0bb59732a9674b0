"""What `demonstration_order` judges: what sorting changes, by fixed rules and by the best one.

Medians over runs, for linear stacks explode on rare prompts.
"""

import numpy as np

from lsa_lab.judging.statements import Statement, grid

HELPS = 0.02  # a rule helps if it lowers the error by this share at least
MODELS = ("descent", "trained linear", "trained softmax")
ALL = "a constructed descent and trained attention, linear and softmax"


def ruled(dataset, model, rule):  # [R]
    """The change by a rule, if there is such a stack."""
    if model in dataset.model:
        return dataset.change.sel(model=model, rule=rule).values
    return None


def best(dataset, model):  # [R]
    """The change that a rule brings on one half of the prompts, chosen on the other: both ways."""
    if model not in dataset.model:
        return None
    half = dataset.half.sel(model=model).transpose("run", "half", "rule").values
    runs = np.arange(len(half))
    ways = [half[runs, 1 - i, half[:, i].argmin(-1)] for i in (0, 1)]
    return np.mean(ways, axis=0)


def statements(config) -> tuple[Statement, ...]:
    fresh = "24 fresh runs, 12 before, with four times the prompts"
    if config.shared:
        fresh = f"{config.runs} fresh runs, 24 and 12 before, on a model trained briefly"
    question = "A3 (2506.04579), limitations, open question"
    change = (
        "the change of the error against random orders, without the "
        f"{100 * config.left_out:g} % of prompts with the largest errors in any order"
    )
    bound = f"bound {HELPS:g}, what helps; it was 0"

    def whom(model):
        briefly = "" if model == "trained softmax" and config.shared else "briefly "
        words = "a constructed descent" if model == "descent" else f"our {briefly}{model} attention"
        return dict(whom=words)

    row = dict(at_most=-HELPS, redrawn=fresh, words=whom)
    return (
        Statement(
            "large_steps_first",
            question,
            "Demonstrations with large gradient steps first help {whom}",
            change,
            "median",
            revision=f"added; {bound}",
            label="large steps, {model}",
            sample=lambda dataset, model: ruled(dataset, model, "large to small step"),
            cells=grid(
                "descent_large_steps_first trained_linear_large_steps_first "
                "trained_softmax_large_steps_first",
                model=MODELS,
            ),
            message=f"Demonstrations with large gradient steps first help {ALL}",
            **row,
        ),
        Statement(
            "best",
            question,
            "A rule of ordering that is chosen on other prompts helps {whom}",
            f"{change}, by that rule",
            "median",
            label="chosen rule, {model}",
            sample=best,
            cells=grid("descent_best trained_linear_best trained_softmax_best", model=MODELS),
            message=f"A rule of ordering that is chosen on other prompts helps {ALL}",
            **row,
        ),
        Statement(
            "easy_to_hard",
            question,
            "Easy demonstrations first and hard ones last help {whom}",
            change,
            "median",
            revision=bound,
            label="easy first, {model}",
            sample=lambda dataset, model: ruled(dataset, model, "easy to hard"),
            cells=grid(
                "descent_easy_to_hard trained_linear_easy_to_hard trained_softmax_easy_to_hard",
                model=MODELS,
            ),
            message=f"Easy demonstrations first and hard ones last help {ALL}",
            **row,
        ),
    )
