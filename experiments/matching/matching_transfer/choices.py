"""The subsets of each pool that the smallest models choose, and random ones."""

from functools import partial

import jax
import jax.numpy as jnp
import optax

from experiments.matching.matching_transfer.targets import one_layer
from lsa_lab import estimators, prompts
from lsa_lab.models import linear_attention
from lsa_lab.selection import gradient_matching, prefix, rivals
from lsa_lab.tasks import pools
from lsa_lab.training import Training, fit


def prefixes(config, pool, key, progress):  # -> [G, C, k, e]
    """The prefix of the small model along its training on each pool, from before the first step."""
    keys = [jax.random.split(jax.random.fold_in(key, tag), len(pool.y)) for tag in range(2)]
    start = partial(prefix.init, prefix_length=config.prefix_length, e=config.d + 1)
    forward, params = linear_attention.forward, one_layer(config)
    training = Training(
        loss=lambda z, batch, _: prefix.batch_loss(forward, params, z, batch),
        sample=lambda key, rows: prefix.sample_batch(key, pools.Pool(*rows), min(64, config.m)),
        optimizer=lambda _: optax.adam(config.prefix_rate),
        steps=config.prefix_steps,
        label="matching_transfer: prefixes",
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
    return run.history["watch"][:, :-1]


@partial(jax.jit, static_argnums=0)
def choose(config, pool, learners, keys):  # -> indices [G, S, n]
    """The choice of each of ``RULES``, then random subsets."""
    match = partial(gradient_matching.match, size=config.n)

    def of_pool(pool, learner, key):
        whole = prompts.Prompt(pool.x, pool.y, pool.x[0], pool.y[0])
        steps = jnp.full(config.checkpoints - 1, 0.3)  # from w = 0, in small steps
        path = prefix.linear_gradients(estimators.gradient_descent(whole, steps), pool)
        forward, params = linear_attention.forward, one_layer(config)
        literal = prefix.prefix_gradients(forward, params, learner, pool)
        features = [path, path[:, : config.d], literal]
        features.append(rivals.moment_features(pools.tokens(pool)))
        width = max(part.shape[1] for part in features)  # zeros beside it change no distance
        padded = [jnp.pad(part, ((0, 0), (0, width - part.shape[1]))) for part in features]
        chosen = jax.lax.map(lambda part: match(part).indices, jnp.stack(padded))
        mismatched = match(path, reverse=True).indices
        others = rivals.random_subsets(key, config.m, config.n, config.random_subsets)
        return jnp.concatenate([chosen, mismatched[None], others])

    return jax.vmap(of_pool)(pool, learners, keys)
