"""Files of strangers are not unpickled, and a path may hold any character of the system."""

import io
import json
import os
import pickle
import zipfile

import numpy as np
import pytest
import xarray as xr

from experiments.models import runs
from experiments.models.named import tiny
from lsa_lab import interop, lm
from lsa_lab.store import checkpoints, results

SPEC = tiny("depth 3")


class Payload:
    """An object whose unpickling makes a folder."""

    def __reduce__(self):
        return os.mkdir, ("unpickled",)


def pickled_array():
    buffer = io.BytesIO()
    np.save(buffer, np.array([Payload()], object), allow_pickle=True)
    return buffer.getvalue()


def archive(path, **entries):
    with zipfile.ZipFile(path, "w") as file:
        for name, content in entries.items():
            file.writestr(f"{name}.npy", content)


def shards(path, name):
    """A decoder's folder, whose index names a file of weights."""
    path.mkdir()
    gpt2 = {"model_type": "gpt2", "n_layer": 1, "n_head": 1, "n_embd": 4, "n_positions": 4}
    gpt2 |= {"activation_function": "gelu_new", "layer_norm_epsilon": 1e-5, "vocab_size": 4}
    (path / "config.json").write_text(json.dumps(gpt2))
    (path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"x": name}}))
    (path / "x").write_bytes(pickle.dumps(Payload()))


LOADERS = {
    "result": results.load,
    "checkpoint": lambda path: checkpoints.read(path, {}),
    "weights": lambda path: runs.read(path, SPEC),
    "safetensors": interop.from_safetensors,
    "decoder": lm.load,
}


@pytest.mark.parametrize("loader", LOADERS)
def test_nothing_is_unpickled(loader, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plain, arrays, folder = tmp_path / "plain", tmp_path / "arrays.npz", tmp_path / "decoder"
    plain.write_bytes(pickle.dumps(Payload()))
    archive(arrays, spec=pickled_array())
    shards(folder, "x")
    for path in (plain, arrays, folder):
        with pytest.raises((ValueError, FileNotFoundError, OSError)):
            LOADERS[loader](path)
    assert not (tmp_path / "unpickled").exists()
    # Control: what a loader without this care does.
    pickle.loads(plain.read_bytes())
    assert (tmp_path / "unpickled").exists()


@pytest.mark.parametrize("name", ["a b", "é ü 中", "$HOME", "~", "*?", "a'b\"c", "-n", "%s{0}"])
def test_a_path_with_odd_characters_works(name, tmp_path):
    folder = tmp_path / name
    dataset = xr.Dataset({"x": ("run", np.arange(3.0))})
    results.save(dataset, folder / "result.nc", config={"n": 1})
    xr.testing.assert_equal(results.load(folder / "result.nc"), dataset)
    checkpoints.save(folder / f"{name}.ckpt", {"x": np.arange(3)}, {})
    assert checkpoints.read(folder / f"{name}.ckpt", {})["['x']"].tolist() == [0, 1, 2]
    assert sorted(path.name for path in tmp_path.iterdir()) == [name]
