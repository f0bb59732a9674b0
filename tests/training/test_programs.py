"""A checkpoint knows its training by what is traced; the same shapes are not traced again."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from lsa_lab.training import Files, Training, fit, programs

TABLE = np.arange(2000.0)


def test_the_same_training_goes_on_though_its_functions_were_written_anew(tmp_path):
    runs = [
        fit(
            Training(
                lambda params, batch: ((params["w"] * batch).sum() - 1) ** 2,
                lambda key: jax.random.normal(key, (3,)),
                optax.adam(1e-2),
                6,
            ),
            {"w": jnp.ones(3)},
            jax.random.key(0),
            files=Files(tmp_path / "run.ckpt"),
        )
        for _ in range(2)
    ]
    np.testing.assert_array_equal(runs[0].params["w"], runs[1].params["w"])


def test_a_long_constant_is_part_of_the_program():
    def shifted(table):
        return programs.digest(lambda x: jnp.cumsum(x * jnp.asarray(table)), jnp.ones(2000))

    other = TABLE.copy()
    other[1000] += 1
    assert shifted(TABLE) == shifted(TABLE.copy())
    assert shifted(TABLE) != shifted(other)


def test_a_function_of_the_host_has_no_digest():
    def called(x):
        return jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x)

    def scanned(x):
        return jax.lax.scan(lambda c, t: (c + called(t), None), x, x[None])[0]

    for function in (called, jax.jit(called), scanned):
        with pytest.raises(ValueError, match="pure_callback calls a function of the host"):
            programs.digest(function, jnp.ones(3))


def counted(function):
    """The function, and a list that grows by one whenever its body runs."""
    calls = []

    @functools.wraps(function)
    def body(*arguments):
        calls.append(1)
        return function(*arguments)

    return body, calls


def test_a_second_fit_traces_nothing_whatever_its_number_of_steps_and_its_label():
    loss, calls = counted(lambda w, batch: ((w - batch) ** 2).mean())
    rule = optax.sgd(0.1)

    def draw(key):
        return jax.random.normal(key, (4,))

    def train(**changed):
        recipe = Training(**dict(loss=loss, sample=draw, optimizer=rule, steps=4) | changed)
        return fit(recipe, jnp.zeros(()), jax.random.key(0), chunk=2)

    first, count = train(), len(calls)
    assert train().params == first.params
    assert len(calls) == count
    assert train(steps=6, label="longer").history["loss"].shape == (6,)
    assert len(calls) == count
    train(sample=lambda key: 2 * draw(key))
    assert len(calls) > count  # another function is another program


FACTORISED = """
import jax, jax.numpy as jnp, optax
from lsa_lab.training import Training, fit

def draw(key):
    x = jax.random.normal(key, (1024, 8, 8))
    return x @ x.swapaxes(1, 2) + 2 * jnp.eye(8)[None]

def loss(w, batch):
    return (jnp.linalg.solve(batch, jnp.broadcast_to(w[None, :, None], (1024, 8, 1))) ** 2).mean()

training = Training(loss, draw, optax.sgd(0.1), 60)
print(fit(training, jnp.ones((4, 8)), jax.random.split(jax.random.key(0), 4)).status)
"""


def test_runs_that_factorise_do_not_wait_for_each_other_for_ever(python):
    left = python(FACTORISED, timeout=120)
    assert left.returncode == 0, left.stderr
