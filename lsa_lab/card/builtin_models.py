"""Probes of models of lsa_lab, whose weights have known names and layers."""

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lsa_lab.analyses.clipping import truncate
from lsa_lab.card.batches import Batch
from lsa_lab.card.evaluation import EvaluationContext
from lsa_lab.card.probe import Probe, make_probe
from lsa_lab.models import recurrent, transformer

RATE = 0.5  # the share of singular values that clipping sets to zero
_truncate_half = jax.jit(partial(truncate, rate=RATE))
_MATRICES = ("w_q", "w_k", "w_v", "w_o", "mlp_in", "mlp_out")


def measure_clipping(context: EvaluationContext) -> list[Probe]:
    """Measure the risk with the matrices of a layer at half rank, and without one of its heads."""
    if not isinstance(context.params[0], recurrent.Params | transformer.Params):
        return []
    n = context.tier.n
    test, validation = (context.draw_batches(tag, context.distribution) for tag in (20, 21))
    intact = context.evaluate(test, [n])[0][:, 0]
    bayes = context.bayes_risks(test, [n], context.distribution)[:, 0]
    probes, (depth, num_heads) = [], context.params[0].w_q.shape[:2]
    for layer in range(depth):
        title = f"layer {layer + 1} of {depth}"
        changes = {
            f"risk with {title} clipped": [_clip_layer(params, layer) for params in context.params],
            f"risk without a head of {title}": _remove_head(context, validation, layer, num_heads),
        }
        for name, params in changes.items():
            ratios = _compute_risks(context, test, params) / intact
            probes.append(
                make_probe(name, "clipping", "The risk rises by at most a tenth.", ratios,
                           at_most=1.1, null=float(np.median(bayes / intact)),
                           null_is="the Bayes rule")
            )  # fmt: skip
    return probes


def _compute_risks(
    context: EvaluationContext, batches: list[Batch], params: list[Any]
) -> np.ndarray:  # [R]
    return replace(context, params=params).evaluate(batches, [context.tier.n])[0][:, 0]


def _clip_layer(params: Any, layer: int) -> Any:
    """Return the params with every matrix of a layer, head by head, at half its rank."""
    leaves = {name: getattr(params, name) for name in _MATRICES}
    changes = {
        name: jnp.asarray(leaf).at[layer].set(_truncate_half(leaf[layer]))
        for name, leaf in leaves.items()
        if leaf is not None
    }
    return params.replace(**changes)


def _remove_head(
    context: EvaluationContext, validation: list[Batch], layer: int, num_heads: int
) -> list[Any]:  # [R]
    """Return each run's params without the head whose removal costs least on validation prompts."""
    pruned = [
        [p.replace(w_o=jnp.asarray(p.w_o).at[layer, head].set(0)) for p in context.params]
        for head in range(num_heads)
    ]
    risks = np.array([_compute_risks(context, validation, params) for params in pruned])  # [H, R]
    return [pruned[head][run] for run, head in enumerate(risks.argmin(0))]
