"""What a file of ours may hold: arrays, here, as they are. HDF5 would follow or unpack the rest.

A checksum says that a file is whole, not who wrote it. Links and arrays in other files would be
opened, packed arrays grow while they are read, and so do strings that point to the same bytes.
"""

import io
import itertools
import math
from typing import Any

_MOST_BESIDE = 1 << 22  # bytes that a small file may take in memory
_MOST_TIMES = 16  # so many times its size: text takes four bytes a letter, up to the longest
_BLOCK = 8  # strings read at a time
_MOST_ATTRIBUTES, _MOST_TEXTS = 1000, 32  # of one array; of one attribute


def check(content: bytes) -> None:
    """Raise unless an HDF5 file holds arrays alone, which take little more room than it does."""
    import h5py

    with h5py.File(io.BytesIO(content), "r") as file:
        room = _MOST_TIMES * len(content) + _MOST_BESIDE
        _check_attributes(file.id)
        for name in file:
            here = isinstance(file.get(name, getlink=True), h5py.HardLink)
            opened = here and h5py.h5o.open(file.id, name.encode())
            if not isinstance(opened, h5py.h5d.DatasetID):
                raise ValueError(f"{name} is no array of this file")
            facts = opened.get_create_plist()
            if facts.get_layout() == h5py.h5d.VIRTUAL or facts.get_external_count():
                raise ValueError(f"{name} lies in another file")
            _check_attributes(opened)
            array = h5py.Dataset(opened)
            if array.chunks and array.size:  # an axis of length 0 may grow, and is in chunks
                raise ValueError(f"{name} is packed")
            room -= _size(array, room)
            if room < 0:
                raise ValueError(f"{name} would take much more room than the file")


def _check_attributes(opened: Any) -> None:
    import h5py

    count = h5py.h5a.get_num_attrs(opened)
    attributes = (h5py.h5a.open(opened, index=i) for i in range(min(count, _MOST_ATTRIBUTES)))
    if count > _MOST_ATTRIBUTES or any(
        each.dtype.kind == "O" and math.prod(each.shape) > _MOST_TEXTS for each in attributes
    ):
        raise ValueError(f"more than {_MOST_ATTRIBUTES} attributes, or {_MOST_TEXTS} texts in one")


def _size(array: Any, room: int) -> int:
    """The bytes of an array in memory; those of text are counted up to what there is room for."""
    if array.dtype.kind != "O":
        return array.size * array.dtype.itemsize
    if 4 * array.size > room or array.ndim == 0:
        return 4 * array.size
    longest = total = 0
    *outer, last = array.shape
    for place in itertools.product(*map(range, outer)):
        for start in range(0, last, _BLOCK):
            lengths = [len(text) for text in array[(*place, slice(start, start + _BLOCK))]]
            longest, total = max(longest, *lengths), total + sum(lengths)
            if max(total, 4 * longest * array.size) > room:
                return room + 1
    return 4 * longest * array.size
