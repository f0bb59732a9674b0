"""Datasets whose axis "case" lists trained models of different sizes."""

AXES = ("run", "model", "layer", "kept")  # along which a case may be shorter than the longest


def select_case(array, case: str):
    """One case, without the runs, models, layers and numbers of heads that only others have."""
    array = array.sel(case=case)
    for axis in (axis for axis in AXES if axis in array.dims):
        array = array.dropna(axis, how="all")
    return array
