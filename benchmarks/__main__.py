"""`make bench`: every workload in its turn, then RESULTS.md; `make bench ONLY=W3` shows one.

A workload's turns are kept until all are there, so that the same words go on after an end. Nothing
that was measured on a loaded machine is kept, and without all workloads nothing is written.
"""

import argparse
import hashlib
import json
import sys
import time
from datetime import date
from pathlib import Path

from benchmarks import cases, machine, report, turns
from lsa_lab import __version__
from lsa_lab.store import safe_files
from lsa_lab.store.cache import cache
from lsa_lab.store.provenance import commit

RESULTS = Path(__file__).with_name("RESULTS.md")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("only", nargs="?", help="the workloads that it names: W1 to W11")
    parser.add_argument("--torch", default=sys.executable, help="a Python that has torch")
    words = parser.parse_args()
    wanted = cases.choose(words.only)
    results, failures = measure(wanted, words.torch, again=bool(words.only))
    if words.only and results:
        print(page([case for case in wanted if case.name in results], results))
    elif not failures:
        safe_files.write(RESULTS, page(wanted, results).encode())
        for case in wanted:
            result_file(case).unlink(missing_ok=True)
        print(RESULTS)
    if failures:
        print(*failures, sep="\n", file=sys.stderr)
        raise SystemExit(1)


def measure(wanted: list, torch: str, again: bool) -> tuple[dict, list[str]]:
    """Results by name, from files of the same code on the same machine where there are any."""
    results, failures, identity = {}, [], identity_of(torch)
    for case in wanted:
        if not again and (row := restore(case, identity)):
            results[case.name] = row
            print(f"{case.name}: kept", flush=True)
            continue
        began = time.perf_counter()
        try:
            row = turns.measure(case, torch)
        except (machine.LoadedError, RuntimeError, ValueError) as error:
            failures.append(f"{case.name}: {error}")
            print(f"{case.name}: not measured, {error}", flush=True)
            continue
        safe_files.write(result_file(case), json.dumps(row | {"identity": identity}).encode())
        results[case.name] = row
        print(f"{case.name}: {time.perf_counter() - began:.0f} s", flush=True)
    return results, failures


def restore(case: cases.Case, identity: str) -> dict | None:
    try:
        row = json.loads(result_file(case).read_text())
    except (OSError, ValueError):
        return None
    return row if row.get("identity") == identity else None


def result_file(case: cases.Case) -> Path:
    return cache() / "benchmarks" / f"{case.name.replace(', ', '_').replace(' ', '')}.json"


def identity_of(torch: str) -> str:
    """A digest of this source and this machine: figures of others are no part of one run."""
    total = hashlib.sha256(json.dumps([machine.facts(), torch]).encode())
    for folder in ("lsa_lab", "benchmarks"):
        for path in sorted((turns.ROOT / folder).rglob("*.py")):
            total.update(path.read_bytes())
    return total.hexdigest()


def page(wanted: list, results: dict) -> str:
    versions = {form["versions"] for row in results.values() for form in row["forms"].values()}
    git = commit()
    tree = git.get("git_commit", "")[:10] + (" with changes" if git.get("git_dirty") else "")
    head = {
        "when": date.today().isoformat(),
        "facts": ", ".join(f"{name} {fact}" for name, fact in machine.facts().items()),
        "versions": ", ".join(sorted(versions)),
        "commit": f"{__version__} {tree}".strip(),
    }
    return report.markdown(wanted, results, head)


if __name__ == "__main__":
    main()
