"""What clipping does to accuracy, AUC and cross-entropy, as `lm_clipping` judges it."""

import numpy as np

from experiments.language.lm_clipping.statements import DROPPED, PARTS, of_text
from lsa_lab import results
from lsa_lab.statistics import best_elsewhere, worst_elsewhere


def changes(dataset):
    """Clipped less unclipped, of one collection: (run, reading, layer, part, rate)."""
    return dataset.edited - dataset.unclipped


def samples(dataset) -> dict[str, np.ndarray]:  # {id: [R]}
    """The numbers of each collection of texts by itself."""
    return {
        of_text(name, id): values
        for name in dataset.task.values
        for id, values in _samples(dataset.sel(task=name)).items()
    }


def _samples(dataset) -> dict[str, np.ndarray]:  # {id: [R]}
    config = results.config_of(dataset)
    change, high = changes(dataset), max(config.rates)
    clipped = change.sel(rate=list(config.rates))
    shallow, deep = (clipped.sel(layer=end, drop=True) for end in dataset.end.values)
    values = {}
    for part in PARTS:
        own = {"part": part, "reading": "auc"}
        strongest = dict(own, rate=high)
        left = dataset.edited.sel(strongest | {"layer": dataset.end.values[0]})
        dropped = change.sel(own | {"rate": DROPPED, "layer": dataset.end.values[1]})
        rows = {
            "deep_is_flat": deep.sel(own).mean("rate"),
            "shallow_collapses": left,
            "deep_tolerates_more": (deep - shallow).sel(strongest),
            "entropy": deep.sel(strongest | {"reading": "entropy"}),
            "drop": dropped - deep.sel(strongest),
            "dropped": change.sel(
                dict(part=part, rate=DROPPED, reading="accuracy", layer=dataset.end.values[1])
            ),
        }
        values |= {f"{part.lower()}_{id}": row for id, row in rows.items()}
    accuracy, rival = dataset.unclipped.sel(reading="accuracy"), dataset.rival
    gains = {name: best_elsewhere(flat(clipped.sel(reading=name))) for name in ("accuracy", "auc")}
    rivals = rival - accuracy
    aucs = dataset.matrix_edited.sel(reading="auc") - dataset.unclipped.sel(reading="auc")
    aucs = aucs.sel(end=dataset.end.values[1])
    single = worst_elsewhere(flat(aucs), lambda column: abs(np.mean(column)))
    values |= {
        "deep_accuracy": deep.sel(reading="accuracy").mean(("part", "rate")),
        "helps": gains["accuracy"],
        "helps_auc": gains["auc"],
        "calibration": rivals.sel(rival_of="calibrated") - gains["accuracy"],
        "threshold": rivals.sel(rival_of="threshold") - gains["accuracy"],
        "few_shots": few_shots(dataset),
        "more_shots": more_shots(dataset),
        "keys_alone": aucs.sel(matrix="w_k"),
        "single_matrices": single,
    }
    return {id: np.asarray(runs) for id, runs in values.items()}


def few_shots(dataset):
    """The AUC lost in the shallow layer with most demonstrations less that with fewest."""
    lost = (dataset.shots_unclipped - dataset.shots_edited).sel(reading="auc")
    lost = lost.sel(end=dataset.end.values[0]).mean("part")
    shots = dataset.shots.values
    return lost.sel(shots=max(shots)) - lost.sel(shots=min(shots))


def more_shots(dataset):
    """The AUC of the unclipped model with most demonstrations less that with fewest."""
    auc = dataset.shots_unclipped.sel(reading="auc")
    shots = dataset.shots.values
    return auc.sel(shots=max(shots)) - auc.sel(shots=min(shots))


def flat(cells) -> np.ndarray:  # [R, C]
    """A row of all choices for each run."""
    table = cells.transpose("run", ...).values
    return table.reshape(len(table), -1)
