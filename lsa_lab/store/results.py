"""Results on disk: an xarray Dataset as netCDF, with its provenance, whole or refused.

The last bytes of a file are a sha256 of all the others. They are checked before the netCDF library
sees the file, which it otherwise may read wrongly or for ever; other netCDF readers skip them. The
attribute ``contents_sha256`` covers the data alone: two runs with the same bits have the same one.
"""

import dataclasses
import hashlib
import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from lsa_lab.store import plain_netcdf, provenance
from lsa_lab.store.safe_files import rescued
from lsa_lab.store.safe_files import write as write

if TYPE_CHECKING:
    import xarray as xr

_MARK = b"\nsha256 "
_TAIL = len(_MARK) + 64
_MOST_DIFFERENCES = 8  # of two configurations, in a sentence


def save(
    dataset: "xr.Dataset",
    path: str | Path,
    *,
    config: Any,
    wall_time: float | None = None,
    origin: Mapping[str, str | int] | None = None,
) -> None:
    """Write a Dataset of numbers, booleans and strings; a kill leaves the old file or the new one.

    ``config`` is a dataclass or a dict of plain values; ``wall_time`` is in seconds; ``origin`` is
    what it is a result of, under names of ``provenance.NAMES``. The file is
    made in memory: where the disk is full or closed to us, it is kept in the folder for temporary
    files, and the OSError says where.
    """
    path = Path(path)
    dataset = _tidy(dataset)
    facts = provenance.facts()
    facts |= {"config": json.dumps(plain(config)), "contents_sha256": contents_sha256(dataset)}
    facts |= origin or {}
    if wall_time is not None:
        facts["wall_time"] = float(wall_time)
    buffer = io.BytesIO()  # HDF5 dies of a segmentation fault where its own disk is full
    dataset.assign_attrs(facts).to_netcdf(buffer, engine="h5netcdf")
    content = buffer.getvalue()
    content += _MARK + hashlib.sha256(content).hexdigest().encode()
    _decode(content, path)  # what cannot be read back is not worth keeping
    try:
        write(path, content)
    except OSError as error:
        rescue = rescued(path, content)
        raise OSError(
            error.errno, f"{path} cannot be written ({error.strerror}); the result lies in {rescue}"
        ) from error


def load(path: str | Path, *, config: Any = None) -> "xr.Dataset":
    """The Dataset as it was saved, in memory; with ``config`` it must be the one of that config.

    Raises ValueError if the file is damaged, or if a key of the config differs.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"no result at {path}: run the experiment first")
    dataset = _decode(path.read_bytes(), path)
    if config is not None:
        changes = differences(json.loads(dataset.attrs["config"]), plain(config))
        if changes:
            raise ValueError(f"{path} is the result of another configuration: {changes}")
    return dataset


def digest(path: str | Path) -> str:
    """sha256 of a saved file; raises ValueError if it is damaged."""
    content = Path(path).read_bytes()
    _body(content, Path(path))
    return hashlib.sha256(content).hexdigest()


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
    """The Config from which a loaded Dataset was computed: fields by name, tuples as lists."""
    return namespace(json.loads(dataset.attrs["config"]))


def namespace(plain_config: dict) -> SimpleNamespace:
    """A plain configuration with its fields by name."""
    text = json.dumps(plain_config)
    return json.loads(text, object_hook=lambda fields: SimpleNamespace(**fields))


def plain(config: Any) -> dict:
    """A configuration as JSON gives it back: tuples and arrays are lists, NumPy's numbers Python's;
    NaN and infinity are refused."""
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


def contents_sha256(dataset: "xr.Dataset") -> str:
    """sha256 of names, dimensions, types, bytes and attributes, without the provenance."""
    total = hashlib.sha256()
    for name in sorted(dataset.variables, key=str):
        variable = dataset.variables[name]
        values = np.asarray(variable.values)
        # Strings count as text: their padding is no part of the contents.
        text = values.dtype.kind == "U"
        kind, attributes = "text" if text else values.dtype.str, _attributes(variable.attrs)
        head = (name, name in dataset.coords, variable.dims, values.shape, kind, attributes)
        total.update(json.dumps(head).encode())
        total.update(json.dumps(values.tolist()).encode() if text else values.tobytes())
    own = {k: v for k, v in dataset.attrs.items() if k not in provenance.NAMES}
    total.update(json.dumps(_attributes(own)).encode())
    return total.hexdigest()


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


def _body(content: bytes, path: Path) -> bytes:
    """The netCDF of a file whose last bytes are a sha256 of all the others."""
    body, tail = content[:-_TAIL], content[-_TAIL:]
    if tail != _MARK + hashlib.sha256(body).hexdigest().encode():
        raise ValueError(
            f"{path} is damaged, cut short or not written by lsa_lab.store.results.save: its "
            f"checksum does not match; restore the file or run the experiment again"
        )
    return body


def _decode(content: bytes, path: Path) -> "xr.Dataset":
    import xarray as xr

    body = _body(content, path)
    try:
        plain_netcdf.check(body)
        with xr.open_dataset(
            io.BytesIO(body), engine="h5netcdf", decode_times=False, decode_timedelta=False
        ) as opened:
            schema = opened.attrs.get("schema", 1)
            if schema == provenance.SCHEMA:
                dataset = _tidy(opened.load()).drop_encoding()
                plain(json.loads(dataset.attrs["config"]))
                saved = dataset.attrs["contents_sha256"]
    except Exception as error:  # whatever else a file with a right checksum may hold
        raise ValueError(f"{path} is no result of lsa_lab: {error!r}; run it again") from None
    if schema != provenance.SCHEMA:
        raise provenance.another_schema(schema, path)
    if saved != contents_sha256(dataset):
        raise ValueError(f"{path}: netCDF does not give the contents back as they were saved")
    return dataset


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


def _attributes(attrs: dict) -> dict:
    """Attributes as netCDF gives them back: NumPy scalars, and lists that may lose their list."""
    out = {}
    for name in sorted(attrs):
        value = attrs[name]
        value = value.tolist() if isinstance(value, np.ndarray | np.generic) else value
        if isinstance(value, list | tuple) and len(value) == 1:
            value = value[0]
        out[name] = value
    return out
