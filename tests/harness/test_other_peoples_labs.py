"""The wheel alone runs the package that CONTRIBUTING.md shows, in an empty folder."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^`(my_lab/[\w/]+\.py)`.*?\n```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """my_lab as CONTRIBUTING.md shows it, beside an installed wheel."""
    folder = tmp_path_factory.mktemp("elsewhere")
    for name, text in BLOCK.findall((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
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
            env={**os.environ, "PYTHONPATH": str(folder / "installed")},
            capture_output=True,
            text=True,
            timeout=300,
        )

    return run


def test_the_wheel_holds_the_library_alone(folder):
    names = {path.name for path in (folder / "installed").iterdir()}
    assert {name for name in names if not name.endswith(".dist-info")} == {"bin", "lsa_lab"}
    assert (folder / "installed" / "lsa_lab" / "py.typed").exists()
    assert (folder / "installed" / "lsa_lab" / "harness" / "templates" / "index.html").exists()


def test_a_package_of_ones_own_is_listed_refused_run_drawn_and_reported(folder, lsa_lab):
    package = ("--package", "my_lab")
    listed = lsa_lab("list", *package)
    assert "Does one trained layer of linear attention do as well" in listed.stdout
    assert listed.stdout.count("not run yet") == 3
    refused = lsa_lab("run", "against_ridge", "--config.step", "20", *package)
    assert refused.returncode == 2
    assert "nearest --config.steps;" in refused.stderr
    assert lsa_lab("run", "against_ridge").returncode == 2, "there is no package experiments here"
    done = lsa_lab("run", "all", "--tier", "smoke", "--out", "figures", *package)
    assert done.returncode == 0, done.stderr
    names = {path.name for path in (folder / "figures" / "against_ridge").iterdir()}
    assert names == {"result.nc", "config.json", "figure.pdf", "figure.png"}
    again = lsa_lab("run", "all", "--tier", "smoke", "--out", "figures", *package)
    assert "1 of 1 results are the same to the bit" in again.stdout, again.stderr
