"""Shapes and sizes of the noise of updates, and risks of descent with noise over the model's."""

import numpy as np

from lsa_lab import results


def samples(dataset) -> dict[str, np.ndarray]:  # {id: [R]}
    n, softmax = length(dataset), dataset.sel(state="trained")
    excess, passed, share = (dataset[name].sel(shots=n) for name in ("excess", "passed", "share"))
    after, typical, risk = (
        excess.sel(state="trained"),
        *(risks(dataset, x) for x in ("typical", "risk")),
    )
    trained_share = dataset["share"].sel(state="trained").mean("layer")
    return {
        "gaussian_linear": by_run(after.sel(reading="query")),
        "gaussian_whole": by_run(after.sel(reading="whole")),
        "gaussian_softmax": softmax.softmax_excess.mean("softmax_layer").values,
        "passes_linear": by_run(passed.sel(state="trained", reading="query")),
        "passes_softmax": softmax.softmax_passed.mean("softmax_layer").values,
        "training_helps": by_run(gained(excess.sel(reading="query"))),
        "tests_alike": risk["Eq. 4"] / risk["model"],
        "typically_alike": typical["Eq. 4"] / typical["model"],
        "one_draw_alike": risk["Gaussian, same"] / risk["model"],
        "sgd_alike": risk["Eq. 4"] / risk["fresh demonstrations"],
        "learns_like_sgd": risk["fresh demonstrations"] / risk["model"],
        "shape_matters": risk["another shape"] / risk["Eq. 4"],
        "size_matters": risk["half the noise"] / risk["Eq. 4"],
        "less_with_shots": (trained_share.sel(shots=2 * n) / trained_share.sel(shots=n)).values,
        "less_with_training": by_run(gained(share)),
    }


def length(dataset) -> int:
    """The demonstrations of a prompt in training."""
    return max(results.config_of(dataset).linear.task.lengths)


def risks(dataset, name) -> dict[str, np.ndarray]:  # {path: [R]}
    """The risks of every path, at the length of training."""
    values = dataset[name]
    return {path: values.sel(path=path).values for path in values.path.values.tolist()}


def gained(values):
    """Trained less untrained."""
    return values.sel(state="trained") - values.sel(state="untrained")


def by_run(values) -> np.ndarray:  # (run, layer) -> [R]
    return values.mean("layer").values
