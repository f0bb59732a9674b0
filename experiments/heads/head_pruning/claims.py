"""Ratios of risks, heads that are needed, and where greedy pruning leaves heads."""

import numpy as np

from experiments.heads.cases import of_case
from experiments.heads.head_pruning.statements import FULL, PRUNED, controls, ways
from experiments.heads.kinds import by_kind
from lsa_lab import results


def samples(dataset) -> dict[str, np.ndarray]:  # {id: [R]}
    config = results.config_of(dataset)
    values = {id: ratios(dataset, *way) for id, way in ways(config).items()}
    own = names_of_own(dataset)
    values |= {id: ratios(dataset, *way, PRUNED) for id, way in controls(config).items()}
    first, later = zip(*(left_by_greed(dataset, name) for name in own), strict=True)
    values["greedy_first"] = min(first, key=np.mean)
    values["greedy_later"] = max(later, key=np.mean)
    return values


def names_of_own(dataset) -> list[str]:
    """The models whose heads cannot be mixed."""
    return [name for name, _ in by_kind(results.config_of(dataset).models)[1]]


def ratios(dataset, case: str, treatment: str, over: str = FULL) -> np.ndarray:  # [R]
    """A treatment's risk over another's; runs without either are left out."""
    risk = of_case(dataset.risk, case)
    quotient = (risk.sel(treatment=treatment) / risk.sel(treatment=over)).values
    return quotient[np.isfinite(quotient)]


def geometric_mean(quotients) -> float:
    return float(np.exp(np.log(quotients).mean()))


def refitted(dataset, case: str):  # DataArray [run, heads]
    """Risks with each number of fitted heads in every later layer over those of the full model."""
    risks = of_case(dataset.refitted, case).dropna("heads", how="all")
    return (risks / risks.isel(heads=-1)).transpose("run", "heads")


def left_by_greed(dataset, case: str) -> tuple[np.ndarray, np.ndarray]:  # [R] twice
    """The share of layer 1's heads, and the mean number in later layers, that are left before the
    risk exceeds ``unchanged`` times that of the full model."""
    unchanged = results.config_of(dataset).unchanged
    risk = of_case(dataset.greedy, case).sortby("kept", ascending=False).transpose("run", "kept")
    left = of_case(dataset.left, case).sel(kept=risk.kept).transpose("run", "kept", "layer").values
    over = (risk / risk.isel(kept=0)).values > unchanged
    last = np.where(over.any(1), over.argmax(1), over.shape[1]) - 1
    at_the_end = left[np.arange(len(last)), last]
    return at_the_end[:, 0] / left[0, 0, 0], at_the_end[:, 1:].mean(1)


def agreement(dataset, cases) -> float:
    """The share of later layers in which importance and Shapley's value have the same top head."""
    same = []
    for case in cases:
        tops = [
            of_case(scores, case).sel(layer=slice(2, None)).argmax("head").values
            for scores in (dataset.importance, dataset.shapley)
        ]
        same.append((tops[0] == tops[1]).ravel())
    return float(np.concatenate(same).mean())
