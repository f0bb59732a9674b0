"""Prompts drawn from a real table: its rows are demonstrations, a row left out is the query."""

import codecs
import csv
import io
import re
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

_ROW_NAMES = ("", "rownames", "row.names", "unnamed: 0")  # what R and pandas call their column
_MISSING = ("", "na", "n/a", "nan", "null", "?")


class Table(flax.struct.PyTreeNode):
    """Covariates and labels, each column with mean 0 and variance 1 over the table."""

    x: Array  # [rows, d]
    y: Array  # [rows]


def load_diabetes(dtype: DTypeLike | None = None) -> Table:
    """442 patients, d = 10 (Efron et al. 2004), bundled with scikit-learn; nothing is fetched."""
    from sklearn.datasets import load_diabetes as bundled

    x, y = bundled(return_X_y=True, scaled=False)
    names = ["age", "sex", "bmi", "bp", "s1", "s2", "s3", "s4", "s5", "s6", "progression"]
    return standardise(np.column_stack([x, y]), names, dtype)


def load_csv(path: str | Path, dtype: DTypeLike | None = None) -> Table:
    """Read a comma-separated file with one header line; its last column is the label.

    Values may be quoted, so "1,234.5" is 1234.5. A first column of row names, which the header
    does not name, is left out. The text is in UTF-8, UTF-16 with its mark, or Latin-1.

    Raises ValueError for a missing or non-numeric value (with its line and column), a file without
    a header, a constant column, or fewer than two rows.
    """
    text = _decode(Path(path).read_bytes())
    reader = csv.reader(io.StringIO(text, newline=""), skipinitialspace=True)
    full = [(reader.line_num, row) for row in reader if len(row) > 1 or "".join(row).strip()]
    if not full or "\0" in text:
        fault = "is empty" if not full else "is not a text"
        raise ValueError(f"{path} {fault}: it needs a header line and rows")
    names = [name.strip() for name in full[0][1]]
    if None not in map(_parse, names):
        raise ValueError(f"{path} has numbers alone in its first line: add a line of names above")
    rows = full[1:]
    if names[0].lower() in _ROW_NAMES:
        names[0] = ""
    elif rows and all(len(row) == len(names) + 1 for _, row in rows):  # as R writes them
        names.insert(0, "")
    skipped = int(names[0] == "")
    values = np.zeros((len(rows), len(names) - skipped))
    for i, (number, row) in enumerate(rows):
        if len(row) != len(names):
            raise ValueError(f"{path}, line {number}: {len(row)} values for {len(names)} columns")
        for j in range(skipped, len(names)):
            place = f"{path}, line {number}, column {names[j]!r}"
            if row[j].strip().lower() in _MISSING:
                raise ValueError(f"{place} is missing: drop the row or fill it in")
            value = _parse(row[j])
            if value is None:
                raise ValueError(f"{place}: {row[j]!r} is no number; encode it first")
            values[i, j - skipped] = value
    return standardise(values, names[skipped:], dtype)


def _decode(content: bytes) -> str:
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return content.decode("utf-16")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def _parse(text: str) -> float | None:
    """Return the number of a text, whose thousands may be separated by commas; None if none."""
    if re.fullmatch(r"\s*[+-]?\d{1,3}(,\d{3})+(\.\d*)?\s*", text):
        text = text.replace(",", "")
    try:
        return float(text)
    except ValueError:
        return None


def standardise(values: np.ndarray, names: list[str], dtype: DTypeLike | None = None) -> Table:
    """Centre every column and divide by its standard deviation; the last one is the label."""
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
    """n demonstrations and a query, all different rows, drawn uniformly."""
    chex.assert_rank([table.x, table.y], [2, 1])
    rows = table.x.shape[0]
    chex.assert_shape(table.y, (rows,), custom_message="y has one label for each row of x")
    if not 1 <= check_whole(n, "n") < rows:
        raise ValueError(f"n = {n} of {rows} rows, one kept for the query: n is 1 to {rows - 1}")
    chosen = jax.random.choice(key, rows, (n + 1,), replace=False)
    x, y = table.x[chosen], table.y[chosen]
    return Prompt(x[:-1], y[:-1], x[-1], y[-1])
