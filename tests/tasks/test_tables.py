"""Prompts from real tables."""

import jax
import numpy as np
import pytest

from lsa_lab.tasks import tables


def test_diabetes_is_standardised_and_a_prompt_holds_different_rows_of_it():
    table = tables.load_diabetes()
    assert table.x.shape == (442, 10)
    for columns in (table.x, table.y[:, None]):
        np.testing.assert_allclose(columns.mean(0), 0, atol=1e-10)
        np.testing.assert_allclose(columns.std(0), 1, atol=1e-10)
    prompt = tables.sample(jax.random.key(0), table, 441)
    rows = np.column_stack([np.vstack([prompt.x, prompt.x_query]), [*prompt.y, prompt.y_query]])
    everything = np.column_stack([table.x, table.y])
    in_order, expected = (r[np.lexsort(r.T)] for r in (rows, everything))
    np.testing.assert_array_equal(in_order, expected)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "table.csv"


@pytest.mark.parametrize(
    "text",
    ["größe,b,y\n1,2,3000\n2,4,1\n4,1,2\n", '\ufeff"a,b",c,d\r\n"1",2,3e3\r\n2,4,1\r\n4,1,2'],
)
def test_a_csv_is_read_with_its_last_column_as_label(path, text):
    path.write_bytes(text.encode())
    table = tables.load_csv(path)
    values = np.array([[1, 2, 3000], [2, 4, 1], [4, 1, 2]])
    expected = (values - values.mean(0)) / values.std(0)
    np.testing.assert_allclose(np.c_[table.x, table.y], expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        *(("a,b\n1,2\n,4\n", "row"), ("a,b\n1,2\nNA,4\n", "NA"), ("a,b\n1,nan\n2,4\n", "'b'")),
        *(("a,b\n1e200,2\n3e200,4\n2e200,9\n", "'a'"), ("", "empty"), ("a,b\n1,2\n", "two rows")),
        *(("a,b\n0.1,2\n0.1,4\n0.1,5\n", "'a' is constant"), ("a,b\n1,2\n3\n", "columns")),
        ("a,b,c\n1,2\n3,4\n", "3 column names"),
    ],
)
def test_damaged_tables_are_refused(path, text, words):
    path.write_text(text)
    with pytest.raises(ValueError, match=words):
        tables.load_csv(path)
