"""What the statements of `clipping_search` are judged by."""

import numpy as np

from experiments.clipping.clipping_search.config import ALGORITHM, COMPOSED, TRAINED, WIDE
from lsa_lab import results
from lsa_lab.claims import about_the_mean


def claims(dataset):
    settings = results.config_of(dataset)
    validation, test = dataset.validation_gain, dataset.test_gain
    first = test.sel(search=ALGORITHM)
    optimism = (validation - test).mean("task")
    wins = np.sign(first).mean(("task", "search"))
    wide = test.sel(search=WIDE)
    others = wide.drop_sel(task=TRAINED).mean("task")
    gain = "mean over runs and tasks of the gain on test, relative to the unclipped risk,"
    source, derived = "A2 (2406.03768), figure 4 and table C.5", "derived here"
    rows = (
        ("algorithm_gains", source, "A2's Algorithm 1 improves the model",
         f"{gain} >= {settings.gain:g}", first.mean(("task", "search")),
         {"at_least": settings.gain}),
        ("algorithm_wins", source, "Algorithm 1 improves the model more often than it harms it",
         f"mean over runs of wins less losses on test, over searches, >= {settings.margin:g}",
         wins, {"at_least": settings.margin}),
        ("selection", derived, "Algorithm 1's gain on validation is in part won by selection",
         "mean over runs and tasks of the gain on validation less that on test >= 0",
         optimism.sel(search=ALGORITHM).mean("search"), {"at_least": 0.0}),
        ("wider_is_more_optimistic", derived, "The more edits are tried, the more is selection",
         f"mean over runs and tasks of that difference for {WIDE} less that for Algorithm 1 >= 0",
         optimism.sel(search=WIDE) - optimism.sel(search=ALGORITHM).mean("search"),
         {"at_least": 0.0}),
        ("wider_gains_more", derived, "Looking everywhere finds better edits than Algorithm 1",
         f"{gain} of {WIDE} less that of Algorithm 1 >= 0",
         (wide - first.mean("search")).mean("task"), {"at_least": 0.0}),
        ("composition_gains_more", "modelled on Sharma et al. (2312.13558)",
         "Edits made one after the other improve on the best single one",
         f"{gain} of the composition less that of the best edit of {WIDE} >= 0",
         (test.sel(search=COMPOSED) - wide).mean("task"), {"at_least": 0.0}),
        ("mismatch", derived, "Clipping gains more on tasks the model was not trained for",
         f"{gain} of {WIDE} on the other tasks less that on the trained one >= 0",
         others - wide.sel(task=TRAINED), {"at_least": 0.0}),
        ("matched", derived, "On the task of training there is nothing to gain",
         "mean over runs of the gain on test, relative to the unclipped risk, of "
         f"{WIDE}, <= {settings.gain:g}", wide.sel(task=TRAINED), {"at_most": settings.gain}),
    )  # fmt: skip
    return [
        about_the_mean(f"clipping_search.{name}", source, statement, criterion, samples, **bound)
        for name, source, statement, criterion, samples, bound in rows
    ]
