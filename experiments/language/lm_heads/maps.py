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

    Of all tokens, and of all but the first, which is a hundred times as long as the others in some
    layers. "held_out": W is fitted to a share of these and judged on the others. "by_word": what
    any function of a token's word misses, as every map of H_0 is one, of words that recur; and the
    same of rows over their lengths.
    """
    stream = np.asarray(_stream(model.params, jnp.asarray(ids), config=model.config), float)
    lengths = np.linalg.norm(stream, axis=2)
    rest = stream[:, 1:]
    units = rest / lengths[:, 1:, None]
    best = [_map(jnp.asarray(rows)) for rows in (stream, rest)]
    return {
        "residual": np.stack([each.residual for each in best]),
        "unexplained": np.stack([each.unexplained for each in best]),
        "held_out": _held_out(rest, fitted, key),
        "by_word": _by_word(rest, rest - rest[:1], ids[1:]),
        "direction_by_word": _by_word(units, units, ids[1:]),
        "length": np.median(lengths[:, 1:], axis=1),
        "first_length": lengths[:, 0],
        "words": np.array(len(np.unique(ids[1:]))),
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


def _by_word(
    rows: np.ndarray,  # [L+1, T, D]
    whole: np.ndarray,  # [L+1, T, D]
    ids: np.ndarray,  # [T]
) -> np.ndarray:  # [L+1]
    """|rows - mean of their word| / |whole| of words that recur: Σ n/(n-1) |h - h̄|² is unbiased."""
    words, counts = np.unique(ids, return_counts=True)
    of_word = (words[counts > 1, None] == ids).astype(float)  # [words, T]
    counts, recur = counts[counts > 1], of_word.any(0)
    means = np.einsum("kt,ltd->lkd", of_word / counts[:, None], rows)
    missed = rows - np.einsum("kt,lkd->ltd", of_word, means)
    factor = np.sqrt(of_word.T @ (counts / (counts - 1)))
    return _share((missed * factor[:, None])[:, recur], whole[:, recur])


def _share(part: np.ndarray, whole: np.ndarray) -> np.ndarray:  # [L+1, T, D] x 2 -> [L+1]
    part, whole = (np.linalg.norm(rows, axis=(1, 2)) for rows in (part, whole))
    return np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)
