"""The experiment on a shift: no patient is in two of the groups that a real table is split into."""

import jax
import numpy as np

from experiments.one_layer.covariate_shift.compute import split
from lsa_lab.tasks import tables


def test_groups_are_disjoint_rows_of_the_table():
    table = tables.load_diabetes()
    groups = split(table, 12, jax.random.key(0))
    assert groups.x.shape == (12, 36, 10)
    rows = np.column_stack([groups.x.reshape(-1, 10), groups.y.reshape(-1)])
    assert len(np.unique(rows, axis=0)) == 12 * 36
    whole = {tuple(row) for row in np.column_stack([table.x, table.y])}
    assert {tuple(row) for row in rows} <= whole
