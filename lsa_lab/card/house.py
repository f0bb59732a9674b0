"""What only models of the house can be asked: their weights have names and layers."""

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lsa_lab.analyses.clipping import truncate
from lsa_lab.card.probe import Probe, judged
from lsa_lab.card.probes import Bench
from lsa_lab.models import recurrent, transformer

RATE = 0.5  # the share of singular values that is set to zero
_truncated = jax.jit(partial(truncate, rate=RATE))
_MATRICES = ("w_q", "w_k", "w_v", "w_o", "mlp_in", "mlp_out")


def clipping(bench: Bench) -> list[Probe]:
    """Clipping every matrix of a layer to half its rank, and removing one of its heads."""
    if not isinstance(bench.params[0], recurrent.Params | transformer.Params):
        return []
    n = bench.tier.n
    batches, others = (bench.batches(tag, bench.law) for tag in (20, 21))
    usual = bench.risks(batches, [n])[:, 0]
    best = bench.best(batches, [n], bench.law)[:, 0]
    probes, (depth, num_heads) = [], bench.params[0].w_q.shape[:2]
    for layer in range(depth):
        where = f"layer {layer + 1} of {depth}"
        rises = _risks(bench, batches, [_clipped(p, layer) for p in bench.params]) / usual
        says = f"Half of the singular values of {where} can go: the risk rises by at most a tenth."
        more: dict[str, Any] = {"ratio": True, "at_most": 1.1, "null_is": "the Bayes rule"}
        more["null"] = float((best / usual).mean())
        probes.append(judged(f"risk with {where} clipped", "clipping", says, rises, **more))
        pruned = [[_without(p, layer, head) for p in bench.params] for head in range(num_heads)]
        each = np.array([_risks(bench, others, params) for params in pruned])  # [H, R]
        chosen = np.where(np.isnan(each), np.inf, each).argmin(0)
        left = [pruned[head][run] for run, head in enumerate(chosen)]
        says = f"The head of {where} that is least on other prompts can go: 1.1 times the risk."
        rises = _risks(bench, batches, left) / usual
        probes.append(judged(f"risk without a head of {where}", "clipping", says, rises, **more))
    return probes


def _risks(bench: Bench, batches: list, params: list[Any]) -> np.ndarray:  # [R]
    return replace(bench, params=params).risks(batches, [bench.tier.n])[:, 0]


def _clipped(params: Any, layer: int) -> Any:
    """The params with every matrix of a layer, head by head, at half its rank."""
    leaves = {name: getattr(params, name) for name in _MATRICES}
    changes = {
        name: jnp.asarray(leaf).at[layer].set(_truncated(leaf[layer]))
        for name, leaf in leaves.items()
        if leaf is not None
    }
    return params.replace(**changes)


def _without(params: Any, layer: int, head: int) -> Any:
    return params.replace(w_o=jnp.asarray(params.w_o).at[layer, head].set(0))
