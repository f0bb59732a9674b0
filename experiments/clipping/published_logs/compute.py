"""Read the logs; there is nothing to compute."""

import csv
from pathlib import Path

import numpy as np
import xarray as xr

from experiments.clipping.published_logs.config import ENDS, Config

LOGS = Path(__file__).with_name("logs.csv")
RATES = ("0", "0.1", "0.5", "0.75", "0.9", "0.95", "0.99", "0.995")


def compute(config: Config, *, progress=None, checkpoints=None):
    with LOGS.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["task"] in config.tasks]

    def numbers(names):  # -> [logs, names], those of the first layers before those of the last
        ordered = sorted(rows, key=lambda row: int(row["layer"]) > 1)
        return np.array([[float(row[name]) for name in names] for row in ordered])

    def split_ends(values):  # [logs, ...] -> [2, logs / 2, ...]
        return values.reshape(len(ENDS), -1, *values.shape[1:])

    scores = numbers(RATES)
    names = [
        "{model}, {task}, {part} {layer}".format(**row) for row in rows if int(row["layer"]) <= 1
    ]
    return xr.Dataset(
        {
            "score": (("end", "log", "rate"), split_ends(np.where(scores > 0, scores, np.nan))),
            "test": (("end", "log", "edit"), split_ends(numbers(("test before", "test after")))),
        },
        {
            "end": list(ENDS),
            "log": names,
            "rate": [float(rate) for rate in RATES],
            "edit": ["before", "after"],
        },
    )
