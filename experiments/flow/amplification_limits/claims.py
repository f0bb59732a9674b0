"""What `amplification_limits` judges."""

from math import exp

import numpy as np

from lsa_lab.judging.statements import Statement, grid
from lsa_lab.judging.statistics import worst
from lsa_lab.store import results

SMALL = 0.5  # a change of the log ratio up to which it is left as it is
GENERIC = 0.95  # share of the pairs for which a generic theorem has to be true
OWN = "derived here"


def changes(dataset):  # [restart, direction, budget]
    """The log ratio after the last layer less that after the first, where ascent ended."""
    change = dataset.search.isel(search_layer=-1) - dataset.search.isel(search_layer=0)
    return change.transpose("restart", "direction", "budget")


def least_change(dataset, says):  # -> [restarts]
    """What ascent for the least finds: the change at the largest budget, or the last log ratio."""
    config = results.config_of(dataset)
    if says == "order":
        path = dataset.search.sel(direction="least", budget=config.shown)
        return path.isel(search_layer=-1).values
    return changes(dataset).sel(direction="least", budget=max(config.budgets)).values


def largest_small_change(dataset):  # -> [restarts]
    smallest = min(results.config_of(dataset).budgets)
    return np.abs(changes(dataset).sel(budget=smallest)).max("direction").values


def growth(dataset, feedback):  # -> [R, gains]
    """The share of the pairs, each alone, whose ratio grows in every layer."""
    alone = dataset.growth.sel(mode="alone", feedback=feedback)
    return alone.transpose("run", "gain").values


def statements(config) -> tuple[Statement, ...]:
    return (*_ascent_statements(config), *_map_statements())


def _ascent_statements(config):
    restarts = {"statistic": "median", "over": "restarts"}
    words = {
        "ratio": (
            "depth enlarges the ratio of two flows",
            "the least change of the log ratio that ascent finds, at the largest budget,",
        ),
        "order": (
            "the demonstration ahead after one layer stays ahead",
            f"the last log ratio where ascent seeks the least, at budget {config.shown:g},",
        ),
    }
    return (
        Statement(
            "every_stack",
            "A1 (2508.00385), Theorem 1, our reading, in our setting",
            "In every linear stack, {happens}",
            "{what}",
            at_least=0,
            note="'every stack' is our quantifier: A1's conditions are not public",
            sample=least_change,
            cells=grid("theorem_1 order", says=("ratio", "order")),
            words=lambda says: dict(zip(("happens", "what"), words[says], strict=True)),
            message="In every linear stack, depth enlarges the ratio of two flows, and the "
            "demonstration ahead after one layer stays ahead",
            **restarts,
        ),
        Statement(
            "small_weights",
            OWN,
            f"With small weights no ratio changes by more than a factor of {exp(SMALL):.2f}",
            "the largest change of the log ratio, up or down, at the smallest budget,",
            at_most=SMALL,
            sample=largest_small_change,
            **restarts,
        ),
        Statement(
            "robust",
            OWN,
            "The reversals that ascent finds are no accidents of single numbers",
            "the share of copies with errors that reverse the order, too,",
            at_least=GENERIC,
            sample=lambda r: r.reverses.values,
            **restarts,
        ),
    )


def _map_statements():
    source = f'{OWN}; docs/theory, "Layers turn the order of flows"'
    grows = "the share of pairs, each alone, whose ratio grows in every layer,"
    return (
        Statement(
            "push",
            source,
            "With nothing but positive feedback the ratio grows in every layer for all pairs",
            f"{grows} at the gain with the fewest,",
            "median",
            at_least=GENERIC,
            sample=lambda r: worst(growth(r, 1), lambda runs: -np.median(runs)),
        ),
        Statement(
            "pull",
            source,
            "With nothing but negative feedback the ratio grows in every layer for no pair",
            f"{grows} at the gain with the most,",
            "median",
            at_most=1 - GENERIC,
            sample=lambda r: worst(growth(r, -1)),
        ),
    )
