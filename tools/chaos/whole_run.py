"""A whole ``python -m experiments run``, with four trainings, that is killed at any instant and
begun again until it has ended: it leaves what one that nobody disturbs leaves."""

import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from lsa_lab.store import results
from tools.chaos.lost import ROOT, Lost, was_killed

WORDS = ("run", "one_layer_optimum", "--tier", "smoke", "--config.steps", "2000")
ENDED = "runs that ended with the same bits"
_RESULT = "a result is there"
_OWN = ("wall_time", "start", "memory", "result", "record")  # of a run, and not of what it found
_LONGEST = 900.0  # seconds of one run


def kills(number: int, folder: Path, seed: int = 0) -> Counter:
    """Kill so many processes, and count them by what they had left; Lost if a run ends otherwise
    than one that nobody disturbs."""
    rng, met = random.Random(seed), Counter()
    calm, killed = folder / "calm", folder / "killed"
    for _ in range(2):  # the first one compiles
        shutil.rmtree(calm, ignore_errors=True)
        began = time.monotonic()
        _run(calm)
        seconds = time.monotonic() - began
    expected = end(calm)
    while met.total() - met[ENDED] < number or killed.exists():
        # From its result on a run only draws and judges: it is let to its end.
        is_last = met.total() - met[ENDED] >= number or _where(killed) == _RESULT
        if _run(killed, None if is_last else rng.uniform(0, seconds)):
            met[_where(killed)] += 1
            continue
        left = end(killed)
        if left != expected:
            names = {name for name in left | expected if left.get(name) != expected.get(name)}
            raise Lost(f"a run that was killed ends with other {', '.join(sorted(names))}")
        met[ENDED] += 1
        shutil.rmtree(killed)
    return met


def end(place: Path) -> dict[str, str]:
    """Digests of all files that a run leaves, its cache among them, by their names; but how long
    it took, which one that was begun again does not know."""
    return {
        str(path.relative_to(place)): hashlib.sha256(_contents(path)).hexdigest()
        for path in sorted(place.rglob("*"))
        if path.is_file() and path.parent.name != "times"
    }


def _contents(path: Path) -> bytes:
    """What two runs with the same numbers have the same."""
    if path.name == "result.nc":
        return results.load(path).attrs["contents_sha256"].encode()
    if path.name == "config.json":
        facts = {k: v for k, v in json.loads(path.read_text()).items() if k not in _OWN}
        return json.dumps(facts).encode()
    return path.read_bytes()


def _run(place: Path, seconds: float | None = None) -> bool:
    """Whether a process of the run was killed, after so many seconds if they are given; Lost if it
    fails by itself, or has no end."""
    place.mkdir(parents=True, exist_ok=True)
    process = subprocess.Popen(
        [sys.executable, "-m", "experiments", *WORDS, "--out", str(place / "figures")],
        cwd=ROOT,
        env=os.environ | {"LSA_LAB_CACHE": str(place / "cache"), "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        _, words = process.communicate(timeout=_LONGEST if seconds is None else seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        _, words = process.communicate()
        if seconds is None:
            raise Lost(f"a run is not at its end after {_LONGEST} s: {words[-300:]}") from None
    return was_killed(process.returncode, "a run", words)


def _where(place: Path) -> str:
    """How far a run is, by what it has left."""
    names = [path.name for path in place.rglob("*") if path.is_file()]
    if any(name.endswith(".tmp") for name in names):
        return "a file half written"
    for name, words in (("result.nc", _RESULT), (".ckpt", "in a training")):
        if any(left.endswith(name) and not left.startswith(".") for left in names):
            return words
    return "before the first save" if names else "before the first file"
