"""The learners that are trained on each pool, and every example's gradients along their training.

The linear proxy, and prefixes of several lengths in front of one layer of masked linear attention.
"""

import jax
import jax.numpy as jnp

from experiments.matching import checkpoints, subsets
from experiments.matching.gradient_matching.config import LENGTH
from lsa_lab.models import constructions, linear_attention
from lsa_lab.selection import baselines, prefix
from lsa_lab.tasks import pools


def recipe(config, learning_rate, saves):
    sizes = dict(epochs=config.epochs, batch=config.batch)
    return prefix.Recipe(**sizes, saves=saves, learning_rate=learning_rate)


def gradients(config, pool, keys_linear, key_prefix, progress):
    """Gradients of the linear proxy [R, m, p] and of each prefix [R, K, m, p'], and the features
    that are matched [R, F, m, p'']."""
    lengths, linear = tuple(config.prefix_lengths), recipe(config, config.linear_rate, config.saves)
    path = checkpoints.linear_checkpoints(pool, linear, keys_linear, "gradient_matching", progress)
    literal = recipe(config, config.prefix_rate, config.saves)
    prefixes = prefix_checkpoints(pool, lengths, literal, key_prefix, progress)

    def run_gradients(row):
        prefixes, pool = row
        return prefix_gradients(prefixes, lengths, pool)

    @jax.jit
    def collect(pool, path, prefixes):
        linear = jax.vmap(prefix.linear_gradients)(path, pool)
        literal = jax.lax.map(run_gradients, (prefixes, pool), batch_size=32)  # for the memory
        oracle = jax.vmap(baselines.moment_features)(jax.vmap(pools.tokens)(pool))
        used = literal[:, lengths.index(LENGTH)].reshape(*linear.shape[:2], config.saves, -1)
        used = used[..., : LENGTH * (config.d + 1)].reshape(*linear.shape[:2], -1)
        return linear, literal, jax.vmap(subsets.side_by_side)(linear, used, oracle)

    return collect(pool, path, prefixes)


def one_layer(d, scale):  # -> Params
    """One step of descent, its answer times ``scale``."""
    return constructions.gradient_descent(jnp.full(1, scale), d)


def prefix_checkpoints(pool, lengths, recipe, key, progress=None):  # -> [R, K, C, k, e]
    """Prefixes of several lengths in front of the one-layer model, along their training.

    All have the width k of the longest, and zeros after their own tokens: the model is quadratic in
    each of its tokens, so that these get no gradient and stay zero, and the mean over the tokens is
    scaled to one over a prefix's own.
    """
    runs, _, d = pool.x.shape
    longest, count = max(lengths), len(lengths)
    own = jnp.arange(longest)[None] < jnp.asarray(lengths)[:, None]  # [K, k]

    def init(key):  # [K, k, e]: a longer prefix begins like a shorter one
        return jnp.where(own[:, :, None], prefix.init(key, longest, d + 1)[None], 0)

    key_init, key_data = jax.random.split(key)
    start = jax.jit(jax.vmap(init))(jax.random.split(key_init, runs))
    again = jax.tree.map(lambda leaf: jnp.repeat(leaf, count, axis=0), (pool.x, pool.y))
    scales = jnp.tile(longest / jnp.asarray(lengths, float), runs)

    def loss(z, batch, row):
        params = one_layer(d, row[2])
        return prefix.batch_loss(linear_attention.forward, params, z, pools.Pool(*batch))

    keys = jnp.repeat(jax.random.split(key_data, runs), count)
    starts, rows = start.reshape(-1, longest, d + 1), (*again, scales)
    label = "gradient_matching: prefixes"
    path = checkpoints.trained_path(loss, recipe, starts, keys, rows, label, progress)
    return path.reshape(runs, count, *path.shape[1:])


def prefix_gradients(prefixes, lengths, pool):  # [K, C, k, e] -> [K, m, C·k·e], of one run
    """``prefix.prefix_gradients`` for every length."""
    d = pool.x.shape[1]
    scales = max(lengths) / jnp.asarray(lengths, float)

    def length_gradients(scale, prefixes):
        forward, params = linear_attention.forward, one_layer(d, scale)
        return prefix.prefix_gradients(forward, params, prefixes, pool)

    return jax.vmap(length_gradients)(scales, prefixes)
