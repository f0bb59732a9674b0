"""One demonstration under gradient descent: ∂ŷ_L/∂y = (x·x_q/|x|²)(1 - Π_l (1 - η_l |x|²)).

Sides: the construction of gradient descent, differentiated by the label; the closed form. With one
step size and η|x|² < 1 the ratio of two flows falls iff the first demonstration is the longer, so
that descent equalises long relevant demonstrations and amplifies short ones. Derived here;
docs/theory, "The one-shot descent flow".
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from draws import seed_and, seeds
from lsa_lab.models import constructions, linear_attention
from lsa_lab.models.trace import layer_predictions
from lsa_lab.theory import amplification

D = 3
L = 6
closed_form = jax.jit(amplification.one_shot_descent_flow)


@partial(jax.jit, static_argnames="keys")
def network(step_sizes, x, y, x_query, keys="demonstrations"):  # [L], [L]
    """Predictions after each layer and their derivatives by y."""
    params = constructions.gradient_descent(step_sizes, len(x))

    def predictions(y):
        rows = jnp.stack([jnp.append(x, y), jnp.append(x_query, 0.0)])
        return layer_predictions(linear_attention.forward(params, rows, keys=keys))[1:]

    return predictions(y), jax.jacfwd(predictions)(y)


def disagreement(seed, d, keys="demonstrations"):
    rng = np.random.default_rng(seed)
    x, x_query, y = rng.normal(size=d), rng.normal(size=d), rng.normal()
    step_sizes = rng.uniform(0.1, 1.5, size=L) / (x @ x)
    predictions, flow = network(step_sizes, x, y, x_query, keys)
    stated = closed_form(step_sizes, x, x_query)
    written_out = (x @ x_query) / (x @ x) * (1 - np.cumprod(1 - step_sizes * (x @ x)))
    differences = [predictions - y * stated, flow - stated, flow - written_out]
    return np.abs(differences).max() / (1 + np.abs(stated).max())


@seeds
def test_the_flow_from_the_label_is_the_part_of_the_residual_that_is_gone(seed):
    assert disagreement(seed, D) < 1e-10


def test_control_a_query_that_reads_itself_breaks_it():
    assert disagreement(0, 3, keys="all") > 1e-2


def log_ratio(step_size, pair, x_query):
    flows = [network(np.full(L, step_size), x, 1.0, x_query)[1] for x in pair]
    return np.log(np.abs(flows[0] / flows[1]))


def draw(seed, lengths):
    rng = np.random.default_rng(seed)
    pair, x_query = rng.normal(size=(2, 3)), rng.normal(size=3)
    return pair * (np.array(lengths) / np.linalg.norm(pair, axis=1))[:, None], x_query


@seed_and(short=(0.2, 0.9), share=(0.2, 0.9))
def test_depth_favours_the_shorter_demonstration(seed, short, share):
    for lengths, direction in (((1.0, short), -1), ((short, 1.0), 1)):
        assert np.all(direction * np.diff(log_ratio(share, *draw(seed, lengths))) > 0)
    assert np.ptp(log_ratio(share, *draw(seed, (short, short)))) < 1e-10


@seeds
def test_its_limit_is_the_ratio_of_relevances_over_squared_lengths(seed):
    pair, x_query = draw(seed, (1.0, 0.8))
    flows = np.stack([closed_form(np.full(200, 0.5), x, x_query) for x in pair])[:, -1]
    np.testing.assert_allclose(flows, pair @ x_query / [1.0, 0.64], atol=1e-10)


def test_control_steps_that_overshoot_favour_the_shorter_in_every_second_layer_only():
    changes = np.diff(log_ratio(1.8, *draw(0, (1.0, 0.8))))
    assert set(np.sign(changes)) == {-1.0, 1.0}
