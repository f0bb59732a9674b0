"""Where the experiments of earlier versions are: the name of the one whose part each is now, or
what it answered and which commit has it.

Rows have kept their ids, "noisy_pools.few_flipped" as "fixed_and_per_query.few_flipped"; where two
experiments had one id, ``ROWS`` says which row is whose.
"""

MOVED: dict[str, str] = {
    "clipping_and_bound": "bound_and_gap",
    "disturbances": "condition_numbers",
}

ROWS: dict[str, str] = {}  # {"experiment.row" of before: "experiment.row"}
