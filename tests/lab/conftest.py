"""A small package of experiments in a git repository of its own."""

import dataclasses
import importlib
import itertools
import subprocess
import sys

import pytest

from lsa_lab.lab import catalogue, run

SCRIPT = '''
"""Is the mean of normal numbers 0?"""
import os
from dataclasses import dataclass

import numpy as np
import xarray as xr

from lsa_lab import lab
from lsa_lab.lab import Claim, main, plotting

@dataclass(frozen=True)
class Config:
    n: int = 20  # numbers in a run
    scales: tuple[float, ...] = (1.0, 2.0)  # standard deviations
    seed: int = 7

TIERS = {"smoke": Config(5), "quick": Config(), "full": Config(40)}

def draw(config, i):
    if os.environ.get("STOP") == str(i):  # a test interrupts here
        raise KeyboardInterrupt
    rng = np.random.default_rng([config.seed, i])
    return config.scales[i] * rng.normal(size=(9, config.n)).mean(1)

def compute(config, models):
    items = range(len(config.scales))
    means = lab.compute_each("scales", items, lambda i: draw(config, i))
    return xr.Dataset({"mean": (("scale", "run"), means)}, {"scale": list(config.scales)})

def sample(result, scale):
    return result["mean"].sel(scale=scale).values

CLAIMS = (
    Claim("zero", "derived here", "The mean at scale {scale} is 0", "the mean", sample,
          at_least=-3.0, at_most=3.0, over={"scale": (1.0, 2.0)}, null="none: it is 0"),
    Claim("first", "derived here", "The mean at scale 1 is 0", "the mean",
          lambda result: result["mean"].sel(scale=1.0).values),
)

def plot(result, config):
    picture, (left, right) = plotting.figure(4.0, 2.0, (1, 2))
    for ax in (left, right):
        plotting.mean_points(ax, config.scales, result["mean"].T, fmt="o")
    return picture, f"Means of {config.n} numbers."

if __name__ == "__main__":
    main(__file__)
'''
_numbers = itertools.count()


class Package:
    """A package of one experiment, ``question``, in a repository."""

    def __init__(self, root):
        self.root, self.name = root, f"package_{next(_numbers)}"
        self.script = root / self.name / "theme" / "question.py"
        self.script.parent.mkdir(parents=True)
        self.script.write_text(SCRIPT.lstrip())
        self.git("init", "-q")
        (root / ".gitignore").write_text(".cache\n__pycache__\n")
        self.commit()

    def change(self, old, new):
        text = self.script.read_text()
        assert old in text
        self.script.write_text(text.replace(old, new))

    def git(self, *words):
        subprocess.run(["git", *words], cwd=self.root, check=True, capture_output=True)

    def commit(self):
        self.git("add", "-A")
        who = ("-c", "user.email=someone@example.org", "-c", "user.name=Someone")
        self.git(*who, "commit", "-q", "-m", "A step", "--allow-empty")

    @property
    def experiment(self):
        return catalogue.find(self.name)["question"]

    def load(self):
        """Import the script as it stands now."""
        sys.modules.pop(self.experiment.module, None)
        importlib.invalidate_caches()
        return self.experiment.load()

    def run(self, tier="full", publish=False, **changes):
        module = self.load()
        config = dataclasses.replace(module.TIERS[tier], **changes)
        job = run.Job(self.experiment, tier, config, self.root / "out")
        return run.run(job, publish=publish)


@pytest.fixture
def package(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LSA_LAB_CACHE", str(tmp_path / ".cache"))
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    return Package(tmp_path)
