"""What claims of this theme share: names of rules that know the task of sparse regression, a case
of many, numbers of seeds, and how far losses still fall."""

import numpy as np

AXES = ("run", "model", "layer", "kept")  # along which a case may be shorter than the longest


def select_case(array, case: str):
    """One case, without the runs, models, layers and numbers of heads that only others have."""
    array = array.sel(case=case)
    for axis in (axis for axis in AXES if axis in array.dims):
        array = array.dropna(axis, how="all")
    return array


RIDGE, EQUIVARIANT, LASSO, SPARSE_BAYES = RULES = (
    "ridge",
    "rotation-equivariant Bayes",
    "Lasso",
    "sparse Bayes",
)


def seeds_of(specs) -> str:
    """The numbers of seeds of models in words: "5 or 20 seeds"."""
    return f"{' or '.join(map(str, sorted({spec.training.seeds for spec in specs})))} seeds"


def last_fall(losses) -> np.ndarray:  # [S, blocks] -> [S]
    """The loss in the last sixth of the training over that in the sixth before, without runs that
    diverged."""
    losses = np.asarray(losses)
    sixth = max(losses.shape[-1] // 6, 1)
    ratios = losses[:, -sixth:].mean(1) / losses[:, -2 * sixth : -sixth].mean(1)
    return ratios[np.isfinite(ratios)]
