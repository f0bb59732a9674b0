"""``make mutants``: small changes of the library's source, each of which some test must notice.

``python -m tools.mutants.sample --sample 300`` tries so many, at random in every module, and goes
on where it was ended; without, all. The session is cosmic-ray's, for its ``cr-html`` as well.
``--again`` tries once more those that survived and match, ``--show`` prints them.
"""

import argparse
import importlib
import os
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from fnmatch import fnmatch
from math import sqrt
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

import conftest  # noqa: F401  the environment of the tests, before jax is imported

# Once for all mutants, what the library and its tests import.
SLOW = ("chex", "diffrax", "flax.linen", "optax", "scipy.stats", "sklearn.linear_model", "xarray")
for name in SLOW:
    importlib.import_module(name)

import pytest
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator
from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import TestOutcome, WorkerOutcome, WorkItem, WorkResult

from tools.mutants import enumeration, trials

SESSION = trials.ROOT / ".cache" / "mutants" / "sample.sqlite"


def wilson(hits: int, count: int, z: float = 1.96) -> tuple[float, float]:
    """Wilson's interval of a share."""
    share, weight = hits / count, z * z / count
    centre = (share + weight / 2) / (1 + weight)
    half = z / (1 + weight) * sqrt(share * (1 - share) / count + weight / 4 / count)
    return centre - half, centre + half


def try_mutant(item: WorkItem, tests: trials.Tests, files: int, seconds: float) -> WorkResult:
    """A mutant's verdict, what gave it, and the line that is changed."""
    spec = item.mutations[0]
    source = (trials.ROOT / spec.module_path).read_text("utf-8")
    change = mutate_code(source, get_operator(spec.operator_name)(), spec.occurrence)
    near = tests.nearest(spec.module_path, spec.definition_name)[:files]
    killed, words = trials.try_near(spec.module_path, change, spec.definition_name, near, seconds)
    rows = enumerate(zip(source.splitlines(), change.splitlines(), strict=False), 1)
    lines = [f"{n}\n- {old.strip()}\n+ {new.strip()}" for n, (old, new) in rows if old != new]
    verdict = TestOutcome.KILLED if killed else TestOutcome.SURVIVED
    return WorkResult(WorkerOutcome.NORMAL, words, verdict, lines[0] if lines else "")


def run(session: WorkDB, sample: list[WorkItem], options: argparse.Namespace) -> None:
    """Try the mutants of the sample that have no verdict, and survivors that are to be again."""
    stored = {item.job_id for item in session.work_items}
    session.add_work_items([item for item in sample if item.job_id not in stored])
    results, tests = dict(session.results), trials.Tests()
    trials.forget_the_library()
    for number, item in enumerate(sample, 1):
        result, again = results.get(item.job_id), fnmatch(item.job_id, options.again)
        if result and not (again and result.test_outcome == TestOutcome.SURVIVED):
            continue
        began = time.monotonic()
        result = try_mutant(item, tests, options.files, options.seconds)
        session.set_result(item.job_id, result)
        words = f"{item.job_id} {time.monotonic() - began:.0f} s: {result.output[:120]}"
        print(f"{number}/{len(sample)} {result.test_outcome.value} {words}", flush=True)


def run_controls(results: Iterable[WorkResult]) -> int:
    """Run the tests that failed without any mutant: a test that fails anyway kills none."""
    failed = [r.output for r in results if r.output.startswith("FAILED ")]
    names = {words.removeprefix("FAILED ").partition(" - ")[0] for words in failed}
    return pytest.main([*trials.WORDS, "-W", trials.IMPORTED, *sorted(names)])


def report(session: WorkDB, items: list[WorkItem], show: str) -> None:
    """Print the share of what was tried that was killed, by module, with Wilson's interval."""
    results, counts = dict(session.results), defaultdict(Counter)
    for item in items:
        if not (result := results.get(item.job_id)):
            continue
        verdict = "timeout" if result.output == "timeout" else result.test_outcome.value
        counts[str(item.mutations[0].module_path)][verdict] += 1
        if verdict == "survived" and fnmatch(item.job_id, show):
            print(f"{item.job_id}\n{result.diff}\n{result.output}\n")
    for path, count in sorted(counts.items()):
        print(f"{count.total() - count['survived']:5} of {count.total():4} {path}")
    count = sum(counts.values(), Counter())
    tried, killed = count.total(), count.total() - count["survived"]
    low, high = wilson(killed, tried)
    print(
        f"{len(items)} mutants, {tried} tried: {killed} killed, {count['timeout']} by the clock, "
        f"{count['survived']} survived; {killed / tried:.1%}, 95 % in {low:.1%} to {high:.1%}"
    )


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, help="mutants; all, if not given")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--files", type=int, default=12, help="of tests for one mutant, at most")
    parser.add_argument("--seconds", type=float, default=15.0, help="after which no test begins")
    parser.add_argument("--session", type=Path, default=SESSION)
    parser.add_argument("--again", default="", metavar="PATTERN", help="survivors, '*' for all")
    parser.add_argument("--show", default="", metavar="PATTERN", help="survivors; nothing is run")
    options = parser.parse_args(words)
    os.chdir(trials.ROOT)
    options.session.parent.mkdir(parents=True, exist_ok=True)
    sources = {path: path.read_text("utf-8") for path in enumeration.modules()}
    items = [item for path in sources for item in enumeration.mutants(path, sources[path])]
    sample = enumeration.shuffle(items, options.seed)[: options.sample]
    with use_db(options.session) as session:
        if not options.show:
            run(session, sample, options)
        report(session, items, options.show)
        return 0 if options.show else run_controls(dict(session.results).values())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
