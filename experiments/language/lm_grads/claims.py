"""The rank correlations and gains that the statements of `lm_grads` are judged by."""

import numpy as np

from experiments.language.lm_grads.statements import RIVALS, SCORED
from lsa_lab import results
from lsa_lab.lm import readings
from lsa_lab.statistics import best_elsewhere, spearman

GRADS = {SCORED[id][0]: id for id in ("margin", "row")}  # rule: id


def samples(dataset) -> dict[str, np.ndarray]:  # {id: [R]}
    config = results.config_of(dataset)
    return {
        f"{name}_{id}": runs
        for name in dataset.task.values
        for of in (_of_scores, _of_layers, _of_readings, _of_prompts)
        for id, runs in of(dataset.sel(task=name), config).items()
    }


def score(dataset, rule):  # of one task -> [R, m, B]
    return dataset.score.sel(rule=rule).transpose("run", "demonstration", "query").values


def worth(dataset):  # -> [R, m, B]
    """What each demonstration adds to the log-probability of the query's label, alone."""
    return dataset.worth.transpose("run", "demonstration", "query").values


def correlations(left, right):  # [R, m, B] x 2 -> [R]
    """The rank correlation over the pool, averaged over a run's queries."""
    runs = zip(left, np.broadcast_to(right, left.shape), strict=True)
    return np.array(
        [np.mean([spearman(*pair) for pair in zip(x.T, y.T, strict=True)]) for x, y in runs]
    )


def gains(dataset, rule, shots):  # -> [R]
    """The mean worth of the demonstrations that a rule selects over that of the pool, each alone:
    the expectation of a random choice."""
    scores, worths = score(dataset, rule), worth(dataset)
    chosen = scores.argsort(axis=1, kind="stable")[:, -shots:]
    selected = np.take_along_axis(worths, chosen, axis=1).mean(1)
    return (selected - worths.mean(1)).mean(-1)


def by_layer(dataset, read):  # -> correlations with worth, spreads of the log flow [R, L] x 2
    """What the flow after each layer predicts, and how far apart it is over a pool."""
    flows = dataset.flow.sel(read=read).transpose("layer", "run", "demonstration", "query").values
    predicts = np.stack([correlations(of_layer, worth(dataset)) for of_layer in flows], axis=-1)
    spreads = flows.std(axis=2).mean(-1).T
    return predicts, spreads


def margins(dataset, rule):  # -> log odds of the second label [K, R, B]
    """After the prompts that a rule selects: one for each query, of random choices K."""
    if rule == "random":
        return dataset.random_prompt.transpose("draw", "run", "query").values
    if rule == "no demonstrations":
        before = dataset.before.transpose("class", "run", "query").values
        return before[1:] - before[:1]
    return dataset.prompt.sel(rule=[rule]).transpose("rule", "run", "query").values


def log_probabilities(dataset, rule):  # -> [R, B]
    """Those of the right label after these prompts."""
    signs = 2 * dataset.label.transpose("run", "query").values - 1
    return -np.logaddexp(0, -signs * margins(dataset, rule)).mean(0)


def aucs(dataset, rule):  # -> [R]
    """The share of pairs of queries, one of each label, that prompts of a rule put in order; of
    random choices the mean over them."""
    labels = dataset.label.transpose("run", "query").values
    runs = zip(labels, margins(dataset, rule).swapaxes(0, 1), strict=True)
    of_draw = [
        [readings.auc(np.stack([0 * row, row], axis=1), own) for row in rows] for own, rows in runs
    ]
    return np.mean(of_draw, axis=1)


def _of_scores(dataset, config):
    numbers, of_pool = {}, worth(dataset)
    for id, (rule, _) in SCORED.items():
        numbers[f"predicts_{id}"] = correlations(score(dataset, rule), of_pool)
    best = gains(dataset, "oracle", config.shots)
    for id in ("margin", "row"):
        rule = SCORED[id][0]
        numbers[f"measures_{id}"] = correlations(score(dataset, rule), np.abs(of_pool))
        numbers[f"share_{id}"] = gains(dataset, rule, config.shots) - config.share * best
    return numbers


def _of_layers(dataset, config):
    predicts, spreads = by_layer(dataset, "margin")
    return {
        "last_layer": predicts[:, -1] - best_elsewhere(predicts[:, :-1]),
        "discriminates": spreads[:, -1] / best_elsewhere(spreads[:, :-1]),
    }


def _of_readings(dataset, config):
    margin, row, offline = (score(dataset, SCORED[id][0]) for id in ("margin", "row", "offline"))
    lengths = dataset.length.transpose("run", "demonstration").values[..., None]
    return {
        "readings": correlations(margin, row),
        "offline": correlations(offline, row),
        "length": correlations(margin, lengths),
    }


def _of_prompts(dataset, config):
    if not config.prompts_judged:
        return {}
    right = {rule: log_probabilities(dataset, rule) for rule in (*GRADS, *RIVALS)}
    apart = {rule: aucs(dataset, rule) for rule in (*GRADS, *RIVALS)}
    strongest = best_elsewhere(np.stack([apart[rival] for rival in RIVALS], axis=1))
    numbers = {}
    for rule, id in GRADS.items():
        for rival in RIVALS:
            numbers[f"prompts_{id}_{rival.lower()}"] = (right[rule] - right[rival]).mean(-1)
        numbers[f"apart_{id}_random"] = apart[rule] - apart["random"]
        numbers[f"apart_{id}_strongest"] = apart[rule] - strongest
    return numbers
