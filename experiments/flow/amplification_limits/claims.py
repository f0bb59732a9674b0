"""What `amplification_limits` judges."""

from lsa_lab.judging.statements import Statement, grid
from lsa_lab.store import results

SMALL = 0.5  # a change of the log ratio up to which it is left as it is


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


def statements(config) -> tuple[Statement, ...]:
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
    )
