"""The subsets of each pool that proxies of several sizes choose, and random ones."""

from functools import partial

import jax
import jax.numpy as jnp
import optax

from experiments.matching.matching_transfer.config import GRADIENTS
from experiments.matching.matching_transfer.targets import descent, one_layer
from lsa_lab import estimators, prompts
from lsa_lab.models import linear_attention
from lsa_lab.selection import gradient_matching, prefix, rivals
from lsa_lab.tasks import pools
from lsa_lab.training import Training, fit
from lsa_lab.training.status import refuse_divergence


def stacks(config) -> dict:  # {rule: Params}
    """The frozen models in front of which a prefix is trained."""
    depth = min(config.descents)
    deep = jax.tree.map(lambda leaf: leaf[:depth], descent(config))
    return {"prefix": one_layer(config), "deep prefix": deep}


def prefixes(config, params, pool, key, label, progress):  # -> [G, C, k, e]
    """The prefix of a frozen model along its training on each pool, from before the first step."""
    keys = [jax.random.split(jax.random.fold_in(key, tag), len(pool.y)) for tag in range(2)]
    start = partial(prefix.init, prefix_length=config.prefix_length, e=config.d + 1)
    forward = linear_attention.forward
    training = Training(
        loss=lambda z, batch, _: prefix.batch_loss(forward, params, z, batch),
        sample=lambda key, rows: prefix.sample_batch(key, pools.Pool(*rows), min(64, config.m)),
        optimizer=lambda _: optax.adam(config.prefix_rate),
        steps=config.prefix_steps,
        label=f"matching_transfer: {label}",
    )
    run = fit(
        training,
        jax.jit(jax.vmap(start))(keys[0]),
        keys[1],
        per_run=(pool.x, pool.y),
        watch=lambda z: z,
        chunk=config.prefix_steps // config.checkpoints,
        progress=progress,
    )
    refuse_divergence(run.status, training.label, needs_all=True)
    return run.history["watch"][:, :-1]


def features(config, pool, learners):  # of one pool -> [F, m, p], in the order of GRADIENTS
    """What is matched, padded to one width: zeros beside it change no distance."""
    steps = jnp.full(config.checkpoints - 1, 0.3)  # from w = 0, in small steps

    def proxy(pool):
        whole = prompts.Prompt(pool.x, pool.y, pool.x[0], pool.y[0])
        return prefix.linear_gradients(estimators.gradient_descent(whole, steps), pool)

    path, forward = proxy(pool), linear_attention.forward
    literal = {
        rule: prefix.prefix_gradients(forward, params, learners[rule], pool)
        for rule, params in stacks(config).items()
    }
    parts = {
        "linear proxy": path,
        "its start": path[:, : config.d],
        "moments": rivals.moment_features(pools.tokens(pool)),
        "half proxy": proxy(pool.replace(x=pool.x[:, : -(-config.d // 2)])),
        **literal,
    }
    width = max(part.shape[1] for part in parts.values())
    padded = [
        jnp.pad(parts[rule], ((0, 0), (0, width - parts[rule].shape[1]))) for rule in GRADIENTS
    ]
    return jnp.stack(padded)


@partial(jax.jit, static_argnums=0)
def choose(config, pool, learners, keys):  # -> indices [G, S, n], gaps [G, F, random ones]
    """The choice of each of ``RULES``, then random subsets, and how far from the pool's mean the
    mean gradients of these are."""
    match = partial(gradient_matching.match, size=config.n)

    def choice(pool, learners, key):
        parts = features(config, pool, learners)
        chosen = jax.lax.map(lambda part: match(part).indices, parts)
        mismatched = match(parts[0], reverse=True).indices
        others = rivals.random_subsets(key, config.m, config.n, config.random_subsets)
        gaps = parts[:, others].mean(2) - parts.mean(1, keepdims=True)
        indices = jnp.concatenate([chosen, mismatched[None], others])
        return indices, jnp.linalg.norm(gaps, axis=-1)

    return jax.vmap(choice)(pool, learners, keys)
