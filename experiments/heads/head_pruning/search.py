"""The best heads to keep: one in each later layer, so many of one layer, and greedily."""

import itertools

import jax
import numpy as np

from experiments.heads.dissected import run
from experiments.heads.head_pruning.pruning import Case, judged, repeated
from experiments.models.model import Model
from lsa_lab.analyses import head_subsets
from lsa_lab.models import moments
from lsa_lab.prompts import Prompt


def choices(case: Case) -> np.ndarray:  # [C, L, H]
    """Layer 1 whole, and every choice of one head for each later layer."""
    picked = np.array(list(itertools.product(*map(range, case.counts[1:]))))
    one_hot = np.eye(case.gates.shape[1])[picked]
    first = np.broadcast_to(case.gates[0], (len(picked), 1, case.gates.shape[1]))
    return np.concatenate([first, one_hot], axis=1)


def best_choices(config, case: Case, searched: Prompt) -> np.ndarray | None:  # [R, L, H]
    """The choice with the least risk on the prompts of the search; None if there are too many."""
    if np.prod(case.counts[1:]) > config.most_choices:
        return None
    every = choices(case)
    risks = judged(config, case, searched, np.tile(every, (case.runs, 1, 1, 1)))
    if not np.isfinite(risks).all():
        raise ValueError("a risk is not finite, though predictions are cut: which is least?")
    return every[risks.argmin(1)]


def layer_masks(case: Case) -> list[np.ndarray]:  # L of [2^H, L, H]
    """Every subset of the heads of one layer, the others whole, layer by layer."""
    by_layer = []
    for layer, count in enumerate(case.counts):
        rows = np.asarray(head_subsets.subsets(count))
        masks = np.tile(case.gates, (len(rows), 1, 1))
        masks[:, layer, :count] = rows
        by_layer.append(masks)
    return by_layer


def best_subsets(config, case: Case, searched: Prompt) -> tuple[np.ndarray, np.ndarray]:
    """Masks [R, L, H+1, L, H] of the best subset of each size of each layer, and what each head
    is worth among its layer's (Shapley) [R, L, H]."""
    masks = layer_masks(case)
    ends = np.cumsum([len(rows) for rows in masks])[:-1]
    every = np.tile(np.concatenate(masks), (case.runs, 1, 1, 1))
    risks = np.split(judged(config, case, searched, every), ends, axis=1)
    most = case.gates.shape[1]
    best_of, worth_of = (
        jax.jit(jax.vmap(rule)) for rule in (head_subsets.best_subsets, head_subsets.shapley)
    )
    best, worth = [], []
    for rows, losses, count in zip(masks, risks, case.counts, strict=True):
        chosen = np.asarray(best_of(losses))
        best.append(rows[np.pad(chosen, ((0, 0), (0, most - count)), mode="edge")])
        worth.append(np.pad(worth_of(losses), ((0, 0), (0, most - count))))
    return np.stack(best, axis=1), np.stack(worth, axis=1)


def greedy(config, case: Case, searched: Prompt) -> np.ndarray:  # [R, K, L, H]
    """Masks along the greedy order, from all K heads down to one."""
    num_layers, num_heads = case.gates.shape
    searched = repeated(config, case, searched)

    def order_of(model: Model, batch: Prompt):
        loss = lambda mask: model.replace(gates=mask).risk(batch)  # noqa: E731
        path = head_subsets.greedy(loss, num_layers, num_heads, case.counts)
        return path.layers * num_heads + path.heads

    program = jax.jit(order_of, compiler_options=moments.compiler_options())
    rows = []
    for r in range(case.runs):
        order = np.asarray(program(run(case.models, r), run(searched, r)))
        removed = np.eye(case.gates.size)[order].cumsum(0).reshape(-1, *case.gates.shape)
        rows.append(np.concatenate([case.gates[None], case.gates - removed]))
    return np.stack(rows)
