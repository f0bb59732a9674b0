"""Rules for which no demonstration is run before a query: A1's Eq. 2, and BM25.

Eq. 2 takes each demonstration encoded once, by itself, as A1 does offline. With d the mean of a
demonstration's normed rows before a layer, q the normed row of the last token of a query,
P_h = W_O W_V and K_h = W_Kᵀ W_Q of head h,

    J = Σ_h s_h P_h + (P_h d)(K_h q)ᵀ,   s_h = d·K_h q

is the derivative of what linear attention with these weights writes to the query by d. Left out are
softmax, the turning by places, biases, and all before the layer.
"""

import functools
from collections import Counter
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from experiments.language import readouts
from experiments.language.sentences import Writer
from lsa_lab import lm
from lsa_lab.lm import decoder, halts
from lsa_lab.lm.config import Config
from lsa_lab.lm.decoder import Params
from lsa_lab.lm.layers import norm
from lsa_lab.lm.text import Sentences

_K1, _B = 1.5, 0.75  # how soon a repeated word saturates, and how far long texts are held back


def eq_2(
    model: lm.Decoder, writer: Writer, pool: Sentences, queries: Sentences, layer: int
) -> np.ndarray:  # [m, B]
    """|J|_F of every demonstration and query, with the attention of a layer, the first being 1."""
    nothing = writer.demonstrations(pool.take([]))[0]
    written = [writer.demonstrations(pool.take([i])) for i in range(len(pool))]
    own, (questions, last) = [ids[len(nothing) :] for ids, _ in written], writer.questions(queries)
    ids = np.concatenate([own, np.pad(questions, ((0, 0), (0, 1)))])  # [m + B, W + 1]
    rows = np.asarray(_normed(model.params, nothing, ids, config=model.config, layer=layer))
    rows, of_queries = np.split(rows, [len(pool)])
    begins = np.array([spans[0, 0] - len(nothing) for _, spans in written])
    inside = (np.arange(ids.shape[1]) >= begins[:, None])[..., None]
    means = np.where(inside, rows, 0).sum(1) / inside.sum(1).astype(rows.dtype)
    ends = of_queries[np.arange(len(last)), last]
    of_layer = halts.layer_of(model.params, layer - 1)
    return np.asarray(_norms(of_layer, means, ends), float)


@functools.partial(jax.jit, static_argnames=("config", "layer"))
def _normed(
    params: Params, nothing: Array, ids: Array, *, config: Config, layer: int
) -> Array:  # [N, T] -> [N, T, D]
    def each(ids: Array) -> Array:
        stream = decoder.embed(params, jnp.concatenate([nothing, ids]), config)
        rows = decoder.forward(params, stream, config).stream[layer - 1, len(nothing) :]
        own = halts.layer_of(params, layer - 1)
        return norm(rows, own.attention_norm_scale, own.attention_norm_offset, config)

    return jax.lax.map(each, ids, batch_size=readouts.TOGETHER)


@jax.jit
def _norms(own: Params, means: Array, ends: Array) -> Array:  # [m, D], [B, D] -> [m, B]
    sharing = own.w_q.shape[0] // own.w_k.shape[0]
    w_k, w_v = (jnp.repeat(leaf, sharing, axis=0) for leaf in (own.w_k, own.w_v))
    writes = jnp.einsum("hdk,hke->hde", own.w_o, w_v)  # P_h
    written = jnp.einsum("hde,me->mhd", writes, means)
    wanted = jnp.einsum("hkd,hke,be->bhd", w_k, own.w_q, ends)  # K_h q
    relevance = jnp.einsum("md,bhd->mbh", means, wanted)

    def size(written: Array, relevance: Array, wanted: Array) -> Array:
        jacobian = jnp.einsum("h,hde->de", relevance, writes)
        return jnp.linalg.norm(jacobian + jnp.einsum("hd,he->de", written, wanted))

    def of_all(row: tuple[Array, Array]) -> Array:  # [B]
        return jax.vmap(functools.partial(size, row[0]))(row[1], wanted)

    return jax.lax.map(of_all, (written, relevance))


def bm25(texts: Sequence[str], queries: Sequence[str]) -> np.ndarray:  # [m, B]
    """The words that a text and a query share (Robertson and Zaragoza 2009),

    Σ_w log(1 + (m - m_w + ½) / (m_w + ½)) f (k + 1) / (f + k (1 - b + b |t| / mean |t|)),

    over the words w of a query; f counts w in the text t, m_w the texts that hold w. Words are
    parts between blanks, in small letters.
    """
    counts = [Counter(text.lower().split()) for text in texts]
    lengths = np.array([count.total() for count in counts])
    held = Counter(word for count in counts for word in count)
    damping = _K1 * (1 - _B + _B * lengths / lengths.mean())
    columns = np.zeros((len(texts), len(queries)))
    for column, query in zip(columns.T, queries, strict=True):
        for word in query.lower().split():
            f = np.array([count[word] for count in counts])
            rarity = np.log1p((len(texts) - held[word] + 0.5) / (held[word] + 0.5))
            column += rarity * f * (_K1 + 1) / (f + damping)
    return columns
