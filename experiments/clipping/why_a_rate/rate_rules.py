"""Rates that a search finds on validation prompts, and rates that a spectrum predicts without it.

The Dataset is that of ``why_a_rate``; "rate" ends with the drop, which no search may choose.
"""

import numpy as np

from lsa_lab.judging.statistics import spearman

MATRICES = ("w_k", "w_v", "mlp_out")  # one at a time, as in A2's B.3
MODULES = {**{name: name for name in MATRICES}, "layer": ("attention", "mlp")}
SEARCHES = {"of all": tuple(MODULES), "of w_k": ("w_k",)}
PREDICTORS = ("gap", "stable rank", "participation", "energy")


def predicted_ranks(values, energy):  # [..., p] -> [..., P]
    """The rank that each of ``PREDICTORS`` would keep, from the spectrum alone.

    Before the largest s_i - s_{i+1}; Σs²/s_1²; (Σs²)²/Σs⁴, both rounded up; and the least rank with
    that share of Σs².
    """
    squares = values**2
    total = squares.sum(-1)
    shares = squares.cumsum(-1) / total[..., None]
    ranks = (
        (values[..., :-1] - values[..., 1:]).argmax(-1) + 1,
        np.ceil(total / squares[..., 0] - 1e-9),
        np.ceil(total**2 / (squares**2).sum(-1) - 1e-9),
        (shares < energy).sum(-1) + 1,
    )
    return np.stack(ranks, axis=-1)


def best_edits(change, modules):  # [R, K, M, Q + 1] -> a layer, a module and a rate of each run
    """The places of the least risk among some modules, the drop left out."""
    columns = [list(MODULES).index(name) for name in modules]
    allowed = change[:, :, columns, :-1]
    best = allowed.reshape(len(change), -1).argmin(1)
    places = zip(*np.unravel_index(best, allowed.shape[1:]), strict=True)
    return [(int(layer), columns[column], int(rate)) for layer, column, rate in places]


def best_rates(dataset, prompts="validation", modules=MATRICES):  # indices [C, R, L, M]
    """The best rate of each layer and module by itself; of equally good ones the least."""
    change = dataset.change.sel(prompts=prompts, module=list(modules))
    return change.isel(rate=slice(None, -1)).argmin("rate").drop_vars("prompts")


def rank_correlations(dataset):  # -> [C, R, P]
    """Spearman's, of predicted and searched ranks over layers and modules; 0 if either is flat."""
    predicted = dataset.predicted.rename(matrix="module").stack(cell=("layer", "module"))
    predicted = predicted.transpose("condition", "run", "predictor", "cell").values
    return _over_cells(_searched_ranks(dataset, "validation")[:, :, None], predicted)


def repeats(dataset):  # -> [C, R]
    """The same of the ranks that are best on validation and on test prompts."""
    return _over_cells(*(_searched_ranks(dataset, prompts) for prompts in ("validation", "test")))


def _searched_ranks(dataset, prompts):  # [C, R, cells]
    ranks = dataset.kept.isel(rate=best_rates(dataset, prompts)).stack(cell=("layer", "module"))
    return ranks.transpose("condition", "run", "cell").values


_over_cells = np.vectorize(spearman, signature="(m),(m)->()", otypes=[float])
