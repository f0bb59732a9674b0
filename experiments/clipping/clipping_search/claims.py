"""What searches gain on the prompts they search with and on others, as `clipping_search` judges."""

import numpy as np

from experiments.clipping.clipping_search.statements import (
    ALGORITHM,
    COMPOSED,
    PATIENT,
    TRAINED,
    WIDE,
)


def samples(dataset) -> dict[str, np.ndarray]:  # {id: [R]}
    validation, test = dataset.validation_gain, dataset.test_gain
    algorithm, wide = test.sel(search=list(ALGORITHM)), test.sel(search=WIDE)
    optimism = (validation - test).mean("task")
    optimism_of_algorithm = optimism.sel(search=list(ALGORITHM)).mean("search")
    patient = test.sel(search=list(PATIENT))
    optimism_of_patient = optimism.sel(search=list(PATIENT)).mean("search")
    other_tasks = wide.drop_sel(task=TRAINED).mean("task")
    values = {
        "algorithm_gains": algorithm.mean(("task", "search")),
        "algorithm_wins": np.sign(algorithm).mean(("task", "search")),
        "more_prompts_gain": patient.mean(("task", "search")),
        "more_prompts_win": np.sign(patient).mean(("task", "search")),
        "more_prompts_are_fairer": optimism_of_algorithm - optimism_of_patient,
        "selection": optimism_of_algorithm,
        "wider_is_more_optimistic": optimism.sel(search=WIDE) - optimism_of_algorithm,
        "wider_gains_more": (wide - algorithm.mean("search")).mean("task"),
        "composition_gains_more": (test.sel(search=COMPOSED) - wide).mean("task"),
        "mismatch": other_tasks - wide.sel(task=TRAINED),
        "matched": wide.sel(task=TRAINED),
    }
    return {id: runs.values for id, runs in values.items()}
