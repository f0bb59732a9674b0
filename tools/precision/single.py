"""The error of single precision, case by case: what docs/precision.md shows.

``python -m tools.precision.single`` measures all of them and writes the table into the page.
"""

import functools
import importlib
import math
import pkgutil
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "precision.md"
SEEDS = range(10)
_ROW = re.compile(r"^\| `([\w.]+)` \| ([\de.+-]+) \|$", re.MULTILINE)

if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "tests"))
    import conftest  # noqa: F401  the settings of the tests

import jax
import numpy as np

from tools.precision.analysed import CASES, EAGER, inputs


def error(name: str, seeds, dtype: str = "float32") -> float:
    """The largest difference between an array in ``dtype`` and in double precision, over its
    largest entry, of all arrays of a case and all draws."""
    return max(
        _apart(single, double)
        for seed in seeds
        for single, double in zip(_leaves(name, seed, dtype), _leaves(name, seed), strict=True)
    )


def _leaves(name: str, seed: int, dtype: str = "float64") -> list[np.ndarray]:
    leaves = jax.tree.leaves(_program(name)(vars(inputs(seed, dtype))))
    return [np.asarray(leaf, float) for leaf in leaves]


@functools.cache
def _program(name: str) -> Callable:
    case = lambda given: CASES[name](SimpleNamespace(**given))  # noqa: E731
    return case if name.startswith(EAGER) else jax.jit(case)


def _apart(single: np.ndarray, double: np.ndarray) -> float:
    largest = np.abs(double).max(initial=0)
    return float(np.abs(single - double).max(initial=0) / largest) if largest else 0.0


def bound(measured: float) -> float:
    """The next of 1, 2 and 5 times a power of ten above twice what was measured."""
    if measured == 0:
        return 0.0
    power = 10.0 ** math.floor(math.log10(2 * measured))
    return next(
        float(f"{digit * power:.0e}") for digit in (1, 2, 5, 10) if digit * power > 2 * measured
    )


def read_bounds() -> dict[str, float]:
    """The bounds in the page."""
    return {name: float(number) for name, number in _ROW.findall(PAGE.read_text("utf-8"))}


def public_names() -> list[str]:
    """The functions of the four floors that have no leading underscore, by module."""
    names = _functions("lsa_lab.estimators")
    for floor in ("analyses", "theory", "selection"):
        package = importlib.import_module(f"lsa_lab.{floor}")
        for module in pkgutil.iter_modules(package.__path__):
            names += _functions(f"lsa_lab.{floor}.{module.name}")
    return names


def _functions(name: str) -> list[str]:
    """Those that a module, or a package by its __init__, hands out."""
    return [
        f"{name}.{word}".removeprefix("lsa_lab.")
        for word, value in vars(importlib.import_module(name)).items()
        if callable(value)
        and not isinstance(value, type)
        and not word.startswith("_")
        and getattr(value, "__module__", "").startswith(name)
    ]


def main() -> None:
    rows = {}
    for name in sorted(CASES):
        rows[name] = bound(error(name, SEEDS))
        print(f"{rows[name]:.0e} {name}", flush=True)
    table = "".join(f"| `{name}` | {number:.0e} |\n" for name, number in rows.items())
    head = "| function | error at most |\n|---|---|\n"
    page = PAGE.read_text("utf-8")
    before = page.partition(head)[0]
    after = _ROW.sub("", page.partition(head)[2]).lstrip("\n")
    PAGE.write_text(f"{before}{head}{table}\n{after}", "utf-8")


if __name__ == "__main__":
    main()
