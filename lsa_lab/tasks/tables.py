"""Prompts from a real table: some of its rows are demonstrations, another one is the query."""

import csv
from pathlib import Path

import chex
import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import DTypeLike

from lsa_lab.arguments import check_whole
from lsa_lab.prompts import Prompt


class Table(flax.struct.PyTreeNode):
    """Covariates and labels, each column with mean 0 and variance 1 over the table."""

    x: Array  # [rows, d]
    y: Array  # [rows]


def load_diabetes(dtype: DTypeLike | None = None) -> Table:
    """Return 442 patients, d = 10 (Efron et al. 2004), which scikit-learn includes."""
    from sklearn import datasets

    x, y = datasets.load_diabetes(return_X_y=True, scaled=False)
    names = ["age", "sex", "bmi", "bp", "s1", "s2", "s3", "s4", "s5", "s6", "progression"]
    return standardise(np.column_stack([x, y]), names, dtype)


def load_csv(path: str | Path, dtype: DTypeLike | None = None) -> Table:
    """Read a comma-separated UTF-8 file: names in the first line, labels in the last column.

    Raises ValueError for a missing or non-numeric value (with its row and column), lines of
    different lengths, a constant column, or fewer than two rows.
    """
    with open(path, encoding="utf-8-sig", newline="") as file:
        names = next(csv.reader(file), None)
        if names is None:
            raise ValueError(f"{path} is empty: it needs a line of names, and rows")
        values = np.loadtxt(file, delimiter=",", quotechar='"', ndmin=2)
    if values.shape[1] != len(names):
        raise ValueError(f"{path}: {values.shape[1]} values in a row for {len(names)} column names")
    return standardise(values, names, dtype)


def standardise(values: np.ndarray, names: list[str], dtype: DTypeLike | None = None) -> Table:
    """Centre every column and divide it by its standard deviation; the last one is the label."""
    if values.ndim != 2 or values.shape[0] < 2 or values.shape[1] < 2:
        raise ValueError(f"a table of shape {values.shape}: it needs two rows and two columns")
    bad_rows, bad_columns = np.nonzero(~np.isfinite(values))
    if len(bad_rows):
        column, count = names[bad_columns[0]], len(bad_rows)
        raise ValueError(
            f"{count} missing or infinite values, the first in row {bad_rows[0] + 1} of column "
            f"{column!r}: drop those rows or fill them in"
        )
    with np.errstate(over="ignore"):
        spread = values.std(axis=0)
    if not np.isfinite(spread).all():
        column = names[int(np.argmin(np.isfinite(spread)))]
        raise ValueError(f"column {column!r} is too large to square: give it in another unit")
    # A column of equal decimals has a spread of rounding errors, not of zero.
    constant = spread <= 1e-12 * np.abs(values).max(axis=0)
    if constant.any():
        raise ValueError(f"column {names[int(np.argmax(constant))]!r} is constant: leave it out")
    scaled = jnp.asarray((values - values.mean(axis=0)) / spread, dtype)
    return Table(x=scaled[:, :-1], y=scaled[:, -1])


def sample(key: Array, table: Table, n: int) -> Prompt:
    """Draw n demonstrations and a query: different rows, uniformly."""
    chex.assert_rank([table.x, table.y], [2, 1])
    rows = table.x.shape[0]
    chex.assert_shape(table.y, (rows,), custom_message="y has one label for each row of x")
    if not 1 <= check_whole(n, "n") < rows:
        raise ValueError(f"n = {n} of {rows} rows, one kept for the query: n is 1 to {rows - 1}")
    chosen = jax.random.choice(key, rows, (n + 1,), replace=False)
    x, y = table.x[chosen], table.y[chosen]
    return Prompt(x[:-1], y[:-1], x[-1], y[-1])
