"""The tests that a change touches are those that import it, near ones first, and its readers."""

import subprocess

import pytest

import touched

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
