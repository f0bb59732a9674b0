"""The rank correlations and differences that `relevance_and_novelty` is judged by."""

import numpy as np

from experiments.flow.relevance_and_novelty.config import BAYES, READINGS, UNTRAINED
from experiments.flow.relevance_and_novelty.statements import slug
from lsa_lab import results
from lsa_lab.statistics import worst


def risk_ratios(dataset):  # {learner: []}
    """Excess risk over that of the Bayes rule: the bar of a trained model."""
    risk = dataset.risk.mean("run")
    return {
        name: float(risk.sel(learner=name) / risk.sel(learner=BAYES)) for name in names(dataset)
    }


def names(dataset) -> list[str]:
    return [name for name in dataset.learner.values.tolist() if name != UNTRAINED]


def alike(dataset, learner):  # -> [R]
    maps = [dataset["map"].sel(learner=name, reading="flow") for name in (learner, BAYES)]
    rows = [grid.transpose("run", ...).values.reshape(grid.sizes["run"], -1) for grid in maps]
    return np.array([np.corrcoef(*pair)[0, 1] for pair in zip(*rows, strict=True)])


def samples(dataset) -> dict[str, np.ndarray]:  # {id: [R]}
    most, ratios = results.config_of(dataset).trained, risk_ratios(dataset)
    numbers = {"untrained": dataset.rise.sel(learner=UNTRAINED, reading="flow").values}
    for learner in names(dataset):
        of, name = dataset.sel(learner=learner).transpose("run", ...), slug(learner)
        for reading in READINGS:
            if (learner, reading) == (BAYES, "flow"):
                continue
            numbers[f"{name}_{reading.replace(' ', '_')}"] = of.rise.sel(reading=reading).values
        single = [name for name in of.predictor.values if name.startswith("single")]
        ahead = of.between.sel(predictor="similarity") - of.between.sel(predictor=single)
        numbers[f"{name}_beyond"] = worst(ahead, lambda runs: -runs.mean())
        numbers[f"{name}_single"] = of.single.values
        if learner != BAYES:
            ahead = (of.r2.sel(form="product") - of.r2.sel(form="sum")).sel(reading="flow")
            numbers[f"{name}_product"] = worst(ahead, lambda runs: -runs.mean())
            numbers[f"{name}_alike"] = alike(dataset, learner)
        if ratios[learner] > most:  # what is far from trained judges nobody
            numbers |= {id: None for id in numbers if id.startswith(f"{name}_")}
    return numbers
