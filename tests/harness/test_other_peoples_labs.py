"""The wheel alone starts a package of experiments in an empty folder, and runs it to its report."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """An empty folder but for an installed wheel."""
    folder = tmp_path_factory.mktemp("elsewhere")
    wheels = folder / "wheels"
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(wheels)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=120)
    (wheel,) = wheels.iterdir()
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    options = ["--disable-pip-version-check", "--target", str(folder / "installed"), str(wheel)]
    subprocess.run([*install, *options], check=True, capture_output=True, timeout=120)
    return folder


@pytest.fixture
def lsa_lab(folder):
    """The installed program: words -> what it did."""

    def run(*words):
        return subprocess.run(
            [sys.executable, str(folder / "installed" / "bin" / "lsa-lab"), *words],
            cwd=folder,
            env=os.environ
            | {"PYTHONPATH": str(folder / "installed"), "LSA_LAB_CACHE": str(folder / ".cache")},
            capture_output=True,
            text=True,
            timeout=300,
        )

    return run


def test_the_wheel_holds_the_library_alone(folder):
    names = {path.name for path in (folder / "installed").iterdir()}
    assert {name for name in names if not name.endswith(".dist-info")} == {"bin", "lsa_lab"}
    assert (folder / "installed" / "lsa_lab" / "py.typed").exists()
    harness = folder / "installed" / "lsa_lab" / "harness"
    assert (harness / "report" / "templates" / "index.html").exists()
    assert (harness / "cli" / "templates" / "experiment" / "compute.py").exists()


@pytest.mark.slow
def test_a_package_of_ones_own_is_begun_listed_refused_run_drawn_and_reported(folder, lsa_lab):
    package = ("--package", "my_lab")
    begun = lsa_lab("new", "my_lab/layers/one_step")
    assert begun.returncode == 0, begun.stderr
    first, second, third = (line.split()[1:] for line in begun.stdout.splitlines()[-3:])
    listed = lsa_lab("list", "one_step", *package)
    assert "Does one trained layer of linear attention do as well" in listed.stdout
    assert listed.stdout.count("not run yet") == 3
    refused = lsa_lab("run", "one_step", "--config.step", "20", *package)
    assert refused.returncode == 2
    assert "nearest --config.steps;" in refused.stderr
    assert lsa_lab("run", "one_step").returncode == 2, "there is no package experiments here"
    config = folder / "my_lab" / "layers" / "one_step" / "config.py"
    text = config.read_text("utf-8")
    smoke = text.partition('"smoke": ')[2].partition("),")[0] + ")"  # its programs are compiled
    config.write_text(text.replace('"laptop": Config()', f'"laptop": {smoke}'), "utf-8")
    for words in (first, second, third):  # what `new` says to type next
        done = lsa_lab(*words)
        assert done.returncode == 0, done.stderr
    assert (folder / ".cache" / "smoke" / "one_step" / "figure.png").exists()
    names = {path.name for path in (folder / "figures" / "one_step").iterdir()}
    pictures, pages = {"figure.pdf", "figure.png"}, {"caption.txt", "README.md", "index.html"}
    assert names == {"result.nc", "config.json"} | pictures | pages
    assert "| [one_step](one_step/README.md) |" in (folder / "figures/CLAIMS.md").read_text("utf-8")
    page = (folder / "figures" / "one_step" / "README.md").read_text("utf-8")
    assert "| One trained layer does as well as the best step of descent at n = 10 | ours |" in page
    figure = (folder / "figures" / "one_step" / "figure.pdf").read_bytes()
    assert lsa_lab("draw", "one_step", *package).returncode == 0
    assert (folder / "figures" / "one_step" / "figure.pdf").read_bytes() == figure


@pytest.mark.slow
def test_a_theorem_of_ones_own_is_begun_with_its_control_and_passes(folder, lsa_lab):
    for files in (["test_mine.py", "conftest.py"], ["test_other.py"]):
        name = files[0].removeprefix("test_").removesuffix(".py")
        begun = lsa_lab("new", f"my_lab/{name}", "--theorem")
        assert begun.returncode == 0, begun.stderr
        assert [line.rpartition("/")[2] for line in begun.stdout.splitlines()[:-1]] == files
    assert "exists: choose another name" in lsa_lab("new", "my_lab/mine", "--theorem").stderr
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/theorems"]
    environment = os.environ | {"PYTHONPATH": str(folder / "installed"), "CI": "true"}
    tested = subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )
    assert "4 passed" in tested.stdout, tested.stdout
