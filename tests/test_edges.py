"""Every range up to its edge: the last value that has a meaning, and the first that has none.

A call is given what it takes, and what it refuses. Most mutants of a check move its edge by one.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lsa_lab import estimators, prompts
from lsa_lab.analyses import amplification, clipping, disparity, heads
from lsa_lab.models import linear_attention, sparse_constructions, transformer
from lsa_lab.models.transformer_config import Config
from lsa_lab.prompts import Prompt
from lsa_lab.selection import baselines, diversity, gradient_matching, oracles, scores
from lsa_lab.tasks import tables
from lsa_lab.tasks.linear import LinearTask
from lsa_lab.tasks.pools import PoolTask
from lsa_lab.theory import asymptotics, generalization, risk

INF = float("inf")
KEY = jax.random.key(0)
ROWS = np.random.default_rng(0).normal(size=(5, 3))
PROMPT = Prompt(*map(jnp.asarray, (ROWS[:, :2], ROWS[:, 2], ROWS[0, :2], 0.0)))
TABLE = tables.Table(jnp.asarray(ROWS[:, :2]), jnp.asarray(ROWS[:, 2]))
UPDATES = jnp.ones((3, 1, 2, 2))
POOL = dict(m=4, d=2)
TWO = dict(shares=(0.5, 0.5))


def read(num_tokens, layout):
    """A transformer's tokens, of which there are as many; it knows three positions."""
    keys = "causal" if layout == "interleaved" else "demonstrations"
    config = Config(2, 1, 1, 1, num_positions=3, layout=layout, keys=keys)
    tokens = jnp.asarray(ROWS[:num_tokens, :2])
    return transformer.forward(transformer.init(KEY, config), tokens, config)


