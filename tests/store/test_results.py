"""A result comes back as it was saved, or not at all; so do its parts."""

import json
import pickle
import re
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

from lsa_lab.store import parts, results


@dataclass(frozen=True)
class Config:
    n: int = 3
    lengths: tuple[int, ...] = (1, 2)


def dataset(seed=0):
    rng = np.random.default_rng(seed)
    risk = rng.normal(size=(4, 3))
    risk[0, 0] = np.nan
    return xr.Dataset(
        {
            "risk": (("run", "n"), risk, {"units": "seconds"}),
            "ok": ("run", np.arange(4) % 2 == 0),
            "status": ("run", np.array(["level", "diverged at step 3", "", "λ"], object)),
            "from_jax": ("n", jnp.arange(3.0)),
            "small": ("n", np.float32([1, 2, 3])),
            "count": ((), 7),
            "none": ("nothing", np.array([], "U3")),
        },
        {"n": [4, 8, 16], "method": ["ols", "gradient descent"]},
        {"text": "é", "number": 2.5, "list": [3]},
    )


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "toy" / "result.nc"
    results.save(dataset(), file, config=Config(), wall_time=1.5)
    return file


def test_every_kind_of_variable_survives_the_round_trip(path):
    loaded = results.load(path)
    original = dataset()
    assert list(loaded.variables) == list(original.variables)
    for name in original.variables:
        before, after = original[name].values, loaded[name].values
        assert after.dtype.kind == ("U" if before.dtype.kind == "O" else before.dtype.kind)
        np.testing.assert_array_equal(before, after)
        assert original[name].dims == loaded[name].dims
    assert loaded["small"].dtype == np.float32
    assert loaded["risk"].attrs == {"units": "seconds"}
    assert loaded.attrs["text"] == "é"


def test_a_result_tells_where_it_comes_from(path):
    facts = results.load(path).attrs
    assert json.loads(facts["config"]) == {"n": 3, "lengths": [1, 2]}
    assert set(json.loads(facts["versions"])) >= {"jax", "jaxlib", "flax", "numpy", "python"}
    assert facts["precision"] == "float64"
    assert facts["wall_time"] == 1.5
    assert facts["device_count"] >= 1
    assert facts["date"].endswith("+00:00")
    assert results.config_of(results.load(path)).lengths == [1, 2]


def test_a_config_may_hold_numbers_of_numpy_and_nothing_without_a_value(path):
    config = {"n": np.int64(3), "lengths": np.array([1, 2])}
    assert results.plain(config) == {"n": 3, "lengths": [1, 2]}
    with pytest.raises(TypeError, match="is no number, text, list or dict"):
        results.plain({"n": object()})


def test_numbers_in_short_have_four_bytes_and_their_kind():
    assert results.in_short([1.5, np.nan]).dtype == np.float32
    assert results.in_short(np.array([3, 2**20])).tolist() == [3, 2**20]
    kinds = {"float64": "float32", "int64": "int32", "float16": "float16", "bool": "bool"}
    for kind, short in kinds.items():
        assert results.in_short(np.ones(2, kind)).dtype == short
    assert results.in_short(np.array(["a"])).dtype.kind == "U"


@pytest.mark.parametrize("value", [2**31, -(2**31) - 1, 2**40, 1e39, -1e300, 1e-300, -1e-46])
def test_a_number_that_has_no_place_in_four_bytes_is_refused(value):
    kind = "int32" if isinstance(value, int) else "float32"
    with pytest.raises(ValueError, match=f"^a value = {re.escape(str(value))} .* in {kind}: keep"):
        results.in_short(value)
    rows = xr.Dataset({"risk": ("n", np.array([1, value]))})
    with pytest.raises(ValueError, match=f"^risk = {re.escape(str(value))} has no place"):
        rows.map(results.in_short)


