"""The rules that know the task of sparse regression, by name; and models by that of their size."""

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
