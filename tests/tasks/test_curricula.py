"""A curriculum changes what a prompt holds, never its shape; prompts from real tables."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lsa_lab import prompts
from lsa_lab.models import transformer
from lsa_lab.models.transformer import Config
from lsa_lab.tasks import curricula, linear, tables
from lsa_lab.tasks.linear import LinearTask

KEYS = jax.random.split(jax.random.key(0), 1000)


def test_a_staircase_climbs_and_stops():
    schedule = curricula.staircase(3, 8, interval=10, stride=2)
    steps = [0, 9, 10, 19, 20, 29, 30, 10**6]
    assert [int(schedule(step)) for step in steps] == [3, 3, 5, 5, 7, 7, 8, 8]
    np.testing.assert_array_equal(jax.jit(jax.vmap(schedule))(jnp.array(steps))[-2:], 8)


def test_the_first_demonstrations_come_again_until_there_are_as_many_as_before():
    prompt = linear.sample(KEYS[0], LinearTask(12, 3))
    for m in (1, 3, 8, 12):
        found = jax.jit(curricula.repeated)(prompt, m)
        np.testing.assert_array_equal(found.x, np.resize(prompt.x[:m], (12, 3)))
        np.testing.assert_array_equal(found.y, np.resize(prompt.y[:m], 12))
        np.testing.assert_array_equal(found.x_query, prompt.x_query)


def repeated_and_few(kernel, m):
    """What an attention stack predicts from m of 12 demonstrations, repeated or alone."""
    prompt = linear.sample(KEYS[0], LinearTask(12, 3, noise_std=0.1))
    few = prompt.replace(x=prompt.x[:m], y=prompt.y[:m])
    config = Config(token_width=4, num_layers=2, heads=2, key_width=4, kernel=kernel)
    params = jax.jit(transformer.init, static_argnums=1)(KEYS[1], config)
    predict = jax.jit(lambda one: transformer.predict(params, prompts.tokens(one), config))
    return predict(curricula.repeated(prompt, m)), predict(few)


@pytest.mark.parametrize("kernel", ["softmax", "linear"])
def test_a_model_cannot_tell_repeated_demonstrations_from_few(kernel):
    for m in (3, 4, 12):
        np.testing.assert_allclose(*repeated_and_few(kernel, m), atol=1e-10)


@pytest.mark.parametrize("kernel", ["softmax", "linear"])
def test_control_repeated_unequally_often_they_are_others(kernel):
    repeated, few = repeated_and_few(kernel, 8)
    assert abs(repeated - few) > 1e-6


@pytest.mark.parametrize("sparsity", [None, 2])
def test_only_active_coordinates_are_used_and_one_program_serves_all(sparsity):
    task = LinearTask(6, 5, sparsity=sparsity)

    @jax.jit
    def draw(active):
        weigh = jax.vmap(lambda key: linear.sample_weights(key, task, active))
        many = jax.vmap(lambda key: linear.sample(key, task, active))(KEYS)
        return many, weigh(jax.vmap(lambda key: jax.random.split(key)[1])(KEYS))

    for active in (1, 3, 5):
        many, weights = draw(active)
        used = np.arange(5) < active
        assert not many.x[:, :, ~used].any()
        assert not many.x_query[:, ~used].any()
        assert (many.x[:, :, used] != 0).all()
        np.testing.assert_allclose(many.y, jnp.einsum("bnd,bd->bn", many.x, weights), atol=1e-10)
        share = (np.asarray(weights) != 0).mean(0)
        expected = min((sparsity or 5) / active, 1) * used
        assert np.abs(share - expected).max() < 0.08
        if sparsity is not None:
            assert ((np.asarray(weights) != 0).sum(1) == min(sparsity, active)).all()
    assert draw._cache_size() == 1


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


def test_a_table_has_a_label_for_each_row_and_a_prompt_a_whole_number_of_them():
    table = tables.Table(jnp.ones((9, 2)), jnp.ones(5))
    with pytest.raises(AssertionError, match="one label for each row of x"):
        tables.sample(jax.random.key(0), table, 3)
    with pytest.raises(ValueError, match=r"n = 2.5: it is a whole number"):
        tables.sample(jax.random.key(0), table.replace(y=jnp.ones(9)), 2.5)


PLAIN = "größe,b,label\n1,2,3000\n2,4,1\n4,1,2\n"


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (PLAIN, "utf-8"),
        (PLAIN, "utf-8-sig"),
        (PLAIN, "utf-16"),
        (PLAIN, "latin-1"),
        (PLAIN.replace("\n", "\r\n"), "utf-8"),
        ('"größe, in m","b\nc",label\n"1", "2","3,000.0"\n2,4,1\n4,1,2\n', "utf-8"),
        ('"","a","b","y"\n"1",1,2,3000\n"2",2,4,1\n"3",4,1,2\n', "utf-8"),
        ("rownames,a,b,y\none,1,2,3000\ntwo,2,4,1\nthree,4,1,2\n", "utf-8"),
        ("a,b,y\none,1,2,3000\ntwo,2,4,1\nthree,4,1,2\n", "utf-8"),
    ],
)
def test_a_csv_is_read_with_its_last_column_as_label(tmp_path, text, encoding):
    path = tmp_path / "table.csv"
    path.write_bytes(text.encode(encoding))
    table = tables.load_csv(path)
    values = np.array([[1, 2, 3000], [2, 4, 1], [4, 1, 2]])
    expected = (values - values.mean(0)) / values.std(0)
    np.testing.assert_allclose(np.c_[table.x, table.y], expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b\n1,2\n\n,4\n", "line 4, column 'a' is missing"),
        ("\na,b\n1,2\n\n3,x\n", "line 5, column 'b': 'x'"),
        ("a,b\n1e200,2\n3e200,4\n2e200,9\n", "column 'a' is too large"),
        ("a,b\n1,2\nx,4\n", "line 3, column 'a': 'x'"),
        ("a,b\n1,2\n1,4\n", "column 'a' is constant"),
        ("a,b\n0.1,2\n0.1,4\n0.1,5\n", "column 'a' is constant"),
        ("a,b\n1,2\n", "two rows"),
        ("a,b\n1,2\n3\n", "line 3: 1 values for 2 columns"),
        ("", "header"),
        ("1,2\n3,4\n5,7\n", "numbers alone in its first line: add a line of names"),
        ("a,b\n1,2\nNA,4\n", "line 3, column 'a' is missing"),
        ('a,b\n"1,5",2\n3,4\n', "line 2, column 'a': '1,5' is no number"),
        ("a,b\n1,2\n3,\0\n", "is not a text"),
    ],
)
def test_damaged_tables_are_refused_with_the_place(tmp_path, text, words):
    path = tmp_path / "table.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=words):
        tables.load_csv(path)
