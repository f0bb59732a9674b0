"""The cells of a grid on disk: each in a file of its own as soon as it is computed, a hundred in
one file as soon as they are all there. So 10 000 cells are a hundred files."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from lsa_lab.store import checkpoints, safe_files

TOGETHER = 100


def groups(names: Sequence[str]) -> list[Sequence[str]]:
    """Names that follow each other, by the hundred."""
    return [names[i : i + TOGETHER] for i in range(0, len(names), TOGETHER)]


class Cells:
    """The contents of the cells of these names, as far as a folder has them."""

    def __init__(self, folder: str | Path, names: Iterable[str]):
        self._folder = Path(folder)
        digests = {name: hashlib.sha256(name.encode()).hexdigest()[:32] for name in names}
        self._files = {name: self._folder / f"{digest}.cell" for name, digest in digests.items()}
        together: dict[str, tuple[bytes, Path]] = {}
        for path in self._folder.glob("*.cells"):
            _, leaves = checkpoints.unpacked(path.read_bytes(), path)
            together |= {leaf[2:-2]: (leaves[leaf].tobytes(), path) for leaf in leaves}
        packed = {name: together[x] for name, x in digests.items() if x in together}
        self._contents = {name: content for name, (content, _) in packed.items()}
        self._together = {name: path for name, (_, path) in packed.items()}
        alone = set(self._folder.glob("*.cell"))
        for name, file in self._files.items():
            if file in alone and name not in self._contents:
                self._contents[name] = file.read_bytes()

    def __contains__(self, name: str) -> bool:
        return name in self._contents

    def read(self, name: str, facts: checkpoints.Facts) -> dict[str, np.ndarray]:
        """The arrays of a cell that has these facts."""
        path = self._together.get(name, self._files[name])
        leaves = checkpoints.checked(self._contents[name], path, facts)
        return {leaf[2:-2]: array for leaf, array in leaves.items()}  # ['name']

    def contents(self, names: Iterable[str]) -> list[bytes]:
        return [self._contents[name] for name in names]

    def keep(self, contents: Mapping[str, bytes]) -> None:
        """Write those that the folder lacks."""
        new = [name for name in contents if name not in self]
        for name in new:
            safe_files.write(self._files[name], contents[name])
            self._contents[name] = contents[name]
        for group in groups(new):
            self.gather(group)

    def gather(self, names: Sequence[str]) -> None:
        """Put a whole group into one file if all of it is there; a kill leaves a cell there once
        or twice."""
        if len(names) < TOGETHER or not all(name in self for name in names):
            return
        alone = [name for name in names if name not in self._together]
        if alone:
            leaves = {
                self._files[name].stem: np.frombuffer(self._contents[name], np.uint8)
                for name in alone
            }
            label = hashlib.sha256("".join(leaves).encode()).hexdigest()[:32]
            path = self._folder / f"{label}.cells"
            checkpoints.save(path, leaves, {"cells": len(leaves)})
            self._together |= dict.fromkeys(alone, path)
        for name in names:
            self._files[name].unlink(missing_ok=True)
