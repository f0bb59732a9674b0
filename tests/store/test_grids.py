"""A grid is computed once, cell by cell, whenever and however often it is stopped."""

import dataclasses
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lsa_lab.store import cells, grids, provenance
from lsa_lab.store.grids import grid


@dataclasses.dataclass(frozen=True)
class Cell:
    layer: int
    modules: tuple[str, ...]
    rate: float | str


CELLS = [Cell(layer, ("mlp",), rate) for layer in range(3) for rate in (0.1, 0.9, "drop")]


def judge(cell):
    rate = 1.0 if cell.rate == "drop" else cell.rate
    rng = np.random.default_rng(cell.layer)
    return {"scores": rng.normal(size=(4, 2)).astype(np.float32) * rate, "size": cell.layer}


def expected(cells=CELLS):
    return {key: np.stack([judge(cell)[key] for cell in cells]) for key in ("scores", "size")}


def same(left, right):
    assert left.keys() == right.keys()
    for key in left:
        assert left[key].dtype == right[key].dtype
        np.testing.assert_array_equal(left[key], right[key])


def test_cells_of_two_classes_with_the_same_fields_are_refused(tmp_path):
    ridge, lasso = (dataclasses.make_dataclass(n, ["penalty"], frozen=True) for n in ("R", "L"))
    with pytest.raises(ValueError, match="cells of R and L are both"):
        grid([ridge(1.0), lasso(1.0)], lambda cell: {"v": 1.0}, tmp_path)


def test_a_cell_is_computed_once_whoever_asks(tmp_path):
    calls, reports = [], []

    def counting(cell):
        calls.append(cell)
        return judge(cell)

    grid([*CELLS[:2], CELLS[0]], counting, tmp_path, progress=lambda *now: reports.append(now))
    assert calls == CELLS[:2]
    assert reports == [(0, 2), (1, 2), (2, 2)]
    reports.clear()
    same(
        grid(CELLS, counting, tmp_path, progress=lambda *now: reports.append(now)),
        expected(),
    )
    same(grid(CELLS[::-1], counting, tmp_path), expected(CELLS[::-1]))
    assert calls == CELLS
    assert reports == [(2, 9), *((n, 9) for n in range(3, 10))]


def test_the_next_cell_is_begun_before_one_that_is_on_its_way_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(grids, "_is_ready", lambda value: False)
    events = []

    def begun(cell):
        events.append("begun")
        return judge(cell)

    def breaking(cell):
        if len(events) == 2:
            raise KeyboardInterrupt
        return begun(cell)

    with pytest.raises(KeyboardInterrupt):
        grid(CELLS[:4], breaking, tmp_path, progress=lambda *now: None)
    assert len(list(tmp_path.glob("*.cell"))) == 2  # what was on its way is kept
    events.clear()
    rows = grid(CELLS[:4], begun, tmp_path, progress=lambda done, _: events.append(done))
    assert events == [2, "begun", "begun", 3, 4]
    same(rows, expected(CELLS[:4]))


def test_devices_share_the_cells(tmp_path):
    place = jax.devices()
    together = threading.Barrier(4)  # passed only when four cells are under way at once

    def met(cell):
        together.wait(timeout=60)
        return judge(cell) | {"own": jnp.zeros(2)}

    rows = grid(CELLS[:8], met, tmp_path, devices=place[:1] * 4)
    same({key: rows[key] for key in ("scores", "size")}, expected(CELLS[:8]))

    def breaking(cell):
        if cell.rate == "drop":
            raise KeyboardInterrupt
        return judge(cell)

    with pytest.raises(KeyboardInterrupt):
        grid(CELLS, breaking, tmp_path / "broken", devices=place[:1] * 2)
    same(grid(CELLS, judge, tmp_path / "broken", devices=place[:1] * 2), expected())


@pytest.fixture
def fours(monkeypatch):
    """Four cells in one file, in place of a hundred."""
    monkeypatch.setattr(cells, "TOGETHER", 4)


def files(folder):
    return sorted(path.suffix for path in folder.iterdir())


def test_cells_that_follow_each_other_come_into_one_file(tmp_path, fours):
    same(grid(CELLS, judge, tmp_path), expected())
    assert files(tmp_path) == [".cell", ".cells", ".cells"]
    calls = []
    same(grid(CELLS, calls.append, tmp_path), expected())
    same(grid(CELLS[3:], calls.append, tmp_path), expected(CELLS[3:]))
    assert not calls
    assert len(files(tmp_path)) == 3
    with pytest.raises(ValueError, match="and this call has b") as caught:
        grid(CELLS, judge, tmp_path, facts={"weights": "b"})
    assert any(str(path) in str(caught.value) for path in tmp_path.iterdir())  # one can delete it
    pack = next(tmp_path.glob("*.cells"))
    pack.write_bytes(pack.read_bytes()[:-3])
    with pytest.raises(ValueError, match="damaged or cut short"):
        grid(CELLS, judge, tmp_path)


def test_cells_of_their_own_files_come_into_one_when_they_are_taken_up(tmp_path, monkeypatch):
    """Those of an older version, and those that a kill left twice."""
    grid(CELLS, judge, tmp_path)
    alone = {path: path.read_bytes() for path in tmp_path.iterdir()}
    monkeypatch.setattr(cells, "TOGETHER", 4)
    same(grid(CELLS, None, tmp_path), expected())
    assert files(tmp_path) == [".cell", ".cells", ".cells"]
    for path, content in alone.items():
        path.write_bytes(content)
    same(grid(CELLS, None, tmp_path), expected())
    assert files(tmp_path) == [".cell", ".cells", ".cells"]


def test_cells_of_another_version_or_weights_and_damaged_ones_are_refused(tmp_path, monkeypatch):
    grid(CELLS, judge, tmp_path, facts={"weights": "a"})
    same(grid(CELLS, None, tmp_path, facts={"weights": "a"}), expected())
    with pytest.raises(ValueError, match="has weights = a, and this call has b"):
        grid(CELLS, judge, tmp_path, facts={"weights": "b"})
    with monkeypatch.context() as other:
        other.setattr(provenance, "version", lambda package: "0.99")
        with pytest.raises(ValueError, match=r"has jax = .*, and this call has 0\.99; jaxlib = "):
            grid(CELLS, judge, tmp_path, facts={"weights": "a"})
    path = next(tmp_path.glob("*.cell"))
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(ValueError, match="damaged or cut short"):
        grid(CELLS, judge, tmp_path, facts={"weights": "a"})


def test_cells_are_known_by_their_values():
    assert grids._words((np.int64(3), np.float64(0.9))) == grids._words((3, 0.9))
    assert grids._words({"a": 1, "b": 2}) == grids._words({"b": 2, "a": 1})
    assert grids._words((3, 0.9)) != grids._words((3, 0.9000000000000001))


@pytest.mark.parametrize(
    ("cells", "returned", "message"),
    [
        ([], {}, "no cells: a grid has at least one"),
        ([1], {"a b": 1.0}, "judge calls its arrays a b: give them plain names"),
        ([float("nan")], {"a": 1.0}, "not JSON compliant"),
    ],
)
def test_what_is_no_grid_is_refused(cells, returned, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        grid(cells, lambda cell: returned, tmp_path)
