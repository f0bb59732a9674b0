"""What `lm_gradient_matching` judges, by the criteria in its Config."""

from functools import partial

from lsa_lab.claims import Statement

A3 = "A3 (2506.04579)"
_ORDERS = (
    "each subset stood in one order at random, which moved the loss by a fifth, five times as much "
    "as what it holds; then four of eight rows were undecided"
)


def statements(config) -> tuple[Statement, ...]:
    return tuple(
        row for name, task in config.tasks for row in _of_task(config, name, _where(config, task))
    )


def _where(config, task) -> str:
    answers = f", answered by {config.target_name or config.target}" if config.target else ""
    return f"{config.model_name}, on {task.title}{answers}"


def _of_task(config, name: str, where: str) -> tuple[Statement, ...]:
    n, loss = config.shots, "label cross-entropy on fresh sentences"
    fresh = dict(over="pools", redrawn=f"{config.runs} fresh runs, 9 before")
    row = partial(Statement, revision=_ORDERS, **fresh)
    ratio = partial(row, statistic="ratio")
    clearly = partial(ratio, at_most=config.clear)
    matching = f"{where}: {n} matched demonstrations of {config.pool}"
    white = f"{where}: {n} demonstrations matched by whitened gradients"
    over = f"{loss}, matching over"
    return (
        clearly(
            f"{name}_random",
            f"{A3}, abstract, in our setting",
            f"{matching} answer better than random ones",
            f"{over} random subsets (geometric mean of {config.draws}),",
        ),
        ratio(
            f"{name}_random_shifted",
            f"{A3}, abstract, our reading, in our setting",
            f"{matching} answer better than random ones but for a bias of the labels",
            f"{loss} after the best shift, matching over random subsets,",
            at_most=config.clear,
            note="the shift is fitted on one half of the sentences and judged on the other",
            revision="added after a look at nine other runs",
        ),
        clearly(
            f"{name}_rivals",
            f"{A3}, baselines, in our setting",
            f"{matching} answer better than the rivals",
            f"{over} random subsets, best of {config.draws} and k-means (geometric mean),",
            note="best of so many is chosen on other sentences than those that judge it",
        ),
        clearly(
            f"{name}_whitened",
            "derived here",
            f"{white} answer better than random ones",
            f"{loss}, whitened matching over random subsets,",
        ),
        clearly(
            f"{name}_whitened_over_plain",
            "derived here",
            f"{white} answer better than those matched by plain ones",
            f"{loss}, whitened over plain matching,",
        ),
        ratio(
            f"{name}_stratified",
            "derived here",
            f"{matching} answer as random ones with the pool's shares of the labels do",
            f"{over} random subsets with these shares (geometric mean of {config.strata}),",
            margin=config.like,
        ),
        ratio(
            f"{name}_mismatched",
            f"{A3}, figure 4, in our setting",
            f"{where}: mismatched demonstrations answer worse than random ones",
            f"{loss}, mismatching over random subsets,",
            at_least=config.worse,
        ),
        Statement(
            f"{name}_shares",
            f"{A3}, table 6, in our setting",
            f"{matching} have labels nearly as the pool has them",
            "divergence KL(subset, pool) of the labels' shares, over its mean at random,",
            at_most=config.shares,
            **fresh,
        ),
        row(
            f"{name}_ranks",
            f"modelled on {A3}, its method",
            f"{where}: among subsets that are not chosen by it, the gap tells which answer better",
            "rank correlation of gap and cross-entropy among random and stratified subsets,",
            at_least=config.ranks,
        ),
    )
