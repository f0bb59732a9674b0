"""Files of every version are read as they were written, or refused in a sentence that says what to
do. Where a file is laid out anew, a folder of the version before stays here."""

import hashlib
import json
import shutil
from pathlib import Path

import h5py
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import every_kind
from experiments.models import runs
from lsa_lab import __version__, training
from lsa_lab.harness.refusal import RefusalError
from lsa_lab.harness.run import records
from lsa_lab.store import checkpoints, grids, results

HERE = Path(__file__).parent
VERSIONS = sorted(path.name for path in HERE.iterdir() if (path / "result.nc").exists())
FUTURE = f"has schema 2, and lsa_lab {__version__} reads schema 1: install the version that wrote"


@pytest.fixture(params=VERSIONS)
def folder(request):
    return HERE / request.param


def test_there_are_files_of_every_version():
    assert {"0.1.0", __version__} <= set(VERSIONS)


def test_an_old_result_is_read_as_it_was_saved(folder):
    dataset = results.load(folder / "result.nc", config=every_kind.CONFIG)
    expected = every_kind.dataset()
    assert dataset.drop_attrs().identical(expected.drop_attrs())
    assert dataset.attrs["rate"] == 0.5
    assert folder.name.startswith(json.loads(dataset.attrs["versions"])["lsa_lab"])


def test_an_old_record_is_read(folder):
    record = records.last_run(folder)
    assert record["experiment"] == "order"
    assert "holds" in record["verdicts"].values()


def test_an_old_checkpoint_is_read(folder):
    facts, leaves = checkpoints.unpacked((folder / "fit.ckpt").read_bytes(), "fit.ckpt")
    assert facts["identity"] == "old files"
    np.testing.assert_array_equal(leaves[".state.params"], [2.625, 2.625])
    np.testing.assert_array_equal(leaves[".history['loss']"], [[9, 2.25, 0.5625]] * 2)


def test_a_checkpoint_of_another_version_of_jax_or_the_library_resumes_none(tmp_path):
    path = Path(shutil.copy(HERE / "0.1.0" / "fit.ckpt", tmp_path))
    trained = training.Training(
        lambda w, batch: (w - batch) ** 2, lambda key: jnp.asarray(3.0), optax.sgd(0.25), 3
    )
    keys = jax.random.split(jax.random.key(0), 2)
    files = training.Files(path, identity="old files")
    with pytest.raises(ValueError, match=r"loss = nothing, .*: delete the file or restore the arg"):
        training.fit(trained, jnp.zeros(2), keys, files=files)


def test_old_cells_are_not_computed_again(tmp_path):
    """They rest on the kind of device and the version of jax: a change of these is named."""
    for folder in (HERE / name for name in VERSIONS if (HERE / name / "grid").exists()):
        store = _cells(folder / "grid")
        assert len(store) == 3
        for content in store:
            facts, leaves = checkpoints.unpacked(content, "cell")
            assert facts["weights"] == "a"
            expected = every_kind.row(json.loads(facts["cell"]))["row"]
            np.testing.assert_array_equal(leaves["['row']"], expected)
    before = shutil.copytree(HERE / "0.2.0.dev457" / "grid", tmp_path / "grid")
    with pytest.raises(ValueError, match="has jax = nothing, and this call has"):
        grids.grid([("cell", 1)], every_kind.row, before, facts=every_kind.FACTS)


def _cells(folder: Path) -> list[bytes]:
    contents = [path.read_bytes() for path in folder.glob("*.cell")]
    for path in folder.glob("*.cells"):
        _, leaves = checkpoints.unpacked(path.read_bytes(), path)
        contents += [leaf.tobytes() for leaf in leaves.values()]
    return contents


@pytest.mark.parametrize("version", [name for name in VERSIONS if name != "0.1.0"])
def test_old_weights_are_read_as_they_were_written(version):
    read = runs.read(HERE / version / "weights.npz", every_kind.SPEC)
    seeds = every_kind.SPEC.training.seeds
    jax.tree.map(np.testing.assert_array_equal, read.params, every_kind.eighths((1, seeds)))
    every = every_kind.eighths((seeds, 2))
    kept = [part - 1 for part in read.parts]
    expected = jax.tree.map(lambda leaf: leaf[:, kept], every)
    jax.tree.map(np.testing.assert_array_equal, read.checkpoints, expected)
    np.testing.assert_array_equal(read.loss, np.arange(8.0).reshape(1, 2, 4))


def test_weights_from_before_there_were_specs_are_refused_by_their_schema():
    with pytest.raises(ValueError, match=r"weights.npz has schema 0, .* install the version that"):
        runs.read(HERE / "0.1.0" / "weights.npz", every_kind.SPEC)


def test_what_this_version_writes_is_what_lies_here(tmp_path):
    """Else a folder of the released version stays, and the new one is added beside it."""
    every_kind.write(tmp_path)
    here = HERE / __version__
    names = {path.relative_to(here) for path in here.rglob("*") if path.is_file()}
    assert names == {path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file()}
    arrays = [checkpoints.unpacked((x / "fit.ckpt").read_bytes(), x)[1] for x in (here, tmp_path)]
    assert set(arrays[0]) == set(arrays[1])


# Controls: files of a later schema are refused by its number.


def test_control_a_checkpoint_of_a_later_schema_is_refused(tmp_path):
    content = (HERE / __version__ / "fit.ckpt").read_bytes()[checkpoints._DIGEST :]
    length = int.from_bytes(content[: checkpoints._LENGTH], "little")
    end = checkpoints._LENGTH + length
    header = json.dumps({"schema": 2} | json.loads(content[checkpoints._LENGTH : end])).encode()
    _refuses_checkpoint(tmp_path / "fit.ckpt", header, content[end:])
    _refuses_checkpoint(tmp_path / "fit.ckpt", b'{"schema": 2, "of": "a later version"}', b"")


def _refuses_checkpoint(path: Path, header: bytes, rest: bytes) -> None:
    body = len(header).to_bytes(checkpoints._LENGTH, "little") + header + rest
    path.write_bytes(hashlib.sha256(body).digest() + body)
    with pytest.raises(ValueError, match=FUTURE):
        checkpoints.read(path, {})


def test_control_a_result_of_a_later_schema_is_refused(tmp_path):
    path = Path(shutil.copy(HERE / __version__ / "result.nc", tmp_path))
    path.write_bytes(path.read_bytes()[: -results._TAIL])
    with h5py.File(path, "r+") as file:
        file.attrs["schema"] = 2
    body = path.read_bytes()
    path.write_bytes(body + results._MARK + hashlib.sha256(body).hexdigest().encode())
    with pytest.raises(ValueError, match=FUTURE):
        results.load(path)


def test_control_weights_and_records_of_a_later_schema_are_refused(tmp_path):
    with np.load(HERE / __version__ / "weights.npz") as stored:
        np.savez(tmp_path / "weights.npz", schema=np.array(2), **stored)
    with pytest.raises(ValueError, match=FUTURE):
        runs.read(tmp_path / "weights.npz", every_kind.SPEC)
    record = records.last_run(HERE / __version__)
    records.write(tmp_path, record | {"schema": 2})
    with pytest.raises(RefusalError, match=FUTURE):
        records.last_run(tmp_path)
