"""Every case of the benchmark at small sizes: its forms return the same numbers."""

import jax
import numpy as np
import pytest

from benchmarks import benchmark


@pytest.mark.slow
@pytest.mark.parametrize("case", benchmark.CASES, ids=lambda case: case.name)
def test_every_form_returns_the_same_numbers(case, monkeypatch):
    monkeypatch.setattr(benchmark, "DTYPE", "float64")
    with jax.numpy_dtype_promotion("standard"):  # as optax in a step of its own needs it
        ours, *others = (jax.tree.leaves(form()) for form in case.build(**case.small).values())
    assert all(np.isfinite(leaf).all() for leaf in ours)
    assert others
    for theirs in others:
        for a, b in zip(theirs, ours, strict=True):
            scale = np.abs(b).max()
            np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-8 * scale)


def test_the_share_of_others_is_what_this_process_did_not_take(monkeypatch):
    monkeypatch.setattr(benchmark, "count_cores", lambda: 2)
    before, after = np.array([100.0, 50.0, 7.0]), np.array([110.0, 64.0, 16.0])
    assert benchmark.share_of_others(before, after) == pytest.approx((14 - 9) / 20)
    assert benchmark.share_of_others(before, after + np.array([0.0, 0.0, 14.0])) == 0


def test_a_loaded_machine_is_refused(monkeypatch):
    case = benchmark.Case(
        "nothing", lambda: {benchmark.OURS: lambda: np.sum(np.ones(1000))}, {}, {}
    )
    monkeypatch.setattr(benchmark, "TURN", 1e-4)
    monkeypatch.setattr(benchmark, "share_of_others", lambda *_: 0.2)
    with pytest.raises(SystemExit, match="took 20% of the cores"):
        benchmark.measure(case)
    monkeypatch.setattr(benchmark, "share_of_others", lambda *_: 0.01)
    (row,) = benchmark.measure(case)
    assert row.startswith("| nothing | ours |")
    assert row.count("|") == 7


def test_times_are_divided_by_the_share_of_the_work(monkeypatch):
    forms = {benchmark.OURS: lambda: 0, benchmark.PLAIN: lambda: 0}
    case = benchmark.Case("half", lambda: forms, {}, {}, shares={benchmark.PLAIN: 0.5})
    monkeypatch.setattr(benchmark, "share_of_others", lambda *_: 0.0)
    monkeypatch.setattr(benchmark, "time_calls", lambda *_: np.array([0.1, 0.2]))
    ours, plain = benchmark.measure(case)
    assert "| 100 (100 to 100) | 200 (200 to 200) |" in ours
    assert "| 200 (200 to 200) | 400 (400 to 400) | 2 (2 to 2) |" in plain
