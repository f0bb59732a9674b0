"""The ratios and rank correlations that `offline_encoding` is judged by."""

import numpy as np


def over(dataset, rule, other) -> np.ndarray:  # [R]
    """The excess risk of what one rule selects over that of what another does."""
    return (dataset.error.sel(rule=rule) / dataset.error.sel(rule=other)).values


def samples(dataset) -> dict[str, np.ndarray]:  # {id: [R], [repeats] or []}
    cost = {
        end: dataset.sel(way=way)
        for end, way in (("", "Eq. 2, encoded"), ("_all", "pool, encoded"))
    }
    online = dataset.sel(way="pool, online")
    first, depth = (dataset.ranks.sel(encoded=name).values for name in dataset.encoded.values)
    return {
        **{
            f"operations{end}": float(of_way.operations / online.operations)
            for end, of_way in cost.items()
        },
        **{f"time{end}": (of_way.seconds / online.seconds).values for end, of_way in cost.items()},
        "ranks_one_layer": first,
        "ranks_depth": depth,
        "risk": over(dataset, "Eq. 2", "together"),
        "risk_depth": over(dataset, "alone", "Eq. 2"),
        "random": over(dataset, "Eq. 2", "random"),
        "similarity": over(dataset, "Eq. 2", "similarity"),
    }
