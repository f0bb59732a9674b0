"""What the statements of `demonstration_order` are judged by."""

import numpy as np

from lsa_lab import results
from lsa_lab.claims import about_the_mean, about_the_median


def chosen(half):  # [R, 2, 6] -> [R]
    """The change that a rule brings on one half of the prompts, chosen on the other: both ways."""
    half, runs = half.values, np.arange(half.sizes["run"])
    ways = [half[runs, 1 - i, half[:, i].argmin(-1)] for i in (0, 1)]
    return np.mean(ways, axis=0)


def claims(dataset):
    settings = results.config_of(dataset)
    question = "A3, open question on order"
    share = (
        "change of the error against random orders, without the "
        f"{settings.left_out:.0%} of prompts with the largest errors in any order"
    )
    worst = max(dataset.control.transpose("model", "run").values, key=np.mean)
    found = [
        about_the_mean(
            "demonstration_order.control",
            "derived here",
            "Where all tokens read all demonstrations no order helps or harms",
            "mean over runs, at the worst model, of the largest change over the root mean square "
            f"prediction <= {settings.none:g} (statistic changed after a first run: it was over "
            "the median prediction, and the rounding of exploded ones is larger)",
            worst,
            at_most=settings.none,
        )
    ]
    for model in (m for m in dataset.model.values if not m.startswith("random")):
        name = model.replace(" ", "_")
        half = dataset.half.sel(model=model).transpose("run", "half", "rule")
        easy, large = (
            dataset.change.sel(model=model, rule=rule).values
            for rule in ("easy to hard", "large to small step")
        )
        found += [
            about_the_median(
                f"demonstration_order.{name}_best",
                question,
                f"Some rule of ordering helps {model} attention",
                f"median over runs of the {share}, by the rule chosen on other prompts, <= "
                f"-{settings.gain:g}",
                chosen(half),
                at_most=-settings.gain,
            ),
            about_the_median(
                f"demonstration_order.{name}_easy_to_hard",
                question,
                f"Easy demonstrations first and hard ones last help {model} attention",
                f"median over runs of the {share} <= 0",
                easy,
                at_most=0.0,
            ),
            about_the_median(
                f"demonstration_order.{name}_large_steps_first",
                question,
                f"Demonstrations with large gradient steps first help {model} attention",
                f"median over runs of the {share} <= 0 (claim added after a first run)",
                large,
                at_most=0.0,
            ),
        ]
    return found
