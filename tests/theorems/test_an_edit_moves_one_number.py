"""When an edit of weights is an affine map of the answer (docs/theory, "An edit moves one number").

After fixed demonstrations linear attention answers c·x, edited c'·x: R² of the best affine map is
cos²(c, c') in the metric of the queries' covariance.

Sides: least squares over answers of the stack; the two gradients c and c', or a multiple.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from draws import seeds
from lsa_lab.models import linear_attention
from lsa_lab.models.linear_attention import Params
from lsa_lab.models.trace import layer_predictions
from lsa_lab.prompts import Prompt, tokens

D, N, QUERIES = 4, 7, 40


@jax.jit
def answer(params, x, y, query):
    prompt = Prompt(x, y, query, jnp.zeros(()))
    return layer_predictions(linear_attention.forward(params, tokens(prompt)))[-1]


answers = jax.jit(jax.vmap(answer, (None, None, None, 0)))
implied = jax.jit(jax.grad(answer, 3))


def draw(seed, layers):
    """A stack of one head a layer, demonstrations, and queries."""
    rng = np.random.default_rng(seed)
    stack = Params(*rng.normal(size=(2, layers, 1, D + 1, D + 1)) / 2)
    queries = rng.normal(size=D) + rng.normal(size=(QUERIES, D)) @ rng.normal(size=(D, D))
    return rng, stack, rng.normal(size=(N, D)), rng.normal(size=N), queries


def r2(before, after):
    rows = np.stack([before, np.ones_like(before)], axis=1)
    left = after - rows @ np.linalg.lstsq(rows, after, rcond=None)[0]
    return 1 - (left @ left) / ((after - after.mean()) ** 2).sum()


def cosine(left, right, covariance):
    rows = np.stack([left, right])
    gram = rows @ covariance @ rows.T
    return gram[0, 1] ** 2 / (gram[0, 0] * gram[1, 1])


@pytest.mark.parametrize("layers", [1, 3])
@seeds
def test_r2_is_the_squared_cosine_of_implied_weights(layers, seed):
    rng, params, x, y, queries = draw(seed, layers)
    at, noise = rng.integers(layers), rng.normal(size=(D + 1, D + 1)) / 3
    edited = params.replace(
        w_kq=params.w_kq + noise * (np.arange(layers) == at)[:, None, None, None]
    )
    before, after = (np.asarray(answers(each, x, y, queries)) for each in (params, edited))
    c, own = (np.asarray(implied(each, x, y, queries[0])) for each in (params, edited))
    covariance = np.cov(queries.T)
    np.testing.assert_allclose(r2(before, after), cosine(c, own, covariance), atol=1e-7)
    change = (after - after.mean()) - (before - before.mean())
    np.testing.assert_allclose(r2(before, change), cosine(c, own - c, covariance), atol=1e-6)


def multiple(seed, turn_p, turn_k):
    """The largest miss of κ ŷ after P's last row and K are scaled, or turned too."""
    rng, params, x, y, queries = draw(seed, 1)
    scale_p, scale_k = rng.uniform(0.5, 2, 2)
    w_kq, w_pv = scale_k * params.w_kq, params.w_pv + rng.normal(size=params.w_pv.shape)
    w_pv[..., -1, :] = scale_p * params.w_pv[..., -1, :]
    w_kq[..., -1] += 1  # the column that no query reads, as its label slot is empty
    w_pv[..., -1, :] += turn_p * rng.normal(size=D + 1)
    w_kq[..., :-1] += turn_k * rng.normal(size=(D + 1, D))
    before, after = (
        np.asarray(answers(each, x, y, queries)) for each in (params, Params(w_kq, w_pv))
    )
    return np.abs(after - scale_p * scale_k * before).max() / np.abs(before).max()


@seeds
def test_one_layer_scaled_in_what_is_read_is_a_multiple_on_every_prompt(seed):
    assert multiple(seed, 0, 0) < 1e-10


@pytest.mark.parametrize("turn", [(0.3, 0), (0, 0.3)])
@seeds
def test_control_a_turned_row_or_a_turned_key_is_no_multiple(turn, seed):
    assert multiple(seed, *turn) > 1e-3


@pytest.mark.parametrize("rank", [1, 3])
@seeds
def test_truncated_scores_keep_their_share_of_the_directions(rank, seed):
    """Over prompts turned among the axes R² has the mean r / d, where K = I and P reads labels."""
    rng, _, x, y, _ = draw(seed, 1)
    queries = np.concatenate([np.eye(D), -np.eye(D)])  # of covariance ∝ I
    w_pv = np.zeros((1, 1, D + 1, D + 1))
    w_pv[..., -1, -1] = rng.uniform(0.5, 2)
    scores = [np.diag((np.arange(D + 1) < r).astype(float))[None, None] for r in (D, rank)]
    stacks = [Params(each, w_pv) for each in scores]
    values = []
    for turned in (np.roll(x, i, 1) for i in range(D)):
        values.append(r2(*(np.asarray(answers(each, turned, y, queries)) for each in stacks)))
    np.testing.assert_allclose(np.mean(values), rank / D, atol=1e-8)
