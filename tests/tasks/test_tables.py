"""Prompts from real tables, and what damaged tables are told."""

import jax
import numpy as np
import pytest

from lsa_lab.tasks import tables


def test_diabetes_is_standardised():
    table = tables.load_diabetes()
    assert table.x.shape == (442, 10)
    for columns in (table.x, table.y[:, None]):
        np.testing.assert_allclose(columns.mean(0), 0, atol=1e-10)
        np.testing.assert_allclose(columns.std(0), 1, atol=1e-10)


def test_a_prompt_holds_different_rows_of_the_table():
    table = tables.load_diabetes()
    prompt = tables.sample(jax.random.key(0), table, 441)
    rows = np.concatenate([prompt.x, prompt.x_query[None]])
    order = np.lexsort(rows.T)
    np.testing.assert_array_equal(rows[order], np.asarray(table.x)[np.lexsort(table.x.T)])


def test_a_csv_is_read_with_its_last_column_as_label(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a,b,label\n1,2,3\n2,4,1\n4,1,2\n")
    table = tables.load_csv(path)
    assert table.x.shape == (3, 2)
    assert int(table.y.argmax()) == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b\n1,2\n,4\n", "1 missing .* row 2 of column 'a'"),
        ("a,b\n1,2\nx,4\n", "line 3, column 'a': 'x'"),
        ("a,b\n1,2\n1,4\n", "column 'a' is constant"),
        ("a,b\n0.1,2\n0.1,4\n0.1,5\n", "column 'a' is constant"),
        ("a,b\n1,2\n", "two rows"),
        ("a,b\n1,2\n3\n", "line 3: 1 values for 2 columns"),
        ("", "header"),
    ],
)
def test_damaged_tables_are_refused_with_the_place(tmp_path, text, words):
    path = tmp_path / "table.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=words):
        tables.load_csv(path)
