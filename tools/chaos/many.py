"""A sweep of ten thousand cells: programs compiled, files, seconds to take up what is finished.

``python -m tools.chaos.many FOLDER CELLS`` is one process of it.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax

from lsa_lab.harness.run import process
from lsa_lab.models import linear_attention
from lsa_lab.store import grids
from lsa_lab.training import Files, Training, fit
from tools.chaos import sweep
from tools.chaos.lost import ROOT, Lost

PROGRAMS, FILES, SECONDS = 25, 200, 5.0
_COMPILED = "/jax/core/compile/backend_compile_duration"


def grid(folder: Path, number: int) -> None:
    """Risks at four numbers of shots and as many seeds as make the cells so many."""
    params = jax.vmap(lambda key: linear_attention.init(key, 2, 1, 3))(
        jax.random.split(jax.random.key(0), 4)
    )

    def judge(cell: tuple) -> dict:
        return {"risk": sweep._risk(params, jax.random.key(cell[1]), cell[0])}

    cells = [(2 << i % 4, i // 4) for i in range(number)]
    assert grids.grid(cells, judge, folder)["risk"].shape == (number, 4)


def runs(folder: Path, number: int) -> None:
    """A training of so many runs, each with a rate and a key of its own."""
    rates = jnp.geomspace(1e-3, 0.3, number)
    training = Training(
        lambda w, batch, rate: ((w - batch) ** 2).mean(),
        lambda key, rate: 3 + jax.random.normal(key, (8,)),
        optax.sgd,
        steps=20,
    )
    keys = jax.random.split(jax.random.key(0), number)
    run = fit(training, jnp.zeros(number), keys, per_run=rates, files=Files(folder / "fit.ckpt"))
    assert np.isfinite(run.history["loss"]).all()


SWEEPS = {"cells of a grid": grid, "runs of a training": runs}


def many(number: int, folder: Path) -> Iterator[str]:
    """Lines that say what was counted; raise Lost where it is more than was promised."""
    for name in SWEEPS:
        place = folder / name.split()[0]
        first, again = (_counted(name, place, number) for _ in range(2))
        words = (
            f"{number} {name}: {first['programs']} programs compiled, {first['seconds']:.0f} s, "
            f"{first['files']} files at most; taken up again in {again['seconds']:.2f} s"
        )
        if first["programs"] > PROGRAMS or first["files"] > FILES or again["seconds"] > SECONDS:
            raise Lost(words)
        yield words


def _counted(name: str, place: Path, number: int) -> dict:
    """What a process of it has counted, while this one counts its files."""
    place.mkdir(parents=True, exist_ok=True)
    words = [sys.executable, "-m", "tools.chaos.many", str(place), str(number), name]
    ran = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    most = 0
    while ran.poll() is None:
        most = max(most, sum(1 for _ in place.iterdir()))
        time.sleep(0.02)
    if ran.returncode:
        raise Lost(f"a sweep of {number} {name} ends with {ran.returncode}")
    return json.loads(ran.stdout.read()) | {"files": most}


if __name__ == "__main__":
    process.configure()
    compiled = []
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, *_, **__: compiled.append(event) if event == _COMPILED else None
    )
    began = time.monotonic()
    SWEEPS[sys.argv[3]](Path(sys.argv[1]), int(sys.argv[2]))
    counted = {"programs": len(compiled), "seconds": time.monotonic() - began}
    print(json.dumps(counted))
