"""What `head_lower_bound` judges: what it costs to have too few heads."""

import numpy as np

from lsa_lab.judging.statements import Statement, grid
from lsa_lab.judging.statistics import worst
from lsa_lab.store import results

WORDS = {
    "alone": dict(
        says="Descent on features of fewer than d heads, which neighbours share, costs risk",
        revision="a step size for each prompt; the same for all exploded on rare ones",
    ),
    "beside raw": dict(
        says="It costs risk even if the raw covariates stay beside the features", revision="added"
    ),
}


def numbers(dataset):  # [features, run, used < d]
    """The risk with H < d heads over that with d."""
    config = results.config_of(dataset)
    fewer = [count for count in config.heads if count < config.d]
    return dataset.risk.sel(used=fewer) / dataset.risk.sel(used=config.d)


def where_least(ratio) -> np.ndarray:  # [run, used] -> [run]
    """The ratios at the number of heads whose median over runs is least."""
    return worst(ratio.transpose("run", ...), lambda runs: -np.median(runs))


def statements(config) -> tuple[Statement, ...]:
    return (
        Statement(
            "fewer_heads",
            "modelled on A4 (2408.04532), abstract",
            "{says}",
            "the risk over that with d heads, where it is least,",
            "median",
            at_least=1.1,
            revision="{revision}",
            redrawn=f"{config.runs} fresh runs, 8 before",
            sample=lambda ratio, features: where_least(ratio.sel(features=features)),
            cells=grid("cost cost_beside_raw", features=WORDS),
            words=lambda features: WORDS[features],
            message="Descent on features of fewer than d heads, which neighbours share, costs risk "
            "even if the raw covariates stay beside them",
        ),
    )
