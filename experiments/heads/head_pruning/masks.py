"""Which heads to keep: by importance, at random, the best of all choices, and greedily."""

import itertools

import jax
import numpy as np

from experiments.heads.each_run import over_runs
from experiments.heads.head_pruning.config import all_are_tried
from experiments.heads.head_pruning.masked_models import MASKS, Case, risks
from experiments.models.model import Model
from lsa_lab.analyses import head_subsets, heads
from lsa_lab.models import moments
from lsa_lab.prompts import Prompt


def treatment_masks(config, case: Case, scores: np.ndarray, best: np.ndarray | None) -> np.ndarray:
    """Masks [R, len(CHOSEN) + 2 draws, L, H]: CHOSEN, then the draws of each of RANDOM."""
    counts = case.counts
    key = jax.random.fold_in(jax.random.key(config.seed), MASKS)
    keys = jax.random.split(key, (case.runs, 2, config.draws))
    best = np.tile(case.gates, (case.runs, 1, 1)) if best is None else best

    def of_run(r):
        chosen = [case.gates, heads.prune(scores[r], counts), best[r]]
        chosen.append(heads.prune_first_layer(scores[r], counts))
        controls = (heads.prune_to_random_heads, heads.remove_at_random)
        return chosen + [
            control(key, scores[r], counts)
            for control, own in zip(controls, keys[r], strict=True)
            for key in own
        ]

    return np.array([of_run(r) for r in range(case.runs)], float)


def choices(case: Case) -> np.ndarray:  # [C, L, H]
    """Layer 1 whole, and every choice of one head for each later layer."""
    picked = np.array(list(itertools.product(*map(range, case.counts[1:]))))
    one_hot = np.eye(case.gates.shape[1])[picked]
    first = np.broadcast_to(case.gates[0], (len(picked), 1, case.gates.shape[1]))
    return np.concatenate([first, one_hot], axis=1)


def best_choices(config, case: Case, searched: Prompt) -> np.ndarray | None:  # [R, L, H]
    """The choice with the least risk on the prompts of the search; None if there are too many."""
    if not all_are_tried(config, case.counts):
        return None
    every = choices(case)
    losses = risks(case.models, searched, np.tile(every, (case.runs, 1, 1, 1)))
    if not np.isfinite(losses).all():
        raise ValueError("a risk is not finite, though predictions are cut: which is least?")
    return every[losses.argmin(1)]


def layer_subsets(case: Case) -> list[np.ndarray]:  # L of [2^H, L, H]
    """Every subset of the heads of one layer, the others whole, layer by layer."""
    by_layer = []
    for layer, count in enumerate(case.counts):
        rows = np.asarray(head_subsets.subsets(count))
        masks = np.tile(case.gates, (len(rows), 1, 1))
        masks[:, layer, :count] = rows
        by_layer.append(masks)
    return by_layer


def best_subsets(case: Case, searched: Prompt) -> tuple[np.ndarray, np.ndarray]:
    """Masks [R, L, H+1, L, H] of the best subset of each size of each layer, and what each head
    is worth among its layer's (Shapley) [R, L, H]."""
    masks, most = layer_subsets(case), case.gates.shape[1]
    ends = np.cumsum([len(rows) for rows in masks])[:-1]
    every = np.tile(np.concatenate(masks), (case.runs, 1, 1, 1))
    by_layer = np.split(risks(case.models, searched, every), ends, axis=1)
    best_of, worth_of = (
        jax.jit(jax.vmap(rule)) for rule in (head_subsets.best_subsets, head_subsets.shapley)
    )
    best, worth = [], []
    for rows, losses, count in zip(masks, by_layer, case.counts, strict=True):
        chosen = np.asarray(best_of(losses))
        best.append(rows[np.pad(chosen, ((0, 0), (0, most - count)), mode="edge")])
        worth.append(np.pad(worth_of(losses), ((0, 0), (0, most - count))))
    return np.stack(best, axis=1), np.stack(worth, axis=1)


def greedy(case: Case, searched: Prompt) -> np.ndarray:  # [R, K, L, H]
    """Masks along the greedy order, from all K heads down to one."""
    num_layers, num_heads = case.gates.shape

    def order_of(model: Model, batch: Prompt):
        def loss(mask):
            return model.replace(gates=mask).risk(batch)

        path = head_subsets.greedy(loss, num_layers, num_heads, case.counts)
        return path.layers * num_heads + path.heads

    program = jax.jit(order_of, compiler_options=moments.compiler_options())
    orders = over_runs(program, case.models, searched)  # [R, K-1]
    removed = np.eye(case.gates.size)[orders].cumsum(1).reshape(case.runs, -1, *case.gates.shape)
    whole = np.broadcast_to(case.gates, (case.runs, 1, *case.gates.shape))
    return np.concatenate([whole, whole - removed], axis=1)
