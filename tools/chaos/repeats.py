"""The same four runs again and again: in fresh processes, chunks, orders and companies.

``python -m tools.chaos.repeats CORES`` is one process, on so many cores; it prints the digests of
each run in each way. The last of the four runs diverges.
"""

import json
import os
import subprocess
import sys

from tools.chaos.lost import ROOT, Lost

RUNS = range(4)
CHUNKS = (1, 7, 50, 400)  # the last one: all steps at once
# Rows of each call of fit, and its arguments. A width is part of a run's identity: each has bits of
# its own, and they know nothing of who else is in the group.
WAYS = {
    **{f"chunks of {chunk}": ([RUNS], {"chunk": chunk}) for chunk in CHUNKS},
    "alone": ([[run] for run in RUNS], {}),
    "shuffled": ([[2, 0, 3, 1]], {}),
    "without the one that diverges": ([[0, 1, 2], [3]], {}),
    "width 2": ([RUNS], {"width": 2}),
    "width 2, shuffled": ([[2, 0, 3, 1]], {"width": 2}),
    "width 2, beside the one that diverges": ([[0, 3], [1, 3], [2, 3]], {"width": 2}),
}


def digests_of_every_way() -> dict[str, list[str]]:
    """The digest of each run's weights and history, by way."""
    import jax

    from lsa_lab.store import checkpoints
    from tools.chaos import sweep

    ways: dict[str, list[str]] = {}
    for way, (calls, arguments) in WAYS.items():
        rows = {}
        for chosen in calls:
            run = sweep.train(rows=chosen, **arguments)
            for place, row in enumerate(chosen):
                leaves = jax.tree.map(lambda leaf, i=place: leaf[i], (run.params, run.history))
                rows[row] = checkpoints.digest(leaves)
        ways[way] = [rows[row] for row in RUNS]
    return ways


def repeated(processes: int) -> dict[str, int]:
    """How many trainings gave the same bits, for each width; raise Lost if one gave others."""
    digests: dict[str, set[tuple]] = {}
    counts: dict[str, int] = {}
    for number in range(processes):
        cores = 1 + number % 2
        program = [sys.executable, "-m", "tools.chaos.repeats", str(cores)]
        ended = subprocess.run(program, capture_output=True, text=True, timeout=900, cwd=ROOT)
        if ended.returncode:
            raise Lost(f"a process on {cores} cores: {ended.stderr[-500:]}")
        for way, runs in json.loads(ended.stdout).items():
            width = "trainings of width 2" if way.startswith("width 2") else "trainings of width 1"
            counts[width] = counts.get(width, 0) + len(runs)
            digests.setdefault(width, set()).add(tuple(runs))
            if len(digests[width]) > 1:
                raise Lost(f"process {number} on {cores} cores, {way}: other bits")
    return counts


if __name__ == "__main__":
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: int(sys.argv[1])])
    from lsa_lab.harness.run import process

    process.configure()
    print(json.dumps(digests_of_every_way()))
