"""Seconds of the processor that a move of the explorer's sliders takes: the views and the picture.

A redraw has 0.2 s. Axes that keep their limits are not drawn again; those that change are:

    python -m benchmarks.explorer
"""

import time

from lsa_lab.harness.run import process

process.configure()

import jax
import numpy as np

from explorer.picture import Picture
from explorer.views import START, controls, views

REPEATS = 9
MOVES = {"limits stay": {"softmax": (0.02, 0.03)}, "limits change": {"scale": (0.5, 1.0)}}


def main() -> None:
    picture = Picture()
    picture.png(controls(START), views(controls(START)))
    for name, move in MOVES.items():
        ((knob, places),) = move.items()
        times = []
        for repeat in range(REPEATS):
            began = time.process_time()
            moved = controls(START | {knob: places[repeat % 2]})
            arrays = jax.block_until_ready(views(moved))
            computed = time.process_time()
            picture.png(moved, arrays)
            times.append((computed - began, time.process_time() - computed))
        computing, drawing = np.median(times[1:], axis=0)
        print(f"{name:14} computing {computing:.3f} s, drawing {drawing:.3f} s")


if __name__ == "__main__":
    main()
