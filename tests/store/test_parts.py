"""Parts of a result keep their bits, their axes and their configurations."""

import json

import numpy as np
import pytest
import xarray as xr

from lsa_lab.store import parts, results


def datasets():
    main = xr.Dataset({"risk": ("run", [1.0, np.nan])}, {"run": [3, 4]})
    other = xr.Dataset({"risk": (("run", "rate"), np.ones((3, 2)))}, {"rate": ["a", "bc"]})
    return main, other


def test_each_part_of_a_saved_whole_has_the_contents_that_it_had(tmp_path):
    main, other = datasets()
    config = {"n": 2, "clipped": {"n": 3}}
    results.save(parts.join(main, clipped=other), tmp_path / "result.nc", config=config)
    whole = results.load(tmp_path / "result.nc", config=config)
    for name, before in (("", main), ("clipped", other)):
        assert results.contents_sha256(parts.part(whole, name)) == results.contents_sha256(before)
    assert results.config_of(parts.part(whole, "clipped")).n == 3
    assert results.config_of(parts.part(whole)).n == 2
    assert json.loads(whole.attrs["config"]) == config


def test_attributes_of_a_part_are_refused():
    main, other = datasets()
    with pytest.raises(ValueError, match=r"'clipped' has attributes, \['unit'\]"):
        parts.join(main, clipped=other.assign_attrs(unit="m"))
