"""One mutant against the tests nearest to it, in a process forked after the slow imports.

The mutant is what the child imports in place of the file: nothing is written into the repository,
and a run that is killed leaves nothing to mend. The parent has neither imported the library nor
begun to compute, so that it has one thread and forking is safe.
"""

import importlib.machinery
import importlib.util
import inspect
import os
import re
import resource
import signal
import sys
import tempfile
import time
from pathlib import Path
from types import CodeType

import hypothesis
import pytest

import touched

ROOT = touched.ROOT
# A test that fails shrinks nothing: that it fails is enough.
hypothesis.settings.register_profile(
    "mutants",
    max_examples=20,
    deadline=None,
    derandomize=True,
    phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
)
WORDS = ("-q", "-x", "-m", "not slow", "-p", "no:cacheprovider", "--hypothesis-profile=mutants")
IMPORTED = "ignore::pytest.PytestAssertRewriteWarning"  # plugins, before pytest could rewrite them
MEMORY = 8 << 30  # addresses, of which XLA reserves more than it fills
FIRST = 4  # files of tests; to collect many takes longer than to be noticed by few
# Tests of programs and pages run for long and see little of one line.
FAR = ("harness", "chaos", "mutants", "notebooks", "explorer", "browser")


class Mutant(importlib.machinery.SourceFileLoader):
    """Imports a module's mutant in place of its file."""

    def __init__(self, path: Path, source: str, root: Path = ROOT):
        super().__init__(touched.module_of(path, root), str(path))
        self.source = source

    def find_spec(self, name: str, *_: object) -> importlib.machinery.ModuleSpec | None:
        if name != self.name:
            return None
        path = Path(self.path)
        inside = [str(path.parent)] if path.name == "__init__.py" else None
        return importlib.util.spec_from_file_location(
            name, path, loader=self, submodule_search_locations=inside
        )

    def get_code(self, _: str) -> CodeType:
        return compile(self.source, self.path, "exec", dont_inherit=True)


class Nearest:
    """The plugin: tests that name the function in which the mutant lies are first, and none begins
    later than at this time of the process."""

    def __init__(self, name: str | None, until: float):
        self.name, self.until = name, until

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items.sort(key=lambda item: not says(self.name, inspect.getsource(item.obj)))

    def pytest_runtest_setup(self) -> None:
        if time.process_time() > self.until:
            pytest.skip("farther than the time reaches")


def says(name: str | None, text: str) -> bool:
    """Whether a text names a function; a private one is named nowhere."""
    return bool(name) and name[0] != "_" and bool(re.search(rf"\b{name}\b", text))


class Tests:
    """Which files of tests are how near to a module."""

    def __init__(self) -> None:
        self.graph = touched.Graph()
        self.rests = {path: self.graph.rests_on(path) for path in self.graph.tests()}
        self.texts = {path: path.read_text("utf-8") for path in self.graph.tests()}

    def nearest(self, module: Path, name: str | None) -> list[Path]:
        """The files of tests that import a module: its own, those that say the name, others."""
        far = self.graph.distances({ROOT / module})
        own = {f"test_{part}" for part in (module.stem, module.parent.name)}
        far |= {path: 0 for path in self.graph.tests() if path.stem in own}
        near = [
            path
            for path, rest in self.rests.items()
            if ROOT / module in rest and path.relative_to(ROOT / "tests").parts[0] not in FAR
        ]
        far |= {path: far[path] + 2 for path in near if not says(name, self.texts[path])}
        return sorted(near, key=lambda path: (far[path], len(self.rests[path])))


def forget_the_library() -> None:
    """What was imported to find tests is imported again, so that a child meets the mutant."""
    for name in [name for name in sys.modules if name.split(".")[0] == "lsa_lab"]:
        del sys.modules[name]


def try_near(
    module: Path, source: str, name: str | None, near: list[Path], seconds: float
) -> tuple[bool, str]:
    """Whether a test fails where a module has this source; which, or how many passed."""
    text = "no test imports it"
    for files in (near[:FIRST], near[FIRST:]):
        if not files:
            break
        status, text = run_forked(module, source, name, files, seconds)
        if os.WIFSIGNALED(status):
            timeout = os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL, signal.SIGALRM)
            return True, "timeout" if timeout else f"signal {os.WTERMSIG(status)}"
        if status:
            reasons = [line for line in text.splitlines() if line.startswith(("FAILED", "ERROR"))]
            return True, reasons[0] if reasons else text[-2000:]
    return False, text.splitlines()[-1]


def run_forked(
    module: Path, source: str, name: str | None, files: list[Path], seconds: float
) -> tuple[int, str]:
    """The status with which pytest ends in a child that meets the mutant, and what it prints."""
    with tempfile.TemporaryFile("w+") as output:
        sys.stdout.flush()
        child = os.fork()
        if not child:
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
            until = time.process_time() + seconds
            limit = int(until + 2 * seconds + 30)
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            signal.alarm(20 * limit)  # for one that waits and computes nothing
            sys.meta_path.insert(0, Mutant(ROOT / module, source))
            words = [*WORDS, "-W", IMPORTED, *map(str, files)]
            status = 70
            try:
                status = pytest.main(words, plugins=[Nearest(name, until)])
            finally:
                sys.stdout.flush()
                os._exit(status)
        status = os.waitpid(child, 0)[1]
        output.seek(0)
        return status, output.read()
