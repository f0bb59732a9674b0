"""Heads of different trainings side by side: what they attend to, and other ways to write them."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.heads.each_run import run
from experiments.models.model import Model, shape
from experiments.models.specs import Spec
from lsa_lab.analyses import head_gauge, head_similarity
from lsa_lab.analyses.head_similarity import HeadMaps
from lsa_lab.models import constructions, transformer
from lsa_lab.prompts import Prompt

OTHERS = ("orthogonal", "turned")  # ways to write the same model


def represented(models: Model, seed: int) -> dict[str, Model]:  # leaves [R, ...]
    """Models of merged heads, all of them present, written as OTHERS.

    "orthogonal": canonical heads (analyses.head_gauge); "turned": these, mixed by random rotations.
    The first layer is restricted to what prompts fill: no scratch.
    """
    filled, models = _filled(models.spec), jax.vmap(Model.plain)(models)
    params = jax.tree.map(np.array, models.params)
    params.w_kq[:, 0] *= np.outer(filled, filled)
    params.w_pv[:, 0] *= filled
    canonical = jax.jit(jax.vmap(lambda params: head_gauge.canonical(params)[0]))(params)
    heads = params.w_pv.shape[:3]  # [R, L, H]
    turn = np.linalg.qr(np.random.default_rng(seed).standard_normal((*heads, heads[-1])))[0]
    turned = jax.jit(jax.vmap(head_gauge.mixed))(canonical, turn)
    return {
        name: models.replace(params=params)
        for name, params in zip(OTHERS, (canonical, turned), strict=True)
    }


def across_seeds(models: Model, batch: Prompt) -> np.ndarray:  # leaves [R, ...] -> [R, L]
    """The absolute correlation of matched heads' attention, averaged over heads and the other runs.

    Absolute, for a linear head that turns the sign of what it reads and of what it writes is the
    same head.
    """
    models = jax.vmap(Model.plain)(models)
    count, depth = len(models.gates), models.spec.architecture.depth
    patterns = [_attention(run(models, r), batch) for r in range(count)]  # [B, L, H, T, T] each
    total = np.zeros((count, depth))
    for r in range(count):
        for other in range(r):
            similar = np.abs(_all_layers(patterns[r], patterns[other]))  # [L, H, H]
            means = [layer[head_similarity.match(layer)].mean() for layer in similar]
            total[[r, other]] += means
    return total / (count - 1)


def like_construction(models: Model) -> np.ndarray:  # leaves [R, ...] -> [R]
    """The similarity of first-layer heads to those of preprocess_then_optimise, matched; averaged.

    Maps are of tokens [x, y] as prompts fill them. The construction's heads weigh a coordinate
    each, or share the coordinates if the model has fewer heads.
    """
    similar = np.asarray(_to_construction(models))  # [R, H, G]
    return np.array([each[head_similarity.match(each)].mean() for each in similar])


def _filled(spec: Spec) -> np.ndarray:  # [e]
    """1 for the coordinates of a token that prompts fill: covariates and label."""
    place = np.arange(spec.token_width)
    scratch = (place >= spec.task.width) & (place < spec.token_width - 1)
    return np.where(scratch, 0.0, 1.0)


@jax.jit
def _attention(model: Model, batch: Prompt):
    def of_prompt(prompt):
        trace = model.replace(gates=None).forward(prompt)
        return transformer.attention(model.factored(), trace, shape(model.spec))

    return jax.vmap(of_prompt)(batch)


_all_layers = jax.jit(jax.vmap(head_similarity.attention_similarity, in_axes=1))


@jax.jit
def _to_construction(models: Model):  # leaves [R, ...] -> [R, H, G]
    filled, config = np.flatnonzero(_filled(models.spec)), shape(models.spec)
    d = models.spec.task.width

    def of_run(construction, model):
        maps = head_similarity.first_layer_maps(model.factored(), config)
        key_query = maps.key_query[:, filled][:, :, filled]
        own = HeadMaps(key_query=key_query, written=maps.written[:, :, filled])
        return head_similarity.similarity(own, construction)

    heads = min(models.spec.architecture.heads, d)
    construction = constructions.preprocess_then_optimise(d, heads, jnp.ones(1))
    maps = head_similarity.first_layer_maps(*construction)
    return jax.vmap(partial(of_run, maps))(models)
