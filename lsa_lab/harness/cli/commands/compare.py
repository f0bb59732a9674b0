"""``compare``: two results, key by key, verdict by verdict, array by array; or all results of an
experiment, such as those of several models, side by side."""

import argparse
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsa_lab.harness.cli import terminal
from lsa_lab.harness.refusal import RefusalError, refused
from lsa_lab.harness.run import records
from lsa_lab.harness.run.folders import FIGURES
from lsa_lab.harness.run.outcomes import number

ROUNDING = 1e-6  # relative: what other orders of summation make of these results

if TYPE_CHECKING:
    import xarray as xr


def obey(options: argparse.Namespace) -> int:
    """Each result is a folder that holds result.nc, or its name under the folder of results, such
    as depth or depth/paper. What differs is listed, beside how much there is. Of one name all
    results of that experiment are listed, the tiers and those of changed configurations, such as
    other models': a row for each claim, a column for each result."""
    if options.unknown or len(options.names) not in (1, 2):
        raise RefusalError("compare needs two results, or an experiment: compare depth depth/paper")
    if len(options.names) == 1:
        return _side_by_side(_folder_of(options.names[0], options.out or FIGURES))
    from lsa_lab.store import results

    folders = [_folder_of(name, options.out or FIGURES) for name in options.names]
    datasets = [_load(folder / "result.nc") for folder in folders]
    configs = [dict(results.named_values(json.loads(each.attrs["config"]))) for each in datasets]
    verdicts = [(records.last_run(folder) or {}).get("verdicts", {}) for folder in folders]
    if not all(verdicts):  # a cell of a sweep has no record of its own
        verdicts = [{}, {}]
    arrays = {name: _apart(name, *datasets)[1] for each in datasets for name in each.variables}
    tables: dict[str, tuple[int, dict]] = {
        "keys": (len(configs[0] | configs[1]), _differences(*configs)),
        "verdicts": (len(verdicts[0] | verdicts[1]), _differences(*verdicts)),
        "arrays": (len(arrays), {name: (words,) for name, words in arrays.items() if words}),
    }
    for title, (count, rows) in tables.items():
        print(terminal.bold(f"{title}: {len(rows)} of {count} differ"))
        for line in terminal.table([(f"  {name}", *row) for name, row in rows.items()]):
            print(line)
    return 0


def _side_by_side(top: Path) -> int:
    """The values and verdicts of every result in a folder, by claim."""
    from lsa_lab.harness.run.laboratory import experiments_of
    from lsa_lab.judging.claims import evidence, judge

    names, table = [""], dict[str, list[str]]()
    for file in sorted(top.rglob("result.nc"), key=lambda file: (len(file.parts), file)):
        if not (file.parent / "config.json").exists():  # a cell of a sweep
            continue
        dataset = _load(file)
        origin = dataset.attrs.get("package", "experiments"), dataset.attrs.get("experiment")
        experiment = experiments_of(origin[0])[origin[1] or top.name]
        names.append(str(file.parent.relative_to(top.parent)))
        for claim in judge(*evidence(experiment.door("claims"), dataset)):
            row = table.setdefault(claim.id, [claim.id])
            row += [""] * (len(names) - 1 - len(row)) + [f"{number(claim.value)} {claim.verdict}"]
    print(*(f"{place}: {name}" for place, name in enumerate(names) if name), sep="\n")
    rows = [["claim", *map(str, range(1, len(names)))], *table.values()]
    whole = [[*row, *[""] * (len(names) - len(row))] for row in rows]
    print(*terminal.table(whole), sep="\n")
    return 0


def is_of_this_commit(folder: Path) -> bool:
    """Whether the result there was computed by the code as it is committed now."""
    from lsa_lab.store import provenance, results

    facts = provenance.commit()
    try:
        of = results.load(folder / "result.nc").attrs
    except (FileNotFoundError, ValueError):
        return False
    is_clean = not facts.get("git_dirty") and not of.get("git_dirty")
    return is_clean and "git_commit" in facts and of.get("git_commit") == facts["git_commit"]


def reproduction(new: Path, old: Path) -> str:
    """How a result stands to the committed one: bits, the largest relative difference of an array,
    and the verdicts that moved."""
    from lsa_lab.store import results

    if not (old / "result.nc").exists():
        return "none is committed"
    first, second = (results.load(folder / "result.nc") for folder in (old, new))
    before, now = ((records.last_run(folder) or {}).get("verdicts", {}) for folder in (old, new))
    moved = [f"{key} {a}, now {b}" for key, (a, b) in _differences(before, now).items()]
    words = "" if not moved else f"; verdicts that moved: {'; '.join(moved)}"
    if first.attrs["contents_sha256"] == second.attrs["contents_sha256"]:
        return f"the same to the bit{words}"
    names = {*first.variables, *second.variables}
    largest, name = max((_apart(name, first, second)[0], str(name)) for name in names)
    if largest <= ROUNDING:
        return f"the same within rounding, largest relative difference {largest:.2g}{words}"
    return f"differs, by {largest:.2g} of its size in {name}{words}"


def _load(file: Path) -> "xr.Dataset":
    from lsa_lab.store import results

    with refused(ValueError):
        return results.load(file)


def _folder_of(name: str, root: Path) -> Path:
    for folder in (Path(name), root / name):
        if (folder / "result.nc").is_file():
            return folder
    raise RefusalError(f"no result.nc in {name} or {root / name}: name the folder of a result")


def _differences(first: dict[str, Any], second: dict[str, Any]) -> dict[Any, tuple[str, ...]]:
    """{name: (its value in the first, in the second)} where they are not the same."""
    names = [name for name in first | second if first.get(name, ...) != second.get(name, ...)]
    return {n: tuple(str(each.get(n, "is not there")) for each in (first, second)) for n in names}


def _apart(name: Any, first: "xr.Dataset", second: "xr.Dataset") -> tuple[float, str]:
    """The largest relative difference of an array's numbers, infinite where one result has no such
    array, or a number where the other has none; and what differs, empty where no bit does."""
    import numpy as np

    a, b = (each.variables.get(name) for each in (first, second))
    if a is None or b is None:
        return math.inf, f"only in the {'second' if a is None else 'first'}"
    if a.dims != b.dims or a.shape != b.shape:
        return math.inf, f"{dict(a.sizes)} and {dict(b.sizes)}"
    x, y = a.values, b.values
    if x.dtype.kind not in "fiu" or y.dtype.kind not in "fiu":
        count = int((x != y).sum())
        return (math.inf, f"{count} of {x.size} entries") if count else (0.0, "")
    if not np.array_equal(np.isfinite(x), np.isfinite(y)):
        return math.inf, "not finite in one alone"
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios = np.abs(x - y) / np.maximum(np.abs(x), np.abs(y))
    most = float(np.nanmax(np.where(x == y, 0, ratios), initial=0))
    return most, f"largest relative difference {most:.2g}" if most else ""
