"""Files that were damaged at rest: each is refused in a sentence, or gives what was saved.

A wrong load is one that gives other numbers and says nothing; a raw one ends in anything but
ValueError, the only refusal that a caller looks for.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from experiments.models import runs
from lsa_lab.store import checkpoints, results
from tools.chaos.writers import (
    FACTS,
    SPEC,
    save_checkpoint,
    save_result,
    save_weights,
    tree_of,
)


@dataclass(frozen=True)
class Kind:
    """A kind of file that holds numbers: how it is written, and the bytes of what it gives back."""

    name: str
    save: Callable[[Path, int], None]
    load: Callable[[Path], Any]

    def file(self, folder: Path, version: int) -> bytes:
        path = folder / self.name
        self.save(path, version)
        return path.read_bytes()

    def outcome(self, path: Path, content: bytes, expected: bytes) -> str:
        """What becomes of a load of this content: refused, the same, wrong or raw."""
        path.write_bytes(content)
        try:
            loaded = self.load(path)
        except ValueError:
            return "refused"
        except Exception as error:
            return f"raw {type(error).__name__}"
        return "the same" if loaded == expected else "wrong"


def _checkpoint(path: Path) -> bytes:
    return _bytes(checkpoints.load(path, tree_of(0), FACTS))


def _result(path: Path) -> bytes:
    return results.contents_sha256(results.load(path, config={"n": 3})).encode()


def _weights(path: Path) -> bytes:
    read = runs.read(path, SPEC)
    return _bytes((read.params, read.loss, read.taken, read.parts))


def _bytes(tree: Any) -> bytes:
    return b"".join(np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(tree))


KINDS = (
    Kind("checkpoint", save_checkpoint, _checkpoint),
    Kind("result", save_result, _result),
    Kind("weights", save_weights, _weights),
)


def flipped(content: bytes, number: int, seed: int = 0) -> Iterator[bytes]:
    """The content with one bit turned over: of so many bits by lot, or of all there are."""
    bits = range(8 * len(content))
    for bit in random.Random(seed).sample(bits, number) if number < len(bits) else bits:
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        yield bytes(damaged)


def cut(content: bytes, every: int = 1) -> Iterator[bytes]:
    for length in range(0, len(content), every):
        yield content[:length]


def zero_tailed(content: bytes, every: int = 1) -> Iterator[bytes]:
    """The content with zeros from some byte on, as a disk leaves what it never wrote."""
    for length in range(0, len(content), every):
        damaged = content[:length].ljust(len(content), b"\0")
        if damaged != content:
            yield damaged


def spliced(content: bytes, other: bytes, block: int = 512) -> Iterator[bytes]:
    """The content with one block of another file of the same kind, or two blocks exchanged."""
    for start in range(0, len(content), block):
        end = start + block
        yield content[:start] + other[start:end] + content[end:]
        if end < len(content):
            yield (
                content[:start]
                + content[end : end + block]
                + content[start:end]
                + (content[end + block :])
            )


def outcomes(kind: Kind, folder: Path, flips: int, every: int = 1) -> dict[str, Counter]:
    """What became of each way of damaging a file of a kind."""
    folder.mkdir(parents=True, exist_ok=True)
    content, other = kind.file(folder, 1), kind.file(folder, 2)
    path = folder / f"damaged {kind.name}"
    path.write_bytes(content)
    expected = kind.load(path)
    ways = {
        "bits flipped": flipped(content, flips),
        "cut short": cut(content, every),
        "zeros at the end": zero_tailed(content, every),
        "blocks exchanged": spliced(content, other),
    }
    return {
        way: Counter(kind.outcome(path, each, expected) for each in damaged if each != content)
        for way, damaged in ways.items()
    }
