"""Every committed result is judged again, and gives the claims that are committed with it."""

import functools
import json
from pathlib import Path

import numpy as np
import pytest

from lsa_lab.lab import catalogue, results
from lsa_lab.lab.run import judge

ROOT = Path(__file__).resolve().parents[2]
EXPERIMENTS = catalogue.find("experiments")
COMPUTED = [name for name, each in EXPERIMENTS.items() if (each.figures / "claims.json").exists()]
WARNINGS = "error,ignore:Error reading persistent compilation cache entry"
PROGRAM = """
import conftest  # the same settings and cache
import numpy as np
import test_committed
assert not np.show_config(mode="dicts")["SIMD Extensions"].get("found")
print(test_committed.judge_all())
"""


@functools.cache
def load(name):
    return results.load(EXPERIMENTS[name].figures)


def judge_all():
    """Return the rows of all committed results as JSON."""
    experiments = {name: EXPERIMENTS[name] for name in COMPUTED}
    return json.dumps({n: judge(each, each.load(), load(n)) for n, each in experiments.items()})


FEW = pytest.param("few instructions", marks=pytest.mark.slow)


@pytest.fixture(scope="module", params=["all instructions", FEW])
def judged(request, python):
    """Rows of all results, also without the processor's wide instructions (AVX2, AVX512)."""
    if request.param == "all instructions":
        return json.loads(judge_all())
    wide = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    if not wide:
        pytest.skip("NumPy has no wider instructions here")
    variables = {"NPY_DISABLE_CPU_FEATURES": " ".join(wide), "PYTHONWARNINGS": WARNINGS}
    ended = python(PROGRAM, timeout=None, **variables)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


@pytest.mark.parametrize("name", COMPUTED)
def test_a_committed_result_has_the_committed_claims(name, judged):
    record, rows = results.load_record(EXPERIMENTS[name].figures), judged[name]
    assert [row["id"] for row in rows] == [row["id"] for row in record["claims"]]
    for row, committed in zip(rows, record["claims"], strict=True):
        numbers = [row.pop(key) for key in ("value", "low", "high")]
        expected = [committed.pop(key) for key in ("value", "low", "high")]
        assert numbers == pytest.approx(expected, rel=1e-9, abs=1e-12)
        assert row == committed


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_nulls_are_claims_or_reasons_and_results_are_of_the_full_tier(name, monkeypatch):
    monkeypatch.chdir(ROOT)
    module = EXPERIMENTS[name].load()
    ids = {claim.id for claim in module.CLAIMS}
    for claim in module.CLAIMS:
        assert claim.null in ids or claim.null.startswith("none: "), claim.id
    if name in COMPUTED:
        result = load(name)
        assert result.attrs["tier"] == "full"
        assert result.attrs["dirty"] == 0
        full = results.plain_config(module.TIERS["full"])
        assert json.loads(result.attrs["config"]) == full
