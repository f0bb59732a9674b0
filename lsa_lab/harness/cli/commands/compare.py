"""``compare``: two results, key by key, verdict by verdict, array by array."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsa_lab.harness.cli import terminal
from lsa_lab.harness.refusal import RefusalError
from lsa_lab.harness.run import records
from lsa_lab.harness.run.folders import FIGURES

if TYPE_CHECKING:
    import xarray as xr


def obey(options: argparse.Namespace) -> int:
    """Each result is a folder that holds result.nc, or its name under the folder of results, such
    as depth or depth/paper. What differs is listed, beside how much there is."""
    if options.unknown or len(options.names) != 2:
        raise RefusalError("compare needs two results: compare depth depth/paper")
    from lsa_lab.store import results

    folders = [_folder_of(name, options.out or FIGURES) for name in options.names]
    try:
        datasets = [results.load(folder / "result.nc") for folder in folders]
    except ValueError as error:
        raise RefusalError(str(error)) from None
    configs = [dict(results.named_values(json.loads(each.attrs["config"]))) for each in datasets]
    verdicts = [(records.last_run(folder) or {}).get("verdicts", {}) for folder in folders]
    if not all(verdicts):  # a cell of a sweep has no record of its own
        verdicts = [{}, {}]
    arrays = {name: _apart(name, *datasets) for each in datasets for name in each.variables}
    tables: dict[str, tuple[int, dict]] = {
        "keys": (len(configs[0] | configs[1]), _differences(*configs)),
        "verdicts": (len(verdicts[0] | verdicts[1]), _differences(*verdicts)),
        "arrays": (len(arrays), {name: row for name, row in arrays.items() if row}),
    }
    for title, (count, rows) in tables.items():
        print(terminal.bold(f"{title}: {len(rows)} of {count} differ"))
        lines = terminal.columns([(f"  {name}", *row) for name, row in rows.items()])
        print("".join(f"{line}\n" for row in lines for line in row), end="")
    return 0


def _folder_of(name: str, root: Path) -> Path:
    for folder in (Path(name), root / name):
        if (folder / "result.nc").is_file():
            return folder
    raise RefusalError(f"no result.nc in {name} or {root / name}: name the folder of a result")


def _differences(first: dict[str, Any], second: dict[str, Any]) -> dict[Any, tuple[str, ...]]:
    """{name: (its value in the first, in the second)} where they are not the same."""
    names = [name for name in first | second if first.get(name, ...) != second.get(name, ...)]
    return {n: tuple(str(each.get(n, "is not there")) for each in (first, second)) for n in names}


def _apart(name: Any, first: "xr.Dataset", second: "xr.Dataset") -> tuple[str, ...]:
    """How an array of one differs from that of the other; nothing where all bits are the same."""
    import numpy as np

    if name not in first.variables or name not in second.variables:
        return (f"only in the {'first' if name in first.variables else 'second'}",)
    a, b = (each.variables[name] for each in (first, second))
    if a.dims != b.dims or a.shape != b.shape:
        return (f"{dict(a.sizes)} and {dict(b.sizes)}",)
    x, y = a.values, b.values
    if x.dtype.kind not in "fiu" or y.dtype.kind not in "fiu":
        count = int(np.sum(x != y))
        return (f"{count} of {x.size} entries",) if count else ()
    unlike = np.isfinite(x) != np.isfinite(y)
    with np.errstate(invalid="ignore", divide="ignore"):
        far = np.abs(x - y) / np.maximum(np.abs(x), np.abs(y))
    most = np.nanmax(np.where(x == y, 0, far), initial=0)
    if not most and not unlike.any():
        return ()
    words = f"largest relative difference {most:.2g}"
    return (words + (f", {unlike.sum()} finite in one alone" if unlike.any() else ""),)
