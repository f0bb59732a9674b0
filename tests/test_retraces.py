"""New numbers of the same shape must not be traced again."""

import functools

import jax
import jax.numpy as jnp
import optax
import pytest

from lsa_lab.models import linear_attention, transformer
from lsa_lab.models.trace import predict
from lsa_lab.models.transformer import Config
from lsa_lab.training import Training, fit


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