EDGES = {  # a call, what it takes, what it refuses
    "repeated demonstrations": (lambda m: prompts.repeat_demonstrations(PROMPT, m), [1, 5], [0, 6]),
    "sparsity of a linear task": (lambda s: LinearTask(4, 3, sparsity=s), [1, 3], [0, 4]),
    "rows of a table": (lambda n: tables.sample(KEY, TABLE, n), [1, 4], [0, 5]),
    "the shape of a table": (
        lambda values: tables.standardise(values, ["a", "b", "c"]),
        [ROWS[:2, :2]],
        [ROWS[:1], ROWS[:, :1], ROWS[0]],
    ),
    "a pool": (
        lambda changes: PoolTask(**POOL | changes),
        [
            *({"shares": (0.0, 1.0)}, {"num_weights": 1}, {"copies": 0}, {"separation": 0}),
            *({"flips": 0}, {"flips": 1}, {"closeness": 0}, {"closeness": 1}, {"tail": 2.1}),
            *({"labels": "cluster"} | TWO, {"num_weights": "cluster"}, {"shares": (1 - 5e-7,)}),
        ],
        [
            *({"shares": (-0.1, 1.1)}, {"shares": (0.9,)}, {"shares": (1.1,)}, {"num_weights": 0}),
            *({"copies": 1}, {"copies": -0.1}, {"separation": INF}, {"flips": 1.1}, {"tail": 2}),
            *({"flips": -0.1}, {"closeness": 1.1}, {"labels": "cluster"}, {"labels": "clusters"}),
            *({"m": 0}, {"separation": -0.1}, {"noise_std": -0.1}, {"shares": (1 - 2e-6,)}),
        ],
    ),
    "least squares": (lambda n: risk.ols(n, 3, 1.0), [5], [4, 3]),
    "the shortest interpolator": (lambda n: risk.min_norm(n, 3, 1.0), [1], [2, 0]),
    "the sizes of a bound": (
        lambda given: risk.rotation_invariant_bound(*given),
        [(1, 1, 0.0), (1, 2, 1.0, 0.1)],
        [(0, 1, 0.0), (1, 0, 0.0), (1, 1, -0.1), (1, 1, INF), (1, 1, 1.0, 0), (1, 1, 1.0, INF)],
    ),
    "ratios of sizes": (
        lambda given: asymptotics.ridgeless_risk(*given),
        [(0.1, INF, INF, 0)],
        [(0, 1, 1, 0), (1, 0, 1, 0), (1, 1, 0, 0), (INF, 1, 1, 0), (1, 1, 1, -0.1)],
    ),
    "a ridge": (lambda penalty: asymptotics.ridge_risk(1, 1, 1, 0, penalty), [0.1], [0, -0.1]),
    "a bound on the gap": (
        lambda given: generalization.trajectory_bound(UPDATES, *given),
        [(0.1, 0.1, 1)],
        [(0.0, 1, 1), (INF, 1, 1), (1, 0, 1), (1, 1, 0)],
    ),
    "prompts about their mean": (
        lambda count: generalization.summands(UPDATES[:count], 1.0, centred=True),
        [2],
        [1],
    ),
    "clipped losses": (
        lambda high: generalization.measured_gap(UPDATES[0, 0, 0], UPDATES[0, 0, 0], 0.0, high),
        [0.1],
        [0.0, -0.1],
    ),
    "diverse points": (
        lambda size: diversity.farthest_point(jnp.asarray(ROWS), size),
        [1, 5],
        [0, 6],
    ),
    "a determinant": (
        lambda given: diversity.determinantal(jnp.asarray(ROWS), *given),
        [(3, 0.0), (4, 0.1)],
        [(4, 0.0), (3, -0.1), (3, INF)],
    ),
    "scores": (lambda size: scores.select(jnp.arange(3.0), size), [1, 3], [0, 4]),
    "random subsets": (lambda size: baselines.random_subsets(KEY, 3, size, 1), [1, 3], [0, 4]),
    "matched gradients": (lambda size: gradient_matching.match(ROWS, size), [1, 5], [0, 6]),
    "a gap": (
        lambda indices: gradient_matching.gap(ROWS, np.array(indices)),
        [[0], [4, 0]],
        [[5], [-1], [1, 1]],
    ),
    "greedy picks": (
        lambda size: oracles.pick_greedily(lambda chosen: chosen, jnp.zeros(3), size),
        [1, 3],
        [0, 4],
    ),
    "a rank": (lambda rank: clipping.kept_rank(rank, 0.5), [1], [0]),
    "a rate": (lambda rate: clipping.kept_rank(4, rate), [0, 0.99], [-0.1, 1, "drop"]),
    "a matrix": (clipping.singular_values, [ROWS], [ROWS[0], ROWS.astype(int)]),
    "the importance of heads": (
        lambda given: heads.importance(lambda mask: mask.sum(), *given),
        [(1, 2), (2, 1)],
        [(1, 1)],
    ),
    "flows to compare": (
        lambda count: amplification.amplification_ratio(jnp.ones((1, count, 2))),
        [2],
        [1],
    ),
    "spans of tokens": (
        lambda span: amplification.amplification_ratio(jnp.ones((1, 4, 2)), [(0, 1), span]),
        [(1, 2), (3, 4), (0, 4)],
        [(2, 2), (-1, 2), (3, 5), (3, 2)],
    ),
    "layers to compare": (lambda count: disparity.summarise(jnp.ones((2, count))), [2], [1]),
    "groups of coordinates": (
        lambda num_heads: sparse_constructions.coordinate_groups(3, num_heads),
        [1, 3],
        [0, 4],
    ),
    "an initial scale": (lambda scale: Config(2, 1, 1, 1, init_scale=scale), [0.1], [0, INF]),
    "tokens of a linear layer": (
        lambda count: linear_attention.forward(
            linear_attention.init(KEY, 1, 1, 2), jnp.asarray(ROWS[:count])
        ),
        [2],
        [1],
    ),
    "tokens of a transformer": (lambda count: read(count, "merged"), [2, 3], [1, 4]),
    "interleaved tokens": (lambda count: read(count, "interleaved"), [1, 3], [2, 4, 5]),
    "the sparsity of weights": (
        lambda sparsity: estimators.sparse_posterior_mean(PROMPT, sparsity, 1.0, 1.0),
        [1, 2],
        [0, 3, 1.0],
    ),
    "the sparsity of weights of a uniform direction": (
        lambda sparsity: estimators.rotation_equivariant_posterior_mean(PROMPT, sparsity, 1.0, 1.0),
        [1, 2, None],
        [0, 3, 1.0],
    ),
    "steps of descent": (
        lambda steps: estimators.preprocessed_gradient_descent(PROMPT, 0.1, steps),
        [0],
        [-1, 1.0],
    ),
    "the penalty of the lasso": (lambda penalty: estimators.lasso(PROMPT, penalty), [0.0], [-0.1]),
    "the penalty of a gap of the lasso": (
        lambda penalty: estimators.lasso_duality_gap(PROMPT, PROMPT.x_query, penalty),
        [0.0],
        [-0.1],
    ),
}


@pytest.mark.parametrize("name", EDGES)
def test_what_lies_at_the_edge_is_taken_and_what_lies_beyond_is_refused(name):
    call, taken, refused = EDGES[name]

    def checked(value):
        call(value)

    for value in taken:  # traced: all is checked, and nothing is compiled
        jax.eval_shape(functools.partial(checked, value))
    for value in refused:
        with pytest.raises(ValueError):  # noqa: PT011  which words it has, its own test says
            print(name, value, call(value))
