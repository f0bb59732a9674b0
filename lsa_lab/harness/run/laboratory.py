"""A package of experiments: the names in order, and the four doors of each.

``my_lab/__init__.py`` holds ``EXPERIMENTS = ("theme.name", ...)``; each name is a folder with
``config.py``, ``compute.py``, ``claims.py`` and ``figure.py``, and its question is the docstring of
its ``__init__.py``.
"""

import importlib
import importlib.util
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from lsa_lab.harness.refusal import RefusalError

TIERS = ("smoke", "laptop", "paper")  # an experiment may lack the last
DOORS = ("config", "compute", "claims", "figure")


@dataclass(frozen=True)
class Experiment:
    """One folder of four doors, imported when they are used: only ``compute`` may import jax."""

    module: str  # "my_lab.theme.name"

    @property
    def name(self) -> str:
        return self.module.rpartition(".")[2]

    @property
    def question(self) -> str:
        return (importlib.import_module(self.module).__doc__ or "").strip()

    @property
    def package(self) -> str:
        return self.module.partition(".")[0]

    @property
    def theme(self) -> str:
        """The folder between the package and the experiment, as "flow"; without one, ""."""
        return self.module.removeprefix(f"{self.package}.").rpartition(".")[0]

    @property
    def theme_title(self) -> str:
        """The docstring of the theme's ``__init__.py``, or its name."""
        folder = self.module.rpartition(".")[0]
        said = (importlib.import_module(folder).__doc__ or "").strip() if self.theme else ""
        return said.rstrip(".") or self.theme.replace("_", " ") or "Experiments"

    @property
    def tiers(self) -> dict[str, Any]:
        return self.door("config").TIERS

    def resolve_models(self, config: Any, progress: Any = None) -> dict[str, Any]:
        """The models that a config names, ``models`` of (name, spec) pairs, as the package resolves
        them: ``resolve(models, label, retrain=, progress=)`` in its ``models/trained.py``."""
        package = importlib.import_module(f"{self.package}.models.trained")
        retrain = getattr(config, "retrain", False)
        return package.resolve(config.models, self.name, retrain=retrain, progress=progress)

    def door(self, name: str) -> ModuleType:
        return importlib.import_module(f"{self.module}.{name}")


def constant_of(package: str, file: str, name: str, otherwise: Any) -> Any:
    """A constant of a module of the package, which may lack both."""
    if importlib.util.find_spec(f"{package}.{file}") is None:
        return otherwise
    return getattr(importlib.import_module(f"{package}.{file}"), name, otherwise)


def experiments_of(package: str) -> dict[str, Experiment]:
    """The experiments of a package by name, in its order; the working folder is looked in first."""
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        if not all(map(str.isidentifier, package.split("."))):
            raise ModuleNotFoundError(name=package)
        module = importlib.import_module(package)
        names: Sequence[str] = module.EXPERIMENTS
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise RefusalError(
            f"no package {package!r} in {Path.cwd()}: go to the folder that holds it, or name "
            "another with --package"
        ) from None
    except AttributeError:
        raise RefusalError(
            f"{package}/__init__.py has no EXPERIMENTS: write EXPERIMENTS = ('name', ...) there"
        ) from None
    if isinstance(names, str):
        raise RefusalError(
            f"EXPERIMENTS of {package} is one word: write ({names!r},), with a comma"
        )
    for name in names:
        folder = Path(module.__path__[0]).joinpath(*name.split("."))
        files = [f"{part}.py" for part in ("__init__", *DOORS)]
        lacking = [file for file in files if not (folder / file).exists()]
        if lacking:
            raise RefusalError(f"{package} names {name!r}, and {folder} lacks {', '.join(lacking)}")
    listed = [Experiment(f"{package}.{name}") for name in names]
    return {experiment.name: experiment for experiment in listed}
