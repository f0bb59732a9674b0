"""Cross-entropies of every rule, and the ratios and correlations that are judged."""

import numpy as np

from experiments.language.lm_gradient_matching.config import DRAWN, RULES
from lsa_lab import results
from lsa_lab.lm import readings
from lsa_lab.statistics import spearman

BEST = "best of 5"


def samples(dataset) -> dict[str, np.ndarray]:  # {id: [R]}
    n = results.config_of(dataset).shots
    return {
        f"{name}_{id}": runs
        for name in dataset.task.values
        for id, runs in _of_task(dataset.sel(task=name, n=n)).items()
    }


def _of_task(dataset) -> dict[str, np.ndarray]:
    logs = {rule: np.log(losses) for rule, losses in by_rule(dataset).items()}
    rivals = np.mean([logs[rule] for rule in ("random", BEST, "k-means")], axis=0)
    matched, white = logs["matching"], logs["matching, whitened"]
    shifted = by_rule(dataset, readings.cross_entropy_after_best_shift)
    divergence = dataset.divergence.transpose("run", "subset").values
    return {
        "random": np.exp(matched - logs["random"]),
        "random_shifted": shifted["matching"] / shifted["random"],
        "rivals": np.exp(matched - rivals),
        "whitened": np.exp(white - logs["random"]),
        "whitened_over_plain": np.exp(white - matched),
        "stratified": np.exp(matched - logs["stratified"]),
        "mismatched": np.exp(logs["mismatching"] - logs["random"]),
        "shares": divergence[:, dataset.rule.values.tolist().index("matching")]
        / dataset.random_divergence.values,
        "ranks": _ranks(dataset),
    }


def by_rule(dataset, reading=readings.cross_entropy) -> dict[str, np.ndarray]:  # {rule: [R]}
    """A reading of one task and size: geometric means over the prompts of a rule, and the draw that
    answers the validation best."""
    values = of_subsets(dataset, reading)
    rules = dataset.rule.values
    means = {rule: _geometric(values[:, rules == rule]) for rule in (*RULES, *DRAWN)}
    return means | {BEST: np.take_along_axis(values, best_draw(dataset)[:, None], 1)[:, 0]}


def of_subsets(dataset, reading=readings.cross_entropy) -> np.ndarray:  # [R, S]
    """A reading of the answers after every subset."""
    scores = dataset.score.transpose("run", "subset", "sentence", "label").values
    right = dataset.right.transpose("run", "sentence").values
    return np.array([[reading(s, y) for s in rows] for rows, y in zip(scores, right, strict=True)])


def best_draw(dataset) -> np.ndarray:  # [R]
    """Where among the subsets the random one stands that answers the validation best."""
    axes = ("run", "draw", "validation", "label")
    scores = dataset.validation_score.transpose(*axes).values
    right = dataset.validation_right.transpose("run", "validation").values
    losses = [
        [readings.cross_entropy(s, y) for s in rows] for rows, y in zip(scores, right, strict=True)
    ]
    first = dataset.rule.values.tolist().index("random")
    return first + np.argmin(losses, axis=1)


def without(dataset, reading=readings.cross_entropy) -> np.ndarray:  # of one task -> [R]
    """A reading of the answers without demonstrations."""
    scores = dataset.score_without.transpose("run", "sentence", "label").values
    right = dataset.right.transpose("run", "sentence").values
    return np.array([reading(s, y) for s, y in zip(scores, right, strict=True)])


def _ranks(dataset) -> np.ndarray:  # [R]
    unchosen = np.isin(dataset.rule.values, DRAWN)
    losses, gap = of_subsets(dataset), dataset.gap.transpose("run", "subset").values
    return np.array([spearman(g[unchosen], x[unchosen]) for g, x in zip(gap, losses, strict=True)])


def _geometric(values: np.ndarray) -> np.ndarray:  # [R, S] -> [R]
    return np.exp(np.log(values).mean(1))
