"""Every committed result is judged again, and gives the claims that are committed with it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from lsa_lab.lab import catalogue, results

ROOT = Path(__file__).resolve().parents[2]
EXPERIMENTS = catalogue.find("experiments")
COMPUTED = [name for name, each in EXPERIMENTS.items() if (each.figures / "claims.json").exists()]
JUDGE = """
import json, sys
import numpy as np
from lsa_lab.lab import catalogue, results, settings
from lsa_lab.lab.run import judge

settings.configure()
experiments = catalogue.find("experiments")
rows = {}
for name in sys.argv[1:]:
    experiment = experiments[name]
    rows[name] = judge(experiment, experiment.load(), results.load(experiment.figures))
print(json.dumps({"features": np.show_config(mode="dicts")["SIMD Extensions"], "rows": rows}))
"""


def judge_all(**environment):
    """Judge all committed results in a new process; return its features of NumPy and the rows."""
    left = subprocess.run(
        [sys.executable, "-W", "error", "-c", JUDGE, *COMPUTED],
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
    )
    assert left.returncode == 0, left.stderr
    return json.loads(left.stdout)


@pytest.fixture(scope="module", params=["all instructions", "few instructions"])
def judged(request):
    """Rows of all results, also without the processor's wide instructions (AVX2, AVX512)."""
    if request.param == "all instructions":
        return judge_all()["rows"]
    wide = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    if not wide:
        pytest.skip("NumPy has no wider instructions here")
    answer = judge_all(NPY_DISABLE_CPU_FEATURES=" ".join(wide))
    assert not answer["features"].get("found")
    return answer["rows"]


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
def test_nulls_are_claims_or_reasons(name):
    claims = {claim.id: claim for claim in EXPERIMENTS[name].load().CLAIMS}
    for claim in claims.values():
        assert claim.null in claims or claim.null.startswith("none: "), claim.id


@pytest.mark.parametrize("name", COMPUTED)
def test_a_committed_result_is_of_the_full_tier(name, monkeypatch):
    monkeypatch.chdir(ROOT)
    experiment = EXPERIMENTS[name]
    result = results.load(experiment.figures)
    assert result.attrs["tier"] == "full"
    assert result.attrs["dirty"] == 0
    full = results.plain_config(experiment.load().TIERS["full"])
    assert json.loads(result.attrs["config"]) == full
