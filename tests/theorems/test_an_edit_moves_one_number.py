"""After fixed demonstrations linear attention answers c·x, and edited c'·x: R² of the best affine
map between the two is cos²(c, c') in the metric of the queries' covariance.

docs/theory, "An edit moves one number".
"""

import jax
import numpy as np
import pytest

from draws import draw_stack, jit_numpy, seeds
from lsa_lab.models import linear_attention
from lsa_lab.models.linear_attention import Params
from lsa_lab.models.trace import layer_predictions
from lsa_lab.prompts import Prompt, tokens

D, N, QUERIES = 4, 7, 40


def answer(params, x, y, query):  # [L+1]
    prompt = Prompt(x, y, query, query[0])
    return layer_predictions(linear_attention.forward(params, tokens(prompt)))


answers = jit_numpy(jax.vmap(answer, (None, None, None, 0)))  # [Q, L+1]
implied = jit_numpy(jax.jacobian(answer, 3))  # [L+1, d]


def draw(seed, layers):
    """A stack of one head a layer, demonstrations, and queries."""
    rng = np.random.default_rng(seed)
    stack = draw_stack(rng, layers, 1, D + 1, 0.5)
    queries = rng.normal(size=D) + rng.normal(size=(QUERIES, D)) @ rng.normal(size=(D, D))
    return rng, stack, rng.normal(size=(N, D)), rng.normal(size=N), queries


def r2(before, after):
    rows = np.stack([before, np.ones_like(before)], axis=1)
    residuals = after - rows @ np.linalg.lstsq(rows, after, rcond=None)[0]
    return 1 - (residuals @ residuals) / ((after - after.mean()) ** 2).sum()


def squared_cosine(left, right, covariance):
    gram = np.stack([left, right]) @ covariance @ np.stack([left, right]).T
    return gram[0, 1] ** 2 / (gram[0, 0] * gram[1, 1])


@pytest.mark.parametrize("layers", [1, 3])
@seeds
def test_r2_is_the_squared_cosine_of_implied_weights(layers, seed):
    rng, params, x, y, queries = draw(seed, layers)
    noise = np.zeros_like(params.w_kq)
    noise[rng.integers(layers)] = rng.normal(size=(D + 1, D + 1)) / 3
    stacks = params, params.replace(w_kq=params.w_kq + noise)
    before, after = (answers(stack, x, y, queries)[:, -1] for stack in stacks)
    c, edited = (implied(stack, x, y, queries[0])[-1] for stack in stacks)
    covariance = np.cov(queries.T)
    np.testing.assert_allclose(r2(before, after), squared_cosine(c, edited, covariance), atol=1e-7)
    expected = squared_cosine(c, edited - c, covariance)
    np.testing.assert_allclose(r2(before, after - before), expected, atol=1e-6)


def error_of_multiple(seed, turn_p=0, turn_k=0):
    """The largest difference from κ ŷ after P's last row and K are scaled, or turned too."""
    rng, params, x, y, queries = draw(seed, 1)
    scale_p, scale_k = rng.uniform(0.5, 2, 2)
    w_kq, w_pv = scale_k * params.w_kq, params.w_pv + rng.normal(size=params.w_pv.shape)
    w_pv[..., -1, :] = scale_p * params.w_pv[..., -1, :] + turn_p * rng.normal(size=D + 1)
    w_kq[..., -1] += 1  # the column that no query reads, as its label slot is empty
    w_kq[..., :-1] += turn_k * rng.normal(size=(D + 1, D))
    before, after = (answers(p, x, y, queries)[:, 1] for p in (params, Params(w_kq, w_pv)))
    return np.abs(after - scale_p * scale_k * before).max() / np.abs(before).max()


def distance_from_line(seed, layer, factor=0.4, layers=3):
    """The largest difference from (1 - κ) ŷ_{L-1} + κ ŷ_L after scaling what a layer writes."""
    _, params, *prompts = draw(seed, layers)
    scale = np.where(np.arange(layers) == layer, factor, 1.0)[:, None, None, None]
    edited = answers(params.replace(w_pv=scale * params.w_pv), *prompts)[:, -1]
    before, last = answers(params, *prompts)[:, -2:].T
    stated = (1 - factor) * before + factor * last
    return np.abs(edited - stated).max() / np.abs(stated).max()


@seeds
def test_scaling_one_layer_gives_a_multiple_and_the_last_of_many_moves_along_a_line(seed):
    """The multiple is the same on every prompt; the line is that of the last two answers."""
    assert error_of_multiple(seed) < 1e-10
    assert distance_from_line(seed, 2) < 1e-10
    # Control: turning the row or the key.
    assert min(error_of_multiple(seed, turn_p=0.3), error_of_multiple(seed, turn_k=0.3)) > 1e-3
    if seed == 0:  # Control: scaling an earlier layer
        assert np.median([distance_from_line(other, 1) for other in range(10)]) > 1e-3


@pytest.mark.parametrize("rank", [1, 3])
@seeds
def test_truncated_scores_keep_their_share_of_the_directions(rank, seed):
    """Over prompts turned among the axes R² has the mean r / d, where K = I and P reads labels."""
    rng, _, x, y, _ = draw(seed, 1)
    queries = np.concatenate([np.eye(D), -np.eye(D)] * 5)  # of covariance ∝ I
    w_pv = np.zeros((1, 1, D + 1, D + 1))
    w_pv[..., -1, -1] = rng.uniform(0.5, 2)
    stacks = [Params(np.diag(1.0 * (np.arange(D + 1) < r))[None, None], w_pv) for r in (D, rank)]
    turned = [np.roll(x, i, 1) for i in range(D)]
    values = [r2(*(answers(stack, z, y, queries)[:, 1] for stack in stacks)) for z in turned]
    np.testing.assert_allclose(np.mean(values), rank / D, atol=1e-8)
