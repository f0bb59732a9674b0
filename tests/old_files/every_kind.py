"""A file of each kind, as this version writes it: ``python tests/old_files/every_kind.py FOLDER``.

A version that is released, or that lays out a file anew, leaves such a folder here, by its name;
``test_old_files`` reads all of them. Those of versions before this program were written by the same
calls in those versions.
"""

import sys
from functools import partial
from pathlib import Path
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr

from experiments.models import runs
from experiments.models.specs import Architecture, Recipe, Spec, Task
from lsa_lab import training
from lsa_lab.harness.run import process, records
from lsa_lab.store import cells, grids, results

CONFIG = {"n": [8, 16, 32], "task": {"d": 4}}
FACTS = {"weights": "a"}  # of the cells
SPEC = Spec(
    Task(2, (4,)), Architecture(depth=1, heads=1), Recipe(4, 2, 0.1, seeds=2, checkpoints=2)
)


def dataset() -> xr.Dataset:
    return xr.Dataset(
        {
            "risk": (("run", "n"), np.arange(6.0).reshape(2, 3) / 4),
            "kept": ("run", np.array([True, False])),
            "kind": ("run", np.array(["linear", "softmax"])),
            "count": ("n", np.array([1, 2, 3])),
        },
        coords={"n": [8, 16, 32]},
        attrs={"rate": 0.5},
    )


def eighths(axes: tuple[int, ...]):  # leaves [*axes, ...]
    """Params of the Spec that say where they stand."""

    def leaf(like):
        shape = (*axes, *like.shape)
        return np.arange(np.prod(shape), dtype=np.float32).reshape(shape) / 8

    return jax.tree.map(leaf, jax.eval_shape(partial(runs.init, SPEC), jax.random.key(0)))


def row(cell: tuple[str, int]) -> dict[str, np.ndarray]:
    return {"row": np.arange(4.0) * cell[1]}


def write(folder: Path) -> None:
    results.save(dataset(), folder / "result.nc", config=CONFIG, wall_time=1.5)
    training.fit(
        training.Training(
            lambda w, batch: (w - batch) ** 2, lambda key: jnp.asarray(3.0), optax.sgd(0.25), 3
        ),
        jnp.zeros(2),
        jax.random.split(jax.random.key(0), 2),
        files=training.Files(folder / "fit.ckpt", identity="old files"),
    )
    with mock.patch.object(cells, "TOGETHER", 2):
        grids.grid([("cell", number) for number in range(3)], row, folder / "grid", facts=FACTS)
    shape, parts = (1, SPEC.training.seeds), tuple(range(1, SPEC.training.checkpoints + 1))
    kept = runs.Runs(
        SPEC,
        eighths(shape),
        eighths((SPEC.training.seeds, len(parts))),
        np.arange(8.0).reshape(*shape, 4),
        np.full(shape, SPEC.training.steps),
        parts,
    )
    runs.write(folder / "weights.npz", kept, parts=parts[1:])
    verdicts = {"order.later_layers_lead": "holds", "order.first_layer_leads": "fails"}
    records.write(
        folder,
        {"experiment": "order", "tier": "laptop", "config": CONFIG, "wall_time": 1.5}
        | {"start": "cold", "memory": 10**9, "verdicts": verdicts, "criteria": "0" * 16},
    )


if __name__ == "__main__":
    process.configure()
    write(Path(sys.argv[1]))
