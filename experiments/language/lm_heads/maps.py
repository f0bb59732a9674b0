"""How far the tokens of one prompt are from one common linear map after each layer."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from lsa_lab import lm
from lsa_lab.analyses.common_map import best_common_map
from lsa_lab.lm import decoder


def misses(model: lm.Decoder, ids: np.ndarray, fitted: float, key) -> dict[str, np.ndarray]:
    """Shares |H_l - H_0 Wᵀ| of |H_l| (residual) and of |H_l - H_0| (unexplained), each [L+1].

    Of all tokens, of all but the first, which is a hundred times as long as the others in some
    models, and of these with each token over its own length after the last layer. "held_out": W is
    fitted to a share of the tokens and judged on the others; "by_type": W is any function of a
    token's word, which no map of H_0 can surpass.
    """
    stream = np.asarray(_stream(model.params, jnp.asarray(ids), config=model.config), float)
    lengths = np.linalg.norm(stream, axis=2)
    rest = stream[:, 1:]
    relative = rest / lengths[-1, 1:, None]
    best = [_map(jnp.asarray(rows)) for rows in (stream, rest, relative)]
    return {
        "residual": np.stack([each.residual for each in best]),
        "unexplained": np.stack([each.unexplained for each in best]),
        "held_out": _held_out(rest, fitted, key),
        "by_type": _by_type(rest, ids[1:]),
        "length": np.median(lengths[:, 1:], axis=1),
        "first_length": lengths[:, 0],
        "types": np.array(len(np.unique(ids[1:]))),
    }


@functools.partial(jax.jit, static_argnames="config")
def _stream(params, ids, *, config):  # [T] -> [L+1, T, D]
    return decoder.forward(params, decoder.embed(params, ids, config), config).stream


@jax.jit
def _map(stream):
    return best_common_map(stream[0], stream)


def _held_out(stream: np.ndarray, fitted: float, key) -> np.ndarray:  # [L+1, T, D] -> [L+1]
    order = np.asarray(jax.random.permutation(key, stream.shape[1]))
    few, others = np.split(order, [int(fitted * len(order))])
    matrices = np.asarray(_map(jnp.asarray(stream[:, few])).maps)
    judged = stream[:, others]
    missed = judged - np.einsum("lde,te->ltd", matrices, judged[0])
    return _share(missed, judged - judged[:1])


def _by_type(stream: np.ndarray, ids: np.ndarray) -> np.ndarray:  # [L+1, T, D], [T] -> [L+1]
    of_type = (np.unique(ids)[:, None] == ids).astype(float)  # [types, T]
    means = np.einsum("kt,ltd->lkd", of_type / of_type.sum(1, keepdims=True), stream)
    return _share(stream - np.einsum("kt,lkd->ltd", of_type, means), stream - stream[:1])


def _share(part: np.ndarray, whole: np.ndarray) -> np.ndarray:  # [L+1, T, D] x 2 -> [L+1]
    part, whole = (np.linalg.norm(rows, axis=(1, 2)) for rows in (part, whole))
    return np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)
