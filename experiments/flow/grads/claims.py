"""The relative gains that the statements of `grads` are judged by."""

import numpy as np

from experiments.flow.grads.config import FLOWS, PROMPTS, RECOMPUTED, TASKS
from lsa_lab import results


def gain(over, of):  # [R] -> [R]
    """The relative gain of one error over another, run by run."""
    return 1 - of.values / over.values


def against_rivals(dataset, task, shots):  # -> name, gains [R]
    """GradS over the rival that is strongest on other queries, those of the validation. A rival is
    a rule that knows no flow."""
    place = {"setting": task, "pool": results.config_of(dataset).pool, "shots": shots}
    rivals = dataset.validation.sel(place).drop_sel(rule=[*FLOWS, *RECOMPUTED])
    name = rivals.mean("other").idxmin("rule").item()
    errors = dataset.error.sel(**place)
    return name, gain(errors.sel(rule=name), errors.sel(rule="GradS"))


def last_layer(dataset, prompt):  # -> layer, gains [R]
    """The last layer's flow over that of the earlier layer which is best on other queries."""
    place = {"setting": "prior", "prompt": prompt, "shots": results.config_of(dataset).judged}
    others = dataset.layer_validation.sel(**place).mean("other")
    layer = int(others[:-1].argmin("layer"))
    errors = dataset.layer_error.sel(**place)
    return layer + 1, gain(errors.isel(layer=layer), errors.isel(layer=-1))


def samples(dataset) -> dict[str, np.ndarray]:  # {id: [R]}
    config = results.config_of(dataset)
    errors = dataset.error.sel(pool=config.pool, shots=config.judged)
    prior, duplicates, table = (errors.sel(setting=task) for task in TASKS)
    none = dataset.end.sel(setting="table", pool=config.pool, prompting="zero-shot")
    rivals = {task: against_rivals(dataset, task, config.judged)[1] for task in TASKS}
    contributions = (duplicates.sel(rule=f"contribution{s}") for s in ("", ", recomputed"))
    return {
        "prior": rivals["prior"],
        "headline": rivals["prior"],
        "later": rivals["prior"],
        "duplicates": rivals["duplicates"],
        "table": rivals["table"],
        "random": gain(prior.sel(rule="random"), prior.sel(rule="GradS")),
        "table_random": gain(table.sel(rule="random"), table.sel(rule="GradS")),
        "table_none": gain(none, table.sel(rule="GradS")),
        "times_input": gain(prior.sel(rule="GradS"), prior.sel(rule="flow × input")),
        "last_layer": last_layer(dataset, PROMPTS[0])[1],
        "last_layer_pool": last_layer(dataset, PROMPTS[1])[1],
        "recomputed_flow": gain(*dataset.joined.transpose("flow", "run")),
        "recomputed_contribution": gain(*contributions),
    }
