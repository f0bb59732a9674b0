"""How far the tokens of one prompt are from one common linear map after each layer."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from lsa_lab import lm
from lsa_lab.analyses.common_map import best_common_map
from lsa_lab.lm import decoder


def misses(model: lm.Decoder, ids: np.ndarray) -> dict[str, np.ndarray]:
    """Shares |H_l - H_0 Wᵀ| of |H_l - H_0|, each [L+1]: "unexplained" of all tokens, and of all but
    the first, which is a hundred times as long as the others in some layers; "by_word", what any
    function of a token's word misses, as every map of H_0 is one, of words that recur.
    """
    stream = np.asarray(_stream(model.params, jnp.asarray(ids), config=model.config), float)
    rest = stream[:, 1:]
    best = [_unexplained(jnp.asarray(rows)) for rows in (stream, rest)]
    return {"unexplained": np.stack(best), "by_word": _by_word(rest, rest - rest[:1], ids[1:])}


@functools.partial(jax.jit, static_argnames="config")
def _stream(params, ids, *, config):  # [T] -> [L+1, T, D]
    return decoder.forward(params, decoder.embed(params, ids, config), config).stream


@jax.jit
def _unexplained(stream):
    return best_common_map(stream[0], stream).unexplained


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
    pair = (missed * factor[:, None])[:, recur], whole[:, recur]
    part, all_of_it = (np.linalg.norm(each, axis=(1, 2)) for each in pair)
    return np.divide(part, all_of_it, out=np.zeros_like(part), where=all_of_it > 0)
