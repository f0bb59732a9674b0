"""What runs writes into its folder alone and asks no network; no loader runs, follows or swells."""

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import hostile
import pytest

from lsa_lab.harness.cli.command_line import main
from lsa_lab.harness.run import folders, process, runner
from lsa_lab.harness.run.laboratory import experiments_of

HERE, ROOT = Path(__file__).parent, Path(__file__).resolve().parents[2]
TOY = ROOT / "tests" / "harness"
NAMES = [
    "..",
    "../x",
    "../../x",
    "/x",
    "~",
    "$HOME",
    "a\0b",
    "x" * 300,
    "CON",
    "a/../../x",
    "",
    ".",
]
WORDS = ["run", "list", "new", "fetch", "draw toy --panel", "run toy --tier", "list --package"]
WORDS += ["submit toy --engine"]
SECRET = "xyzzy-secret"


@pytest.fixture
def work(tmp_path, monkeypatch):
    """A working folder with another one above it."""
    folder = tmp_path / "above" / "work"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(TOY))
    monkeypatch.setenv("LSA_LAB_CACHE", str(folder / "cache"))
    for name in ("configure", "set_environment"):
        monkeypatch.setattr(process, name, lambda: None)
    yield folder
    for name in [name for name in sys.modules if name.split(".")[0] == "toy_lab"]:
        del sys.modules[name]


def outside(work):
    """Every file above the working folder, with its contents."""
    root = work.parents[1]
    files = [path for path in root.rglob("*") if work not in (path, *path.parents)]
    return {path: path.read_bytes() if path.is_file() else None for path in files}


def test_a_name_that_leads_elsewhere_writes_nothing_there(work, capsys):
    before, escaped = outside(work), Path("/x").exists()
    for words in WORDS:
        for name in NAMES:
            for place in (name, f"lab/{name}"):
                assert main([*words.split(), place], package="toy_lab") in (0, 2), (words, place)
    assert "Traceback" not in capsys.readouterr().err
    assert outside(work) == before
    assert Path("/x").exists() == escaped


@pytest.mark.parametrize("word", NAMES)
def test_the_folder_of_a_changed_configuration_lies_in_that_of_its_experiment(work, word):
    toy = experiments_of("toy_lab")["toy"]
    kind = dataclasses.make_dataclass("Config", [("kind", str, "normal")], frozen=True)
    toy.door("config").TIERS["laptop"], usual = kind(), toy.tiers["laptop"]
    folder = folders.folder_of(toy, "laptop", Path("out"), kind(word))
    toy.door("config").TIERS["laptop"] = usual
    assert folder.parent == Path("out/toy")
    assert len(folder.name) <= 80
    assert "\0" not in folder.name


@pytest.mark.parametrize("link", ["toy", "toy/n=7", "toy/result.nc", ".IDENTITY.new", ".toy.lock"])
def test_a_link_out_of_the_folder_is_not_followed(work, link, capsys, monkeypatch):
    monkeypatch.setattr(runner, "draw", lambda *_: None)
    toy = experiments_of("toy_lab")["toy"]
    job = runner.Job(toy, "laptop", toy.tiers["laptop"], Path("out"))
    link = link.replace("IDENTITY", job.identity)
    there = work.parent / "there"
    (there / "folder").mkdir(parents=True)
    (there / "file").write_text("of somebody else")
    place = Path("out") / link
    place.parent.mkdir(parents=True)
    is_folder = place.name in ("toy", "n=7") or place.suffix == ".new"
    place.symlink_to(there / ("folder" if is_folder else "file"))
    before = outside(work)
    changes = ["--config.n", "7"] if place.name == "n=7" else []
    status = main(["run", "toy", "--out", "out", *changes], package="toy_lab")
    assert status == (2 if place.name in ("toy", "n=7") else 0)
    assert outside(work) == before
    if status:
        assert "is a link: remove it" in capsys.readouterr().err


def telling(folder, words):
    """Files that hold one of the words."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path for path in files if any(word.encode() in path.read_bytes() for word in words)]


HEARD = """
    import json, socket, sys
    from lsa_lab.harness.cli.command_line import main

    asked = []
    asking = ("socket.connect", "socket.getaddrinfo", "socket.gethostby", "socket.sendto")
    sys.addaudithook(lambda event, _: event.startswith(asking) and asked.append(event))
    status = main(sys.argv[1:], program="lsa-lab")
    of_program = list(asked)
    try:
        socket.create_connection(("127.0.0.1", 9), timeout=1).close()
    except OSError:
        pass
    print(json.dumps({"status": status, "asked": of_program, "control": asked[len(of_program) :]}))
"""


def test_a_result_tells_nothing_of_the_person_and_no_network_is_asked(tmp_path, python):
    home = tmp_path / "home-of-somebody"
    home.mkdir()
    environment = {
        "HOME": str(home),
        "USER": "somebody-in-person",
        "TOKEN": SECRET,
        "XLA_FLAGS": f"--xla_dump_hlo_module_re={home}",
        "LSA_LAB_CACHE": str(tmp_path / "cache"),
    }
    words = ["run", "toy", "--tier", "smoke", "--out", "out", "--package", "toy_lab"]
    done = python(HEARD, *words, cwd=tmp_path, path=[TOY], **environment)
    assert done.returncode == 0, done.stderr
    heard = json.loads(done.stdout.splitlines()[-1])
    assert heard["status"] == 0
    assert heard["asked"] == []
    assert heard["control"], "the hook hears who asks"
    assert (tmp_path / "out" / "toy" / "result.nc").exists()
    personal = [str(home), "somebody-in-person", SECRET, str(tmp_path)]
    assert telling(tmp_path / "out", personal) == []
    (tmp_path / "out" / "leak").write_text(f"by {SECRET}")
    assert telling(tmp_path / "out", personal) == [tmp_path / "out" / "leak"], "the control"


READER = HERE / "reader.py"
# Refusals are these, and say what to do; a raw error of Python's is none.
TYPED = ("ValueError: ", "RefusalError: ", "FileNotFoundError: ")


@pytest.fixture(scope="module")
def ends(tmp_path_factory):
    """How each loader has ended, by the name of its case."""
    root = tmp_path_factory.mktemp("hostile")
    hostile.lay_out(root)
    environment = os.environ | {"PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"}
    words = [sys.executable, READER, root]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return {line.pop("case"): line for line in lines}


def test_a_hostile_file_is_refused_and_nothing_else_happens(ends):
    cases = [f"{loader}: {name}" for loader, name in hostile.CASES]
    assert len(cases) >= 40
    for case in cases:
        end = ends[case]
        assert end["end"].startswith(TYPED), (case, end)
        assert len(end["end"].splitlines()) == 1, (case, end)
        assert end["events"] == [], (case, end)
        assert end["seconds"] < 1, (case, end)
        assert end["MiB"] < 64, (case, end)


def test_a_loader_that_unpickles_or_follows_links_is_caught(ends):
    """The control."""
    assert "os.system" in ends["unsafe: objects.npy"]["events"]
    assert ends["unsafe: external.h5"]["events"] == ["kernel: secret.h5"]
    assert ends["unsafe: bomb.npz"]["MiB"] > 64
