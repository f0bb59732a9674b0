"""What the moment form refuses, and that its batches and derivatives are those of the tokens."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lsa_lab import prompts
from lsa_lab.models import linear_attention, moments, transformer
from lsa_lab.models.trace import predict
from lsa_lab.tasks.linear import LinearTask, sample

PARAMS = linear_attention.Params(np.full((2, 1, 3, 3), 0.1), np.full((2, 1, 3, 3), 0.1))


@pytest.mark.parametrize(
    ("moment", "words"),
    [
        (np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]), "not symmetric"),
        (np.diag([1.0, -0.1, 1.0]), "negative eigenvalue"),
        (np.diag([1.0, np.nan, 1.0]), "not finite"),
    ],
)
def test_what_is_no_second_moment_is_refused(moment, words):
    with pytest.raises(ValueError, match=words):
        moments.layer_maps(PARAMS, jnp.asarray(moment))


def test_other_models_are_refused_in_one_sentence():
    config = transformer.Config(token_width=3, num_layers=1, heads=1, key_width=2)
    params = jax.eval_shape(transformer.init, jax.random.key(0), config)
    with pytest.raises(TypeError, match="no common layer map"):
        moments.layer_maps(params, jnp.eye(3))


@pytest.mark.parametrize(("version", "drops"), [((0, 11, 9), True), ((0, 12), False)])
def test_barriers_are_kept_where_the_compiler_would_drop_them(version, drops, monkeypatch):
    monkeypatch.setattr(jax, "__version_info__", version)
    assert bool(moments.compiler_options()) == (drops and jax.default_backend() == "cpu")


init = jax.jit(linear_attention.init, static_argnums=(1, 2, 3))
WIDE = moments._NARROW  # covariates of the narrowest tokens that are wide


# Narrow tokens: batch axis last; wide and few: the tokens; wide and many: one map a prompt.
@pytest.mark.parametrize(("d", "n"), [(3, 7), (WIDE, 7), (WIDE, moments._LONG * (WIDE + 1))])
def test_batched_predictions_are_those_of_the_tokens(d, n):
    keys = jax.random.split(jax.random.key(d), 5)
    batch = jax.jit(jax.vmap(lambda key: sample(key, LinearTask(n, d, noise_std=0.3))))(keys)
    params = init(jax.random.key(0), 3, 2, d, scale=0.1)

    def from_tokens(prompt):
        return predict(linear_attention.forward(params, prompts.tokens(prompt)))

    expected = jax.jit(jax.vmap(from_tokens))(batch)
    batched = jax.jit(moments.predictions)(params, batch)
    np.testing.assert_allclose(batched, expected, rtol=1e-10, atol=1e-12)
    second_moments = jax.jit(prompts.second_moments)(batch)
    from_moments = jax.jit(moments.predictions_from_moments)
    batched = from_moments(params, second_moments, np.asarray(batch.x_query).T)
    np.testing.assert_allclose(batched, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("num_layers", [1, 3])
def test_gradients_of_batched_predictions_are_those_of_the_tokens(num_layers):
    keys = jax.random.split(jax.random.key(1), 5)
    batch = jax.jit(jax.vmap(lambda key: sample(key, LinearTask(6, 3, noise_std=0.2))))(keys)
    params = init(jax.random.key(2), num_layers, 2, 3, scale=0.2)

    def from_tokens(params):
        def one(prompt):
            return predict(linear_attention.forward(params, prompts.tokens(prompt)))

        return (jax.vmap(one)(batch) ** 2).sum()

    def from_moments(params):
        return (moments.predictions(params, batch) ** 2).sum()

    expected, found = (
        jax.jit(jax.grad(from_tokens))(params),
        jax.jit(jax.grad(from_moments))(params),
    )
    for a, b in zip(jax.tree.leaves(expected), jax.tree.leaves(found), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-10, atol=1e-10)