def test_control_numbers_that_have_a_place_in_four_bytes_pass():
    whole = [2**31 - 1, -(2**31), 0]
    assert results.in_short(whole).tolist() == whole
    floats = [3e38, -3e38, 1e-38, 1e-44, 0.0, -0.0, np.nan, np.inf, -np.inf]
    np.testing.assert_array_equal(results.in_short(floats), np.float32(floats))
    rows = xr.Dataset({"risk": ("n", np.array(floats)), "name": ("n", ["a"] * len(floats))})
    np.testing.assert_array_equal(rows.map(results.in_short).risk, np.float32(floats))


@pytest.mark.parametrize("content", [b"", b"\x89HDF", pickle.dumps({"a": 1})])
def test_what_save_did_not_write_is_not_read(path, content):
    path.write_bytes(content)
    with pytest.raises(ValueError, match="is no result of lsa_lab"):
        results.load(path)


def test_a_missing_result_says_what_to_do(tmp_path):
    with pytest.raises(FileNotFoundError, match="run the experiment first"):
        results.load(tmp_path / "result.nc")


def test_the_values_in_which_configurations_differ_are_named():
    def differences(saved, here):
        return results.differences(results.plain(saved), results.plain(here))

    assert differences(Config(), {"n": 3, "lengths": (1, 2)}) == ""
    assert differences(Config(), Config(n=4)) == "n = 3 in the file, n = 4 here"
    assert differences({}, {"seed": 0}) == "no seed in the file, seed = 0 here"
    assert differences({}, {f"a{i}": i for i in range(10)}).endswith("; and 2 values more")
    deep = {"models": [["deep", {"task": {"d": 4, "lengths": [8, 16]}, "steps": 10}]]}
    wider = {"models": [("deep", {"task": {"d": 5, "lengths": (8, 16)}, "steps": 10})]}
    assert differences(deep, wider) == (
        "models[deep].task.d = 4 in the file, models[deep].task.d = 5 here"
    )
    other = {"models": [("wide", deep["models"][0][1])]}
    assert "no models[wide].steps in the file" in differences(deep, other)
    assert "models[deep].steps = 10 in the file, no" in differences(deep, {"models": []})


def test_other_netcdf_readers_open_it(path):
    with xr.open_dataset(path, engine="h5netcdf", decode_timedelta=False) as opened:
        np.testing.assert_array_equal(opened["risk"], dataset()["risk"])


@pytest.mark.parametrize(
    "values", [np.array([1j]), np.array([{}], object), jnp.zeros(1, "bfloat16")]
)
def test_what_netcdf_cannot_hold_is_refused_by_name(tmp_path, values):
    with pytest.raises(ValueError, match="variable 'odd' has dtype"):
        results.save(xr.Dataset({"odd": ("x", values)}), tmp_path / "odd.nc", config={})
    assert not list(tmp_path.iterdir())


def test_a_configuration_of_nan_is_refused(tmp_path):
    with pytest.raises(ValueError, match="not JSON compliant"):
        results.save(dataset(), tmp_path / "result.nc", config={"rate": float("nan")})


def datasets():
    main = xr.Dataset({"risk": ("run", [1.0, np.nan])}, {"run": [3, 4]})
    other = xr.Dataset({"risk": (("run", "rate"), np.ones((3, 2)))}, {"rate": ["a", "bc"]})
    return main, other


def test_each_part_of_a_saved_result_has_its_own_contents(tmp_path):
    main, other = datasets()
    config = {"n": 2, "clipped": {"n": 3}}
    results.save(parts.join(main, clipped=other), tmp_path / "result.nc", config=config)
    whole = results.load(tmp_path / "result.nc")
    for name, before in (("", main), ("clipped", other)):
        xr.testing.assert_equal(parts.part(whole, name), before)
    assert results.config_of(parts.part(whole, "clipped")).n == 3
    assert results.config_of(parts.part(whole)).n == 2
    assert json.loads(whole.attrs["config"]) == config


def test_attributes_of_a_part_are_refused():
    main, other = datasets()
    with pytest.raises(ValueError, match=r"'clipped' has attributes, \['unit'\]"):
        parts.join(main, clipped=other.assign_attrs(unit="m"))
