"""The layout of Ahn et al.: their forward in plain numpy, round trips, what has no place."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lsa_lab.interop import ahn, to_ahn
from lsa_lab.models import constructions, linear_attention
from lsa_lab.models.trace import layer_predictions

L, H, D, N = 3, 2, 3, 5
ROWS = np.random.default_rng(0).normal(size=(N + 1, D + 1))
ROWS[-1, -1] = 0


def draw(*shape):
    return 0.5 * np.random.default_rng(1).normal(size=shape)


def theirs(allparam, rows, full=False):
    """Their predictions after each layer, from the equations, one sum at a time."""
    z, predictions = rows.copy(), []
    n, d = rows.shape[0] - 1, rows.shape[1] - 1
    for heads in np.asarray(allparam):
        update = np.zeros_like(z)
        for p, q in heads:
            if not full:
                p, q = np.pad(p, ((0, 1), (0, 1))), np.pad(q, ((0, 1), (0, 1)))
                p[d, d] = 1
            for t in range(n + 1):
                for i in range(n):
                    update[t] += (z[t] @ q @ z[i]) * (p @ z[i]) / n
        z = z + update
        predictions.append(-z[n, d])
    return np.array(predictions)


def ours(params, rows):
    return layer_predictions(linear_attention.forward(params, jnp.asarray(rows)))[1:]


@pytest.mark.parametrize("full", [False, True])
def test_a_random_model_predicts_as_theirs(full):
    allparam = draw(L, H, 2, D + full, D + full)
    expected = theirs(allparam, ROWS, full)
    np.testing.assert_allclose(ours(ahn(allparam, full=full), ROWS), expected, rtol=1e-9)
    # Control: the key on Q's left, as in the paper, is another model.
    flipped = allparam.copy()
    flipped[:, :, 1] = flipped[:, :, 1].swapaxes(2, 3)
    assert np.abs(ours(ahn(flipped, full=full), ROWS) - expected).max() > 1e-2


@pytest.mark.parametrize("full", [False, True])
def test_descent_in_their_layout_is_descent(full):
    steps = draw(L, D, D)
    params = constructions.preconditioned(jnp.asarray(steps))
    expected = ours(params, ROWS)
    np.testing.assert_allclose(theirs(to_ahn(params, full=full), ROWS, full), expected, rtol=1e-9)
    back = ahn(to_ahn(params, full=full), full=full)
    np.testing.assert_allclose(ours(back, ROWS), expected, rtol=1e-9)


def test_what_has_no_place_is_refused():
    params = linear_attention.init(jax.random.key(0), L, H, D)
    with pytest.raises(ValueError, match=r"w_kq couples covariates and label.*full=True"):
        to_ahn(params)
    blocks = constructions.gradient_descent(jnp.ones(L), D)
    with pytest.raises(ValueError, match="w_kq has a label-label entry"):
        to_ahn(blocks.replace(w_kq=blocks.w_kq.at[0, 0, D, D].set(1)))
    with pytest.raises(ValueError, match="whose label-label entry is 0, not 1"):
        to_ahn(blocks.replace(w_pv=0 * blocks.w_pv))
    with pytest.raises(TypeError, match=r"expected linear_attention\.Params: .*transformer\.merge"):
        to_ahn({"w_kq": params.w_kq, "w_pv": params.w_pv})
    with pytest.raises(AssertionError, match="entry 0 of the third axis is P"):
        ahn(np.ones((L, H, D, D)))
    with pytest.raises(AssertionError, match="entry 0 of the third axis is P"):
        ahn(np.ones((L, H, 2, D, D + 1)))
