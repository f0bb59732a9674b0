"""Operations, processor time and memory of a query against a pool, encoded or not."""

import time

import jax
import numpy as np

from experiments.flow.offline_encoding import encodings
from lsa_lab.selection import scores

WAYS = ("Eq. 2, encoded", "pool, encoded", "pool, online")
_CALLS = 200  # in one measurement


def hand_counts(pool_size: int, width: int) -> dict[str, float]:
    """Multiplications and additions of a query: 4me + 2e² of Eq. 2, 2me² + 2me of a linear map."""
    m, e = pool_size, width
    return {"Eq. 2, encoded": 4 * m * e + 2 * e**2, "pool, encoded": 2 * m * e**2 + 2 * m * e}


def programs(params, pool, query_token):
    """{way: (compiled program, its arguments, numbers kept)}: what is made once is an argument."""
    encoded, flows = (
        encodings.encode_one_layer(params, pool),
        encodings.encode_together(params, pool),
    )
    kept = [sum(leaf.size for leaf in jax.tree.leaves(tree)) for tree in (encoded, flows, pool)]
    calls = (
        (scores.grads, (encoded, query_token)),
        (encodings.score, (flows, query_token)),
        (encodings.score_online, (params, pool, query_token)),
    )
    return {
        way: (jax.jit(function).lower(*arguments).compile(), arguments, size)
        for way, (function, arguments), size in zip(WAYS, calls, kept, strict=True)
    }


def measure(params, pool, query_token, repeats):
    """Operations [ways], processor seconds of a query [repeats, ways], numbers kept [ways]."""
    by_way = programs(params, pool, query_token)
    flops = [program.cost_analysis()["flops"] for program, _, _ in by_way.values()]
    seconds = [[_seconds(*call[:2]) for call in by_way.values()] for _ in range(repeats + 1)]
    return np.array(flops), np.array(seconds[1:]), np.array([size for *_, size in by_way.values()])


def _seconds(program, arguments):
    start = time.process_time()
    for _ in range(_CALLS):
        result = program(*arguments)
    jax.block_until_ready(result)
    return (time.process_time() - start) / _CALLS
