"""Many demonstrations, some of them near-duplicates of others, and stacks that read them."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.flow.many_shot_flow.config import Config
from experiments.models import stacks
from lsa_lab.analyses import disparity
from lsa_lab.analyses.amplification import demonstration_flow, interactions, log_sizes
from lsa_lab.models import constructions
from lsa_lab.prompts import Prompt, tokens

DESCENTS = ("descent", "short steps")
KINDS = (*DESCENTS, "linear, untrained", "linear", "softmax, untrained", "softmax")
LEARNERS = (*DESCENTS, "linear", "softmax")  # those that have something to explain away


def draw(config: Config) -> tuple:
    """Two independent halves of the longest prompt [R, B, n/2, d], w and x_query [R, B, d]."""
    rng = np.random.default_rng(config.seed)
    each = (config.runs, config.prompts)
    halves = rng.standard_normal((2, *each, max(config.counts) // 2, config.d))
    return *halves, *rng.standard_normal((2, *each, config.d))


def prompts_of(config: Config, drawn: tuple, count: int, pairs: int) -> Prompt:  # [C, R, B]
    """Demonstrations 2i + 1, i < pairs, are cx + √(1 - c²)z of the x before them; others are z.

    Nothing but c differs along the first axis: every prompt is its own control.
    """
    first, second, w, x_query = drawn
    first, second = first[:, :, : count // 2], second[:, :, : count // 2]
    c = np.array(config.correlations)[:, None] * (np.arange(count // 2) < pairs)  # [C, n/2]
    c = c[:, None, None, :, None]
    partner = c * first + np.sqrt(1 - c**2) * second
    x = np.stack([np.broadcast_to(first, partner.shape), partner], axis=-2)
    x = x.reshape(*x.shape[:3], count, config.d)
    y, y_query = np.einsum("crbnd,rbd->crbn", x, w), (w * x_query).sum(-1)
    again = [np.broadcast_to(part, (len(x), *part.shape)) for part in (x_query, y_query)]
    return Prompt(x, y, *again)


def sizes(forward, params, prompt):  # -> {name: [L]}
    """How unequal the flows of one prompt are, and how large."""
    logs = log_sizes(demonstration_flow(forward, params, prompt))
    return {
        "logs": logs,  # [L, n]
        "top_share": disparity.top_share(logs),
        "gini": disparity.gini(logs),
        "effective": disparity.effective_number(logs),
        "size": jax.nn.logsumexp(logs, axis=1) - np.log(logs.shape[1]),
    }


def turned(logs):  # [R, B, L, n] -> {name: [R, B, L]}
    """The median over pairs of their log ratios: without a sign, or with the sign that makes every
    pair positive at the first layer, or at the last."""
    i, j = np.triu_indices(logs.shape[-1], 1)
    ratios = logs[..., i] - logs[..., j]  # [R, B, L, pairs]
    signs = {"from_first": np.sign(ratios[..., :1, :]), "from_last": np.sign(ratios[..., -1:, :])}
    found = {name: np.median(ratios * sign, axis=-1) for name, sign in signs.items()}
    return found | {"spread": np.median(np.abs(ratios), axis=-1)}


def joint(forward, params, prompt):  # -> {name: []}
    """How two demonstrations interact, over the mean effect of one and with the sign of theirs:
    negative if together they do less. The median over pairs of duplicates, and over others."""
    flow = demonstration_flow(forward, params, prompt)[-1]
    effects = (flow * tokens(prompt)[:-1]).sum(1)
    both = jnp.sign(effects[:, None] + effects[None]) / jnp.abs(effects).mean()
    matrix = both * interactions(forward, params, prompt)
    i, j = np.triu_indices(len(effects), 1)
    twins = (i % 2 == 0) & (j == i + 1)
    names = {"duplicates": twins, "others": ~twins}
    return {name: jnp.median(matrix[i[which], j[which]]) for name, which in names.items()}


@partial(jax.jit, static_argnums=(0, 1))
def look(measure, forward, params, batch):  # Params [V, R], Prompt [C, R, B] -> [V, C, R, B, ...]
    per_run = jax.vmap(jax.vmap(partial(measure, forward), (None, 0)))
    return jax.lax.map(
        lambda weights: jax.lax.map(lambda prompts: per_run(weights, prompts), batch), params
    )


def models(config: Config, progress=None) -> dict:  # {model: (forward, count -> Params [V, R])}
    """Together they are KINDS: descent with the step that is best for one layer, or with a part of
    it, and stacks before and after training."""
    found = {}
    for model in stacks.MODELS:
        stack = stacks.stack_of(model, config)
        label = f"many_shot_flow: {model}"
        run = stacks.trained(stack, config.runs, config.seed, label, progress)
        watched = jax.tree.map(lambda leaf: np.asarray(leaf, float), run.history["watch"])
        found[model] = (stacks.forward(stack), watched)  # [R, V, ...]
    forward, linear = found["linear"]
    gains = np.array([config.gain, 1])  # before and after training
    descent = jax.jit(partial(constructions.gradient_descent, d=config.d))

    def with_descent(count):
        best = np.full(config.depth, 1 / (1 + (1 + config.d) / count))

        def together(leaf, *others):  # [R, V, L, ...] and [L, ...] of the others -> [V, R, L, ...]
            others = [np.broadcast_to(other, leaf[:, 0].shape) for other in others]
            return np.stack([*others, *(leaf * gains[:, None, None, None, None]).swapaxes(0, 1)])

        return jax.tree.map(together, linear, descent(best), descent(best * config.short))

    run, softmax = found["softmax"]
    softmax = jax.tree.map(lambda leaf: leaf.swapaxes(0, 1), softmax)
    return {"linear": (forward, with_descent), "softmax": (run, lambda count: softmax)}
