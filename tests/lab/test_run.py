"""Runs: files, resuming, damage, two processes, and configurations."""

import dataclasses
import json

import numpy as np
import pytest
import xarray as xr

from lsa_lab.files import lock_file
from lsa_lab.lab import results, run
from lsa_lab.lab.catalogue import UsageError
from lsa_lab.lab.listing import expect_seconds
from lsa_lab.lab.progress import show_progress


def test_a_run_leaves_a_result_its_claims_a_figure_and_a_page(package):
    record = package.run("quick")
    folder = package.root / "out" / "question"
    names = {path.name for path in folder.iterdir()}
    assert names == {"result.nc", "claims.json", "figure.pdf", "figure.png", "README.md"}
    loaded = results.load(folder)
    saved = {name: value for name, value in record.items() if name not in ("folder", "changes")}
    assert results.load_record(folder) == json.loads(json.dumps(saved))
    rng = np.random.default_rng([7, 1])
    np.testing.assert_array_equal(loaded["mean"][1], 2 * rng.normal(size=(9, 20)).mean(1))
    assert json.loads(loaded.attrs["config"]) == {"n": 20, "scales": [1.0, 2.0], "seed": 7}
    assert loaded.attrs["commit"]
    page = (folder / "README.md").read_text()
    assert page.startswith("# Is the mean of normal numbers 0?")
    assert "lsa-lab run question --tier quick" in page
    table = results.load_claims(package.root / "out")
    assert list(table["id"]) == ["zero[1.0]", "zero[2.0]", "first"]
    assert set(table["experiment"]) == {"question"}
    # The time that is told is that of the same tier and size.
    times = [expect_seconds(package.experiment, tier, folder) for tier in ("quick", "smoke")]
    assert times == [record["seconds"], None]
    assert expect_seconds(package.experiment, "quick", folder / "n=8") is None


def test_an_interrupted_run_resumes_after_its_last_part_of_the_same_code(
    package, monkeypatch, capsys
):
    whole = package.run("quick")
    monkeypatch.setenv("STOP", "1")
    with pytest.raises(KeyboardInterrupt):
        package.run("quick")
    (parts,) = (package.root / ".cache" / "runs").glob("question-*")
    assert [path.name for path in parts.glob("*.npz")] == ["scales-0.npz"]
    monkeypatch.delenv("STOP")
    package.change(".mean(1)", ".mean(1) + 1")
    assert package.run("quick")["claims"][0]["value"] > 0.5
    package.change(".mean(1) + 1", ".mean(1)")
    monkeypatch.setenv("STOP", "0")  # the first part is not computed again
    resumed = package.run("quick")
    assert "scales: resuming at 2 of 2 (50 %)" in capsys.readouterr().out
    assert resumed["claims"] == whole["claims"]
    assert not parts.exists()


def test_an_interrupted_training_says_at_which_step_it_resumes(capsys):
    with show_progress() as progress:
        progress.add_task("n = 4", total=6 * 15_000, completed=6 * 1_200, step=1_200)
        progress.add_task("n = 8", total=6 * 15_000)
    assert capsys.readouterr().out == "  n = 4: resuming at step 1 200 (8 %)\n"


def test_a_result_that_cannot_be_drawn_is_not_computed_again(package, capsys):
    package.change("Means of {config.n}", "Means of {config.m}")
    with pytest.raises(AttributeError):
        package.run("quick")
    assert not (package.root / "out" / "question").exists()
    package.change("Means of {config.m}", "Means of {config.n}")
    package.run("quick")
    assert "judged and drawn again" in capsys.readouterr().out
    package.change("def plot(", "def draw_it(")
    with pytest.raises(UsageError, match=r"question.py has no plot"):
        package.run("quick")


def test_damaged_files_are_named(package):
    package.run("quick")
    folder = package.root / "out" / "question"
    for file, end in (("result.nc", None), ("claims.json", -9)):
        content = bytearray((folder / file).read_bytes())
        content[len(content) // 2] ^= 1
        (folder / file).write_bytes(content[:end])
        with pytest.raises(UsageError, match=rf"{file} is damaged"):
            results.load(folder)


@pytest.mark.parametrize("is_tree", [False, True])
def test_a_result_is_read_as_it_was_saved(is_tree):
    attributes = {"n": 4, "law": "flat", "rates": np.array([0.1, 0.2])}
    part = xr.Dataset({"risk": ("run", np.arange(3.0)), "converged": ("run", [True, False, True])})
    part = part.assign_attrs(attributes)
    result = xr.DataTree.from_dict({"/": part, "/part": part}) if is_tree else part
    loaded = results.decode(results.encode(result, {"tier": "quick"}), "result.nc")
    assert "tier" not in result.attrs  # what compute returned is as it was
    assert loaded.attrs.pop("tier") == "quick"
    xr.testing.assert_identical(loaded, result)


def test_what_no_file_holds_is_refused_in_a_sentence(package):
    mixed = xr.Dataset({"risk": ("run", np.array([None, 1, "x"], object))})
    with pytest.raises(UsageError, match=r"the result cannot be saved: .* 'risk'"):
        results.encode(mixed, {})
    with pytest.raises(UsageError, match="compute returned a dict: expected a Dataset"):
        results.encode({"risk": 1.0}, {})
    package.change("lambda i: draw(config, i)", "lambda i: {'mean': draw(config, i), 'seed': None}")
    with pytest.raises(ValueError, match="Object arrays cannot be saved"):
        package.run("quick")


def test_a_second_process_on_the_same_result_is_refused(package):
    with (
        lock_file(package.root / "out" / "question"),
        pytest.raises(UsageError, match="is written by process"),
    ):
        package.run("quick")


def test_configurations_are_restored_with_tuples():
    fields = ("law", str), ("lengths", tuple), ("named", tuple)
    config = dataclasses.make_dataclass("Config", fields)("flat", (4,), (("b", 2), ("c", 3)))
    assert results.restore_config(type(config), results.plain_config(config)) == config


def test_a_panel_is_drawn_alone(package):
    package.run("quick")
    module, result = package.load(), results.load(package.root / "out" / "question")
    whole, panel = (run.draw(module, result, name)[0] for name in ("", "b"))
    assert panel.keys() == whole.keys() == {"pdf", "png"}
    assert len(panel["png"]) < len(whole["png"])
    with pytest.raises(UsageError, match="no panel 'c': the figure has a, b"):
        run.draw(module, result, "c")
