"""``python reader.py ROOT``, from the tests: load all hostile files, watched from below.

One line of JSON for each: how the loader ended, its processor time, the memory that it took at its
peak, and what it did that no loader may do. Python tells of what it opens and runs by audit events;
the kernel tells of whatever opens one of the secrets, for HDF5 asks nobody.
"""

import contextlib
import ctypes
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import hostile
import jax
import numpy as np

from experiments.models import runs
from experiments.models.named import named
from lsa_lab import interop, lm
from lsa_lab.harness.run import records
from lsa_lab.store import checkpoints, results

CODE = tuple({sys.prefix, sys.base_prefix, str(Path(__file__).resolve().parents[2]), "/proc/self"})
FORBIDDEN = ("os.system", "os.exec", "os.posix_spawn", "os.fork", "subprocess", "pickle", "marshal")
FORBIDDEN += ("socket", "ctypes.dlopen", "os.remove", "os.rename", "os.mkdir", "os.symlink")
SPEC = named("smoke")[0][1]


def unsafe(path: Path) -> None:
    """The control: what numpy and h5py do when they are asked for it."""
    import h5py

    if path.suffix == ".h5":
        with h5py.File(path) as file:
            file["x"][()]
    else:
        with open(path, "rb") as file:
            stored = np.load(file, allow_pickle=True)
            np.sum([stored[name] for name in getattr(stored, "files", ())])


LOADERS: dict[str, Callable] = {
    "result": results.load,
    "checkpoint": lambda path: checkpoints.read(path, {}),
    "weights": lambda path: runs.read(path, SPEC),
    "config": lambda path: records.last_run(path.parent),
    "safetensors": interop.from_safetensors,
    "decoder": lm.load,
    "unsafe": unsafe,
}
# These are refused late, and for nothing worse than what they lack.
WARM = [("result", "a config that is none"), ("weights", "a Spec that is none")]
WARM += [("decoder", "a GGUF of a long name"), ("decoder", "layers that are a word")]
WARM += [("safetensors", "a config that is none"), ("decoder", "layers without end")]


class Watch:
    """What happens while ``path`` is set, and does not belong to loading that file."""

    def __init__(self, secrets: Path):
        self.path: Path | None = None
        self.events: list[str] = []
        libc = ctypes.CDLL(None, use_errno=True)
        self._kernel = libc.inotify_init1(os.O_NONBLOCK)
        opened = 0x20  # IN_OPEN
        if libc.inotify_add_watch(self._kernel, os.fsencode(secrets), opened) < 0:
            raise OSError(ctypes.get_errno(), "no inotify")
        sys.addaudithook(self.hear)

    def hear(self, event: str, arguments: tuple) -> None:
        if self.path is None:
            return
        if event == "open":
            place = os.path.abspath(os.fsdecode(arguments[0])) if _is_name(arguments[0]) else ""
            if place and not place.startswith((str(self.path), *CODE)):
                self.events.append(f"open {place}")
        elif event == "exec" and not arguments[0].co_filename.startswith((*CODE, "<frozen")):
            self.events.append(f"exec {arguments[0].co_filename}")
        elif event.startswith(FORBIDDEN):
            self.events.append(event)

    def end(self) -> list[str]:
        self.path, events = None, self.events
        with contextlib.suppress(BlockingIOError):
            name = os.read(self._kernel, 4096)[16:].rstrip(bytes(1)).decode()
            events = [*events, f"kernel: {name}"]
        self.events = []
        return events


def _is_name(file: object) -> bool:
    return isinstance(file, str | bytes | os.PathLike)


def peak() -> int:
    """KiB of memory at the most since ``forget``."""
    rows = Path("/proc/self/status").read_text().splitlines()
    return next(int(row.split()[1]) for row in rows if row.startswith("VmHWM"))


def forget() -> int:
    Path("/proc/self/clear_refs").write_text("5")
    return peak()


def loaded(loader: str, path: Path, watch: Watch) -> dict:
    before, began = forget(), time.process_time()
    watch.path = path
    try:
        LOADERS[loader](path)
        end = "loaded"
    except BaseException as error:
        end = f"{type(error).__name__}: {error}"
    seconds = time.process_time() - began
    return {"end": end, "seconds": seconds, "MiB": (peak() - before) / 1024, "events": watch.end()}


def main(root: Path) -> None:
    jax.config.update("jax_enable_x64", True)
    os.chdir(root)
    for loader, name in WARM:  # so that what is imported when it is used is there
        with contextlib.suppress(Exception):
            LOADERS[loader](hostile.place(root, loader, name))
    watch = Watch(root / "secrets")
    for loader, name in [*hostile.CASES, *(("unsafe", name) for name in hostile.CONTROLS)]:
        path = hostile.place(root, loader, name)
        print(json.dumps({"case": f"{loader}: {name}"} | loaded(loader, path, watch)), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
