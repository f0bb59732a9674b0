"""The experiment on encoded demonstrations: encoded flows are the flows, and what they cost."""

import jax
import numpy as np
import pytest

from experiments.flow.offline_encoding import costs, encodings
from lsa_lab.models.linear_attention import Params
from lsa_lab.selection import scores


def draw(m=12, e=4, layers=3):
    rng = np.random.default_rng(0)
    weights = 0.3 * rng.normal(size=(2, layers, 1, e, e))
    return Params(*weights), rng.normal(size=(m, e)), np.append(rng.normal(size=e - 1), 0.0)


def test_flows_of_the_whole_pool_are_linear_in_the_query():
    params, pool, query = draw()
    encoded = jax.jit(encodings.together)(params, pool)
    online = jax.jit(encodings.online)(params, pool, query)
    np.testing.assert_allclose(encodings.score(encoded, query), online, rtol=1e-10)
    alone = encodings.score(jax.jit(encodings.alone)(params, pool), query)
    assert np.abs(alone / online - 1).max() > 0.1


@pytest.mark.parametrize("way", ["Eq. 2, encoded", "pool, encoded"])
def test_the_compiler_counts_what_is_counted_by_hand(way):
    params, pool, query = draw(m=200, e=9)
    program, _, kept = costs.programs(params, pool, query)[way]
    counted = program.cost_analysis()["flops"]
    assert abs(counted / costs.by_hand(*pool.shape)[way] - 1) < 0.25
    most = {"Eq. 2, encoded": 4 * pool.size, "pool, encoded": pool.size * pool.shape[1]}
    assert kept <= most[way]


def test_the_encoding_of_one_layer_gives_the_square_of_equation_2():
    params, pool, query = draw(layers=1)
    squares = scores.grads(encodings.one_layer(params, pool), query)
    u = params.w_kq[0, 0] @ query
    flows = [(d @ u) * params.w_pv[0, 0] + np.outer(params.w_pv[0, 0] @ d, u) for d in pool]
    np.testing.assert_allclose(squares, [(flow**2).sum() for flow in flows], rtol=1e-10)
