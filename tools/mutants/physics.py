"""``make mutants``: changes by hand that make the physics wrong, each against its own tests.

    python -m tools.mutants.physics                      all that are not judged yet
    python -m tools.mutants.physics risk.py "the mask"   those with any of these in file or sentence

Without the change its tests pass, and with it one of them fails; a module that cannot be imported
any more is no kill. A verdict is kept in .cache/mutants until the change, the library or its tests
change. The exit code is 1 if one survives.
"""

import argparse
import functools
import hashlib
import importlib
import json
import os
import sys
from dataclasses import astuple
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

import conftest  # noqa: F401  the environment of the tests, before jax is imported

for name in ("chex", "flax.linen", "optax", "scipy.stats"):  # once for all mutants
    importlib.import_module(name)

from tools.mutants import trials
from tools.mutants.by_hand import ROOT, Change, changes

KEPT = ROOT / ".cache" / "mutants" / "physics.json"
SECONDS = 300  # of a processor, for the tests of a change


def judge(module: Path, source: str, tests: tuple[str, ...]) -> str:
    """Whether a test fails, and which, where a module has this source."""
    names = [ROOT / "tests" / test for test in tests]
    status, text = trials.run_forked(module, source, None, names, SECONDS)
    code = os.waitstatus_to_exitcode(status)
    lines = [line for line in text.splitlines() if line.startswith(("FAILED", "ERROR"))]
    words = (lines or text.splitlines()[-1:] or [""])[0].removeprefix("FAILED tests/")
    return {0: "survived", 1: f"killed by {words}"}.get(code, f"broken ({code}): {words}")


@functools.cache
def failure(tests: tuple[str, ...]) -> str:
    """What is wrong with tests that fail without any change; nothing if they pass."""
    file = Path("lsa_lab", "__init__.py")
    verdict = judge(file, (ROOT / file).read_text("utf-8"), tests)
    return "" if verdict == "survived" else f"broken without the change: {verdict}"


def digest(change: Change) -> str:
    """A digest of the change and of all that its verdict rests on."""
    tests = {ROOT / "tests" / test.partition("::")[0] for test in change.tests}
    whole = hashlib.sha256(repr(astuple(change)).encode())
    for path in [*sorted((ROOT / "lsa_lab").rglob("*.py")), *sorted(tests)]:
        whole.update(path.read_bytes())
    return whole.hexdigest()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("words", nargs="*", help="of a file or a sentence")
    words = parser.parse_args().words
    chosen = [c for c in changes() if not words or any(w in f"{c.file} {c.wrong}" for w in words)]
    verdicts = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    KEPT.parent.mkdir(parents=True, exist_ok=True)
    trials.forget_the_library()
    alive = []
    for number, change in enumerate(chosen, start=1):
        key = digest(change)
        if not verdicts.get(key, "").startswith("killed"):
            source = change.source()
            verdicts[key] = failure(change.tests) or judge(change.module, source, change.tests)
            KEPT.write_text(json.dumps(verdicts, indent=0))
        print(
            f"{number}/{len(chosen)} {change.file}: {change.wrong}\n    {verdicts[key]}", flush=True
        )
        if not verdicts[key].startswith("killed"):
            alive.append(change.wrong)
    print(f"{len(chosen) - len(alive)} of {len(chosen)} killed", *alive, sep="\n")
    return int(bool(alive))


if __name__ == "__main__":
    sys.exit(main())
