"""Questions of different lengths in few shapes, for each shape is a program to compile."""

import dataclasses
import itertools
import math
from collections.abc import Sequence

import numpy as np

_PROGRAM = 512  # tokens of padding that are cheaper than a program more to compile
_STEP = 16  # lengths are rounded up to a multiple of it, and to a quarter of the power of two below


@dataclasses.dataclass(frozen=True, eq=False)
class Bucket:
    """r questions of about one length, which are run together, and W - r rows of padding."""

    ids: np.ndarray  # [W, T], padded on the right
    last: np.ndarray  # [W], the place of each question's last token
    rows: np.ndarray  # [r], which questions these are


def make_buckets(
    parts: Sequence[Sequence[int]], longest: int, max_tokens: int
) -> tuple[Bucket, ...]:
    """Sort queries by rounded length, at most ``longest``, in buckets of at most ``max_tokens``.

    Queries that the next length pads by little go with it; a bucket has one query at least.
    """
    lengths = np.array([min(_round_length(len(part)), longest) for part in parts])
    batches: list[Bucket] = []
    rows = np.array([], int)
    for length, following in itertools.pairwise([*np.unique(lengths).tolist(), math.inf]):
        rows = np.concatenate([rows, np.flatnonzero(lengths == length)])
        if len(rows) * (following - length) >= _PROGRAM:
            number = math.ceil(len(rows) / max(1, max_tokens // length))
            width = math.ceil(len(rows) / number)
            for begin in range(0, len(rows), width):
                batches.append(_make_bucket(parts, rows[begin : begin + width], width, int(length)))
            rows = rows[:0]
    return tuple(batches)


def _make_bucket(
    parts: Sequence[Sequence[int]], rows: np.ndarray, width: int, length: int
) -> Bucket:
    ids, last = np.zeros((width, length), np.int32), np.zeros(width, np.int32)
    for i, row in enumerate(rows):
        ids[i, : len(parts[row])] = parts[row]
        last[i] = len(parts[row]) - 1
    return Bucket(ids, last, rows)


def _round_length(length: int) -> int:
    step = max(_STEP, 2 ** (length.bit_length() - 3))
    return math.ceil(length / step) * step
