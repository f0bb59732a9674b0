"""One statistics: every printed confidence comes from `CONFIDENCE`, and a verdict remembers its."""

import subprocess
import sys
from pathlib import Path

from lsa_lab.harness.run import records
from lsa_lab.harness.run.laboratory import experiments_of
from lsa_lab.judging import statistics

ROOT = Path(__file__).resolve().parents[2]
FIGURES = ROOT / "figures"

# In a process of its own, for captions and keys are put together when a module is imported.
CAPTIONS = """
import shutil, sys
from pathlib import Path
from lsa_lab.store import results
from lsa_lab.judging import statistics
statistics.CONFIDENCE = 0.9
from lsa_lab.harness.report import gallery, pages, report
from lsa_lab.harness.run.laboratory import experiments_of

names = ("clipping_curves", "depth", "flow_factors", "published_logs")
experiments = {name: experiments_of("experiments")[name] for name in names}
root = Path(sys.argv[1])
for name in names:  # redrawn there, for its picture has intervals of another confidence
    shutil.copytree(Path("figures") / name, root / name)
whole, broken = report.collect(experiments.values(), root)
assert not broken, broken
about = gallery.about("experiments", Path("CITATION.cff"))
for result in whole:
    print(pages.page(result, about))
whole = report.largest(whole)
levels = report.levels_of("experiments", whole)
print(pages.ledger(whole, broken, levels))
print(*gallery.pages(root, whole, broken, levels, {}, about).values())
"""


def test_no_page_says_another_confidence_than_the_one_that_judges(tmp_path):
    words = [sys.executable, "-c", CAPTIONS, str(tmp_path)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.count("90 %") > 10
    stale = [line for line in done.stdout.splitlines() if "95 %" in line or "95%" in line]
    assert stale == []


def test_a_record_of_another_confidence_or_method_is_not_current(monkeypatch):
    experiment = experiments_of("experiments")["clipping_curves"]
    facts = records.last_run(FIGURES / "clipping_curves")
    assert facts["confidence"] == statistics.CONFIDENCE
    assert records.is_current(experiment, facts)
    with monkeypatch.context() as patched:
        patched.setattr(statistics, "CONFIDENCE", 0.99)
        assert not records.is_current(experiment, facts)
    monkeypatch.setitem(records.METHODS, "median", "the bootstrap")
    assert not records.is_current(experiment, facts)
