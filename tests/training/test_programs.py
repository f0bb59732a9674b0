"""A checkpoint knows its training by what is traced; the same shapes are not traced again."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from lsa_lab import training
from lsa_lab.models import linear_attention, transformer
from lsa_lab.models.trace import predict
from lsa_lab.models.transformer import Config
from lsa_lab.training import Files, Training, fit, programs


def loss(params, batch):
    return ((params["w"] * batch).sum() - 1) ** 2


def sample(key):
    return jax.random.normal(key, (3,))


def fit_kept(path, loss=loss, sample=sample, optimizer=None):
    optimizer = optimizer or optax.adam(1e-2)
    task = Training(loss, sample, optimizer, 6)
    params = {"w": jnp.ones(3)}
    return training.fit(task, params, jax.random.key(0), files=Files(path), chunk=2)


TABLE = np.arange(2000.0)


@pytest.mark.parametrize(
    ("other", "name"),
    [
        ({"loss": lambda params, batch: 2 * loss(params, batch)}, "loss"),
        ({"sample": lambda key: 2 * sample(key)}, "sample"),
        ({"optimizer": optax.adam(1e-3)}, "optimizer"),
    ],
)
def test_the_checkpoint_of_another_training_is_refused_by_what_differs(tmp_path, other, name):
    fit_kept(tmp_path / "run.ckpt")
    with pytest.raises(ValueError, match=f"has ({name})"):
        fit_kept(tmp_path / "run.ckpt", **other)


def test_the_same_training_goes_on_though_its_functions_were_written_anew(tmp_path):
    first = fit_kept(tmp_path / "run.ckpt")
    again = fit_kept(
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


def plain_config(kernel):
    return Config(token_width=3, num_layers=2, heads=(2, 1), key_width=2, kernel=kernel)


def draw_linear(key):
    return linear_attention.init(key, 2, 2, d=2)


def linear_loss(params, tokens):
    return jnp.square(
        jax.vmap(lambda t: predict(linear_attention.forward(params, t)))(tokens)
    ).sum()


def draw_transformer(key, kernel):
    return transformer.init(key, plain_config(kernel))


def transformer_loss(params, tokens, kernel):
    config = plain_config(kernel)
    return jnp.square(jax.vmap(transformer.predict, (None, 0, None))(params, tokens, config)).sum()


MODELS = {"linear_attention": (draw_linear, linear_loss)} | {
    kernel: (
        functools.partial(draw_transformer, kernel=kernel),
        functools.partial(transformer_loss, kernel=kernel),
    )
    for kernel in ("softmax", "linear")
}


def counted(function):
    """The function, and a list that grows by one whenever its body runs."""
    calls = []

    @functools.wraps(function)
    def body(*arguments):
        calls.append(1)
        return function(*arguments)

    return body, calls


def arguments(draw, seed, batch=3):
    key_params, key_tokens = jax.random.split(jax.random.key(seed))
    return draw(key_params), jax.random.normal(key_tokens, (batch, 5, 3))


@pytest.mark.parametrize("name", MODELS)
def test_a_forward_is_traced_once(name):
    draw, loss = MODELS[name]
    body, calls = counted(loss)
    compiled = jax.jit(body)
    for seed in range(3):
        compiled(*arguments(draw, seed))
    assert len(calls) == 1
    compiled(*arguments(draw, 0, batch=4))  # the counter does count
    assert len(calls) == 2


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
