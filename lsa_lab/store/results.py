"""Results on disk: an xarray Dataset as netCDF, with its configuration and provenance."""

import dataclasses
import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from lsa_lab.files import write_file
from lsa_lab.provenance import collect_facts

if TYPE_CHECKING:
    import xarray as xr

_MOST_DIFFERENCES = 8  # of two configurations, in a sentence


def save(
    dataset: "xr.Dataset", path: str | Path, *, config: Any, wall_time: float | None = None
) -> None:
    """Write a Dataset of numbers, booleans and strings.

    ``config`` is a dataclass or a dict of plain values; ``wall_time`` is in seconds.
    """
    facts = collect_facts(Path(__file__).parent) | {"config": json.dumps(plain(config))}
    if wall_time is not None:
        facts["wall_time"] = float(wall_time)
    buffer = io.BytesIO()  # HDF5 ends in a segmentation fault where its own disk is full
    _tidy(dataset).assign_attrs(facts).to_netcdf(buffer, engine="h5netcdf")
    write_file(path, buffer.getvalue())


def load(path: str | Path) -> "xr.Dataset":
    """Return a saved Dataset, in memory; raise ValueError if the file is no result."""
    import xarray as xr

    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"no result at {path}: run the experiment first")
    try:
        with xr.open_dataset(
            io.BytesIO(path.read_bytes()),
            engine="h5netcdf",
            decode_times=False,
            decode_timedelta=False,
        ) as opened:
            dataset = _tidy(opened.load()).drop_encoding()
            plain(json.loads(dataset.attrs["config"]))
    except Exception as error:
        raise ValueError(f"{path} is no result of lsa_lab: {error!r}; run it again") from None
    return dataset


def in_short(values: ArrayLike) -> np.ndarray:
    """float64 as float32 and int64 as int32, the rest as it is: half the bytes of a file.

    For what was measured in float32, or differs between runs long before the eighth digit. Of a
    Dataset: ``dataset.map(in_short)``. A number that has no place in four bytes is refused: an
    integer beyond 2³¹, and a float that would become infinite, or 0.
    """
    array = np.asarray(values)
    kind = {"float64": np.float32, "int64": np.int32}.get(array.dtype.name)
    if kind is None:
        return array
    with np.errstate(over="ignore", under="ignore"):
        short = array.astype(kind)
    if kind is np.int32:
        lost = short != array
    else:
        lost = (np.isinf(short) & np.isfinite(array)) | ((short == 0) & (array != 0))
    if lost.any():
        name = getattr(values, "name", None)
        raise ValueError(
            f"{'a value' if name is None else name} = {array[lost].flat[0]} has no place in "
            f"{np.dtype(kind)}: keep it in eight bytes, without in_short, or change its unit"
        )
    return short


def config_of(dataset: "xr.Dataset") -> SimpleNamespace:
    """Return the Config of a loaded Dataset: fields by name, tuples as lists."""
    text = dataset.attrs["config"]
    return json.loads(text, object_hook=lambda fields: SimpleNamespace(**fields))


def plain(config: Any) -> dict:
    """Return a configuration as JSON gives it back, with lists for tuples and arrays.

    NaN and infinity are refused.
    """
    values = dict(config) if isinstance(config, Mapping) else dataclasses.asdict(config)
    return json.loads(json.dumps(values, allow_nan=False, default=_of_numpy))


def _of_numpy(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"{value!r} is no number, text, list or dict: a config is made of these alone")


def differences(saved: Any, here: Any) -> str:
    """The first values in which two plain configurations differ, as "task.d = 4 in the file,
    task.d = 5 here; and 3 values more"; empty if they agree."""
    saved, here = (dict(named_values(config)) for config in (saved, here))

    def value(values: dict, name: str) -> str:
        return f"{name} = {values[name]}" if name in values else f"no {name}"

    names = [name for name in saved | here if saved.get(name, ...) != here.get(name, ...)]
    clauses = [f"{value(saved, name)} in the file, {value(here, name)} here" for name in names]
    more = len(clauses) - _MOST_DIFFERENCES
    return "; ".join(clauses[:_MOST_DIFFERENCES] + [f"and {more} values more"] * (more > 0))


def named_values(config: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Every value of a nested configuration with its name: fields by a dot, a list of (name, group
    of fields) pairs by brackets, any other list as it stands."""
    if isinstance(config, dict) and (config or not name):
        for key, value in config.items():
            yield from named_values(value, f"{name}.{key}" if name else key)
    elif isinstance(config, list) and config and all(map(_is_named_group, config)):
        for key, value in config:
            yield from named_values(value, f"{name}[{key}]")
    else:
        yield name, config


def _is_named_group(entry: Any) -> bool:
    return isinstance(entry, list) and len(entry) == 2 and isinstance(entry[1], dict)


def _tidy(dataset: "xr.Dataset") -> "xr.Dataset":
    """Plain NumPy arrays of booleans, integers, floats or fixed-width strings."""
    new = {}
    for name, variable in dataset.variables.items():
        values = np.asarray(variable.values)
        if values.dtype.kind in "OT" and all(isinstance(x, str) for x in values.flat):
            values = values.astype(str) if values.size else np.zeros(values.shape, "U1")
        if values.dtype.kind not in "biufU":
            raise ValueError(
                f"variable {name!r} has dtype {values.dtype}: a result holds booleans, integers, "
                f"floats or strings; convert it first"
            )
        new[name] = (variable.dims, values, variable.attrs)
    coordinates = {name: new.pop(name) for name in list(new) if name in dataset.coords}
    return type(dataset)(new, coordinates, dataset.attrs)
