"""Results on disk: ``result.nc`` with the facts of its run, and ``claims.json``."""

import dataclasses
import hashlib
import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsa_lab.lab.catalogue import UsageError, relative

if TYPE_CHECKING:
    import xarray as xr

_ADVICE = "restore it, or run the experiment again"


def plain_config(config: Any) -> dict[str, Any]:
    """Return a configuration of numbers, words and tuples as JSON gives it back: with lists."""
    return json.loads(json.dumps(dataclasses.asdict(config)))


def restore_config(kind: type, values: Mapping[str, Any]) -> Any:
    """Return the dataclass of plain values that ``plain_config`` gave."""
    names = {field.name for field in dataclasses.fields(kind)}
    return kind(**{name: _to_tuple(value) for name, value in values.items() if name in names})


def _to_tuple(value: Any) -> Any:
    return tuple(map(_to_tuple, value)) if isinstance(value, list) else value


def encode(result: "xr.Dataset | xr.DataTree", facts: Mapping[str, Any]) -> bytes:
    """Return the netCDF file of a result with the facts in its attributes.

    The file is written in memory: HDF5 dies of a segmentation fault where its disk is full.
    """
    if not hasattr(result, "data_vars"):
        kind = type(result).__name__
        raise UsageError(f"compute returned a {kind}: expected a Dataset or a DataTree of xarray")
    content, tree = io.BytesIO(), result.copy()
    tree.attrs = {**result.attrs, **facts}
    try:
        tree.to_netcdf(content, engine="h5netcdf")
    except (TypeError, ValueError) as error:
        raise UsageError(f"the result cannot be saved: {error}") from error
    return content.getvalue()


def load(folder: Path) -> "xr.Dataset | xr.DataTree":
    """Return the result of a folder, in memory, if it is the file that ``claims.json`` judges."""
    path = folder / "result.nc"
    if not path.exists():
        raise UsageError(f"no result at {relative(path)}: run the experiment first")
    content, name = path.read_bytes(), relative(path)
    judged = load_record(folder)["sha256"] if (folder / "claims.json").exists() else None
    if judged not in (None, hashlib.sha256(content).hexdigest()):
        raise UsageError(
            f"{name} is damaged, or not the file that its claims.json judges: {_ADVICE}"
        )
    return decode(content, name)


def decode(content: bytes, name: str) -> "xr.Dataset | xr.DataTree":
    """Return the result in the content of a netCDF file."""
    import xarray as xr

    try:
        with xr.open_datatree(io.BytesIO(content), engine="h5netcdf") as opened:
            tree = opened.load()
    except Exception as error:  # whatever a damaged file makes of HDF5
        raise UsageError(f"{name} is no netCDF file ({error}): run the experiment again") from None
    return tree if tree.children else tree.to_dataset()


def load_record(folder: Path) -> dict[str, Any]:
    """Return the content of ``claims.json``; raise UsageError if it is missing or damaged."""
    path = folder / "claims.json"
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(record["claims"], list) or len(record["sha256"]) != 64:
            raise ValueError("no claims and sha256")
    except (FileNotFoundError, NotADirectoryError):
        raise UsageError(f"no {relative(path)}: run the experiment first") from None
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{relative(path)} is damaged ({error}): {_ADVICE}") from None
    return record


def find_records(figures: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield name and record of every result below a folder, by name."""
    for path in sorted(figures.glob("*/claims.json")):
        yield path.parent.name, load_record(path.parent)


def load_claims(figures: str | Path = "figures") -> Any:
    """Return every claim of the results below a folder as one table, a pandas DataFrame.

    A row is a cell of a claim: experiment, id, source, statement, criterion, value, low, high,
    runs, verdict, null, status.
    """
    import pandas as pd

    rows = [
        {"experiment": name} | row
        for name, record in find_records(Path(figures))
        for row in record["claims"]
    ]
    return pd.DataFrame(rows)
