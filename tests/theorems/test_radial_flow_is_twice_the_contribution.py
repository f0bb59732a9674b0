"""J d = 2 s P d, and s P d is exactly what a demonstration adds in one layer.

docs/theory, "Flow times input". Sides: linear attention differentiated along d, and run with and
without d; the closed forms. The term of d is homogeneous of degree 2 (Euler). Derived here.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from draws import jit_numpy, seeds
from lsa_lab.models import linear_attention
from lsa_lab.theory import amplification

SHAPES = [(2, 2, "demonstrations"), (5, 3, "all")]  # n, e, keys


@partial(jit_numpy, static_argnames=("keys", "num_layers"))
def network(w_kq, w_pv, tokens, keys, num_layers):
    """J d of the first demonstration, and what leaving it out changes, without a factor 1/n."""
    weights = [jnp.broadcast_to(w, (num_layers, 1, *w.shape)) for w in (w_kq, w_pv)]
    params = linear_attention.Params(*weights)

    def answer(rows):
        run = linear_attention.forward(params, rows, keys=keys, normalise=False)
        return run.stream[-1, -1]

    along = jnp.zeros_like(tokens).at[0].set(tokens[0])
    whole, radial = jax.jvp(answer, (tokens,), (along,))
    return radial, whole - answer(tokens[1:])


@jit_numpy
def closed_forms(w_kq, w_pv, demonstration, query):
    weights_and_tokens = w_kq, w_pv, demonstration, query
    score = amplification.relevance(w_kq, demonstration, query)
    jacobian = amplification.one_shot_jacobian(*weights_and_tokens)
    return (
        jacobian @ demonstration,
        amplification.contribution(*weights_and_tokens),
        score * (w_pv @ demonstration),
    )


def disagreements(seed, shape, num_layers=1):
    n, e, keys = shape
    rng = np.random.default_rng(seed)
    w_kq, w_pv = rng.normal(size=(2, e, e))
    tokens = rng.normal(size=(n + 1, e))
    radial, added = network(w_kq, w_pv, tokens, keys, num_layers)
    stated_radial, stated_added, product = closed_forms(w_kq, w_pv, tokens[0], tokens[-1])
    scale = 1 + np.abs(stated_added).max()
    pairs = [(radial, stated_radial), (added, stated_added), (radial / 2, added), (added, product)]
    return [np.abs(a - b).max() / scale for a, b in pairs]


@pytest.mark.parametrize("shape", SHAPES)
@seeds
def test_flow_times_input_is_twice_what_the_demonstration_adds(shape, seed):
    assert max(disagreements(seed, shape)) < 1e-10


def test_control_two_layers_are_of_another_degree():
    assert min(disagreements(0, SHAPES[1], num_layers=2)) > 1e-2
