"""A checkpoint knows which training it is of, by the programs that the training traces."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from lsa_lab import training
from lsa_lab.training import Files, Training, programs


def loss(params, batch):
    return ((params["w"] * batch).sum() - 1) ** 2


def sample(key):
    return jax.random.normal(key, (3,))


def fit(path, loss=loss, sample=sample, optimizer=None, w=1.0):
    optimizer = optimizer or optax.adam(1e-2)
    task = Training(loss, sample, optimizer, 6)
    params = {"w": jnp.full(3, w)}
    return training.fit(task, params, jax.random.key(0), files=Files(path), chunk=2)


TABLE = np.arange(2000.0)


@pytest.mark.parametrize(
    ("other", "name"),
    [
        ({"loss": lambda params, batch: 2 * loss(params, batch)}, "loss"),
        ({"sample": lambda key: 2 * sample(key)}, "sample"),
        ({"optimizer": optax.adam(1e-3)}, "optimizer"),
        ({"optimizer": optax.sgd(1e-2)}, "optimizer|layout|params"),
        ({"w": 2.0}, "initial params"),
    ],
)
def test_the_checkpoint_of_another_training_is_refused_by_what_differs(tmp_path, other, name):
    fit(tmp_path / "run.ckpt")
    with pytest.raises(ValueError, match=f"has ({name})"):
        fit(tmp_path / "run.ckpt", **other)


def test_the_same_training_goes_on_though_its_functions_were_written_anew(tmp_path):
    first = fit(tmp_path / "run.ckpt")
    again = fit(
        tmp_path / "run.ckpt",
        loss=lambda weights, examples: ((weights["w"] * examples).sum() - 1) ** 2,
        optimizer=optax.adam(1e-2),
    )
    np.testing.assert_array_equal(again.params["w"], first.params["w"])


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
