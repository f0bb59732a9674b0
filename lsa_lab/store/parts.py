"""One result of several parts: a main Dataset, and others whose names begin with "part." in it.

The Config of the whole has that of each part as a field of its name. A part taken out is a Dataset
of its own again, with the same bits, and its ``results.config_of`` is the part's.
"""

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import xarray as xr


def join(main: "xr.Dataset", **parts: "xr.Dataset") -> "xr.Dataset":
    """The main Dataset and the others beside it; axes that have the same name stay apart."""
    whole = main
    for name, each in parts.items():
        if each.attrs:
            raise ValueError(f"part {name!r} has attributes, {list(each.attrs)}: make variables")
        renamed = each.rename({own: f"{name}.{own}" for own in {*each.variables, *each.dims}})
        whole = whole.merge(renamed, join="exact", compat="no_conflicts")
    return whole.assign_attrs(main.attrs)


def part(whole: "xr.Dataset", name: str = "") -> "xr.Dataset":
    """A part by its name, or the main Dataset alone; both with the provenance of the whole."""
    kept = [each for each in whole.variables if str(each).rpartition(".")[0] == name]
    chosen = whole[kept]
    if not name:
        return chosen
    own = {each: str(each).removeprefix(f"{name}.") for each in {*chosen.variables, *chosen.dims}}
    facts = dict(whole.attrs)
    if "config" in facts:
        facts["config"] = json.dumps(json.loads(facts["config"])[name])
    chosen = chosen.rename(own)
    chosen.attrs = facts
    return chosen
