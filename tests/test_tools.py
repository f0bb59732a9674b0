"""The tools of the tests: mutants, what a change touches, what a platform lacks, float32."""

import functools
import importlib
import re
import subprocess
import sys
from collections import Counter

import jax
import jax.numpy as jnp
import pytest

import lowering
import touched
from tools.mutants import by_hand, trials
from tools.precision import analysed, single

CHANGES = by_hand.changes()
ROOMS = ("theory", "models", "analyses", "selection", "estimators", "tasks")


@functools.cache
def names_of(file):
    return set(re.findall(r"^def (test_\w+)\(", (by_hand.ROOT / "tests" / file).read_text(), re.M))


def missing(tests):
    """Those that name no test of a file."""
    parts = [test.partition("::") for test in tests]
    return [name for file, _, name in parts if name.partition("[")[0] not in names_of(file)]


def test_different_changes_reach_every_room_that_computes():
    assert len({(change.file, change.old, change.new) for change in CHANGES}) == 110
    assert all(change.wrong.endswith(".") for change in CHANGES)
    rooms = Counter(change.file.partition("/")[0] for change in CHANGES)
    assert all(rooms[room] >= 8 for room in ROOMS)


def test_each_change_is_of_a_passage_that_stands_once_and_leaves_python():
    for change in CHANGES:
        assert change.source() != (by_hand.ROOT / change.module).read_text()


def test_each_change_names_tests_that_exist():
    for change in CHANGES:
        assert change.tests
        assert not missing(change.tests), change.wrong


def test_control_what_does_not_apply_is_refused_and_an_unknown_test_is_missed():
    with pytest.raises(ValueError, match="0 times"):
        by_hand.Change("theory/risk.py", "", "no such passage", "", ()).source()
    with pytest.raises(ValueError, match="times"):
        by_hand.Change("theory/risk.py", "", "return ", "yield ", ()).source()
    assert missing(["theory/test_closed_forms.py::test_nothing"]) == ["test_nothing"]


def test_a_mutant_is_imported_in_place_of_its_file_which_stays_as_it_is(tmp_path, monkeypatch):
    path, source = tmp_path / "toy_to_mutate" / "doubles.py", "def double(x):\n    return 2 * x\n"
    path.parent.mkdir()
    for name in ("__init__.py", "halves.py", "doubles.py"):
        path.with_name(name).write_text(source)
    mutant = trials.Mutant(path, source.replace("2", "3"), tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", [mutant, *sys.meta_path])
    modules = [importlib.import_module(f"toy_to_mutate.{name}") for name in ("doubles", "halves")]
    assert [module.double(1) for module in modules] == [3, 2]
    assert path.read_text() == source


def test_a_text_says_a_public_name_as_a_word():
    assert trials.says("ols", "risk.ols(5, 3, 1.0)")
    assert not trials.says("ols", "tools")
    assert not trials.says("_ols", "risk._ols(5)")
    assert not trials.says(None, "None")


FILES = {
    "lsa_lab/__init__.py": "",
    "lsa_lab/low.py": "",
    "lsa_lab/room/__init__.py": "",
    "lsa_lab/room/middle.py": "def late():\n    from lsa_lab import low",
    "lsa_lab/other.py": "",
    "lsa_lab/pattern/test_low.py": "from lsa_lab import low",
    "tests/conftest.py": "",
    "tests/draws.py": "import lsa_lab.other",
    "tests/test_low.py": "",
    "tests/room/test_middle.py": "from lsa_lab.room import middle",
    "tests/room/test_far.py": "import test_middle",
    "tests/test_drawing.py": "from draws import anything",
    "tests/test_pages.py": 'PAGES = "docs"',
    "docs/page.md": "",
}


@pytest.fixture
def root(tmp_path):
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def reached(root, *changed):
    graph = touched.Graph(root)
    distances = graph.distances({root / name for name in changed})
    return {path.stem: distances[path] for path in graph.tests() if path in distances}


def test_a_change_reaches_those_that_import_it_after_so_many_imports(root):
    assert reached(root, "lsa_lab/low.py") == {"test_low": 0, "test_middle": 2, "test_far": 3}
    assert reached(root, "lsa_lab/other.py") == {"test_drawing": 2}
    assert reached(root, "tests/draws.py") == {"test_drawing": 1}
    assert reached(root, "tests/room/test_far.py") == {"test_far": 0}


def test_a_page_reaches_the_tests_that_name_its_folder_and_a_conftest_all_below_it(root):
    assert reached(root, "docs/page.md") == {"test_pages": 1}
    assert len(reached(root, "tests/conftest.py")) == sum("/test_" in name for name in FILES) - 1
    assert reached(root, "LICENSE") == {}


def test_changed_is_what_differs_from_origin_main_committed_or_not(root):
    def git(*words):
        author = ("-c", "user.name=a", "-c", "user.email=a@b")
        subprocess.run(["git", *author, *words], cwd=root, check=True, capture_output=True)

    git("init", "-b", "main")
    git("add", ".")
    git("commit", "-m", "before")
    assert touched.changes(root) == set()
    git("update-ref", "refs/remotes/origin/main", "HEAD")
    (root / "lsa_lab/low.py").write_text("x = 1")
    git("commit", "-am", "after")
    (root / "lsa_lab/other.py").write_text("x = 1")
    (root / "docs/new.md").write_text("")
    names = {path.relative_to(root).as_posix() for path in touched.changes(root)}
    assert names == {"lsa_lab/low.py", "lsa_lab/other.py", "docs/new.md"}


TWO = jnp.array([[2.0, 1.0], [1.0, 2.0]])


def at_once(matrix):
    return jax.scipy.linalg.sqrtm(jnp.pad(matrix, 1))  # a shape that no other test has traced


def in_a_loop(matrix):
    def step(carry, _):
        return jax.scipy.linalg.sqrtm(carry).real, None

    return jax.jit(lambda a: jax.lax.scan(step, a, length=2)[0])(matrix)


@pytest.mark.parametrize("compute", [in_a_loop, at_once])
def test_schurs_form_lacks_on_a_gpu(compute):
    with lowering.operations() as kinds:
        compute(TWO)
    assert lowering.lacking(kinds, "cuda") == ["schur"]
    assert lowering.lacking(kinds, "cpu") == []


STATED = single.read_bounds()
# Of each floor those that lose most, and some that lose nothing.
SLICE = (
    "analyses.probes.explained",
    "estimators.gradient_descent",
    "estimators.ridge",
    "estimators.spike_and_slab_posterior_mean",
    "selection.scores.grads",
    "theory.asymptotics.ridge_risk",
    "theory.optimum.one_layer",
)


def test_every_public_analysis_is_in_the_table_or_has_no_error_of_its_own():
    assert STATED.keys() == analysed.CASES.keys()
    assert sorted([*STATED, *analysed.EXEMPT]) == sorted(single.public_names())
    page = " ".join(single.PAGE.read_text("utf-8").split())
    assert all(reason in page for reason in analysed.REASONS)
    # Control: an analysis more is missed.
    assert sorted([*STATED, *analysed.EXEMPT]) != sorted(
        [*single.public_names(), "analyses.new.measure"]
    )


@pytest.mark.parametrize("name", SLICE)
def test_single_precision_errs_by_no_more_than_the_page_states(name):
    assert single.error(name, range(3)) <= STATED[name]


def test_half_precision_errs_by_more():
    """The control: inputs of bfloat16 are not within the bounds of single precision."""
    name = "estimators.gradient_descent"
    assert single.error(name, range(3), "bfloat16") > 1000 * STATED[name]
