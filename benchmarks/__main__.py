"""`make bench`: every workload in its turn, then RESULTS.json and RESULTS.md, which is made of it.

`make bench ONLY=W3` shows one, AGAINST=benchmarks/RESULTS.json names what has become slower since,
ONLY=gpu prints eight numbers of a GPU (`gpu`).
Turns are kept until all are there, so that the same command resumes. Nothing that was measured
on a loaded machine is kept, and without all workloads nothing is written.
"""

import argparse
import hashlib
import json
import sys
import time
from datetime import date
from importlib.metadata import version
from pathlib import Path

from benchmarks import cases, machine, report, turns
from lsa_lab import __version__
from lsa_lab.files import cache_folder, write_file
from lsa_lab.lab import settings
from lsa_lab.lm.sources import SOURCES
from lsa_lab.provenance import find_commit

RESULTS = Path(__file__).with_name("RESULTS.json")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("only", nargs="?", help="the workloads that it names: W1 to W11, waits")
    parser.add_argument("--quick", action="store_true", help="of gpu: at small sizes")
    parser.add_argument("--against", type=Path, help="a RESULTS.json; nothing is written then")
    words = parser.parse_args()
    if words.only == "gpu":
        settings.configure()
        from benchmarks import gpu

        gpu.main(words.quick)
        return
    if words.against and not words.against.is_file():
        parser.error(f"{words.against} is not there: without --against a run writes {RESULTS.name}")
    wanted = cases.choose(words.only)
    before = json.loads(words.against.read_text("utf-8")) if words.against else None
    results, failures = measure(wanted, again=bool(words.only or words.against))
    table = {"head": head(results), "results": results}
    if before:
        lines = report.compare(before, table)
        print(*lines, sep="\n")
        failures += [line for line in lines if line.endswith(report.SLOWER)]
    elif words.only and results:
        print(report.markdown(table))
    elif not failures:
        write_file(RESULTS, json.dumps(table, indent=1).encode())
        write_file(RESULTS.with_suffix(".md"), report.markdown(table).encode())
        file_of_turns().unlink(missing_ok=True)
        print(RESULTS)
    if failures:
        print(*failures, sep="\n", file=sys.stderr)
        raise SystemExit(1)


def measure(wanted: list, again: bool) -> tuple[dict, list[str]]:
    """Results by name, from a file of the same code on the same machine where there is one."""
    file = file_of_turns()
    kept = json.loads(file.read_text("utf-8")) if file.exists() else {}
    results, failures = {}, []
    for case in wanted:
        if case.fetched and not all(place.exists() for place in SOURCES[case.fetched].places):
            print(f"{case.name}: left out, {case.fetched} has not been fetched", flush=True)
            continue
        if not again and case.name in kept:
            results[case.name] = kept[case.name]
            print(f"{case.name}: kept", flush=True)
            continue
        began = time.perf_counter()
        try:
            kept[case.name] = results[case.name] = turns.measure(case)
        except (machine.LoadedError, RuntimeError, ValueError) as error:
            failures.append(f"{case.name}: {error}")
            print(f"{case.name}: not measured, {error}", flush=True)
            continue
        write_file(file, json.dumps(kept).encode())
        print(f"{case.name}: {time.perf_counter() - began:.0f} s", flush=True)
    return results, failures


def file_of_turns() -> Path:
    """By a digest of this source, jax and machine: figures of others are no part of one run."""
    total = hashlib.sha256(json.dumps([machine.facts(), version("jax")]).encode())
    for folder in ("lsa_lab", "benchmarks"):
        for path in sorted((turns.ROOT / folder).rglob("*.py")):
            total.update(path.read_bytes())
    return cache_folder() / "benchmarks" / f"{total.hexdigest()[:16]}.json"


def head(results: dict) -> dict[str, str]:
    versions = {form["versions"] for row in results.values() for form in row["forms"].values()}
    git = find_commit(Path(__file__).parent)
    tree = git.get("commit", "")[:10] + (" with changes" if git.get("dirty") else "")
    return {
        "when": date.today().isoformat(),
        "facts": ", ".join(f"{name} {fact}" for name, fact in machine.facts().items()),
        "versions": ", ".join(sorted(versions)),
        "commit": f"{__version__} {tree}".strip(),
    }


if __name__ == "__main__":
    main()
