"""Heads of different trainings side by side: what they attend to, and other ways to write them."""

from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.heads import importance
from experiments.models import sparse_models
from experiments.models.specs import Family
from lsa_lab.analyses import head_gauge, head_similarity
from lsa_lab.analyses.head_similarity import HeadMaps
from lsa_lab.models import constructions, linear_attention, transformer
from lsa_lab.prompts import Prompt

OTHERS = ("orthogonal", "turned")  # ways to write the same model


def represented(family: Family, params, seed: int) -> dict[str, linear_attention.Params]:
    """Models [R, ...] of merged heads, all of them present, written as OTHERS.

    "orthogonal": canonical heads (analyses.head_gauge); "turned": these, mixed by random rotations.
    The first layer is restricted to what prompts show it: no scratch.
    """
    params = jax.tree.map(np.array, importance.plain(family, params)[1])
    shown = _visible(family)
    params.w_kq[:, 0] *= np.outer(shown, shown)
    params.w_pv[:, 0] *= shown
    made = jax.jit(jax.vmap(lambda one: head_gauge.canonical(one)[0]))(params)
    heads = params.w_pv.shape[:3]  # [R, L, H]
    turn = np.linalg.qr(np.random.default_rng(seed).standard_normal((*heads, heads[-1])))[0]
    turned = jax.jit(jax.vmap(head_gauge.mixed))(made, turn)
    return dict(zip(OTHERS, (made, turned), strict=True))


def across_seeds(family: Family, params, batch: Prompt) -> np.ndarray:  # [R, L]
    """The absolute correlation of matched heads' attention, averaged over heads and the other runs.

    Absolute, for a linear head that turns the sign of what it reads and of what it writes is the
    same head.
    """
    like, params = importance.plain(family, params)
    count = len(jax.tree.leaves(params)[0])
    runs = [jax.tree.map(lambda leaf, r=r: leaf[r], params) for r in range(count)]
    seen = [_attention(like)(run, batch) for run in runs]  # [B, L, H, T, T] each
    total = np.zeros((count, family.depth))
    for r in range(count):
        for other in range(r):
            alike = np.abs(_all_layers(seen[r], seen[other]))  # [L, H, H]
            means = [layer[head_similarity.match(layer)].mean() for layer in alike]
            total[[r, other]] += means
    return total / (count - 1)


def like_construction(family: Family, params) -> np.ndarray:  # [R]
    """The similarity of first-layer heads to those of preprocess_then_optimise, matched; averaged.

    Of tokens [x, y] as prompts show them. The construction's heads weigh a coordinate each, or
    share the coordinates if the model has fewer heads.
    """
    alike = np.asarray(_to_construction(family)(params))  # [R, H, G]
    return np.array([one[head_similarity.match(one)].mean() for one in alike])


def _visible(family: Family) -> np.ndarray:  # [e]
    """1 for the coordinates of a token that prompts fill: covariates and label."""
    e = sparse_models.width(family)
    return np.where((np.arange(e) < e - 1 - family.scratch) | (np.arange(e) == e - 1), 1.0, 0.0)


@cache
def _attention(family: Family):
    def attention(params, batch):
        def one(prompt):
            trace = sparse_models.forward(family, params, prompt)
            config = sparse_models.shape(family)
            return transformer.attention(sparse_models.factored(family, params), trace, config)

        return jax.vmap(one)(batch)

    return jax.jit(attention)


_all_layers = jax.jit(jax.vmap(head_similarity.attention_similarity, in_axes=1))


@cache
def _to_construction(family: Family):
    """params [R, ...] -> [R, H, G], compiled."""
    shown = np.flatnonzero(_visible(family))
    d = len(shown) - 1
    config = sparse_models.shape(family)

    def one(known, params):
        maps = head_similarity.first_layer_maps(sparse_models.factored(family, params), config)
        asked = maps.key_query[:, shown][:, :, shown]
        own = HeadMaps(key_query=asked, written=maps.written[:, :, shown])
        return head_similarity.similarity(own, known)

    def every(params):
        built = constructions.preprocess_then_optimise(d, min(family.heads, d), jnp.ones(1))
        return jax.vmap(partial(one, head_similarity.first_layer_maps(*built)))(params)

    return jax.jit(every)
