"""What `matching_transfer` chooses from and by, the stacks it asks, and their errors."""

from functools import partial

import jax
import jax.numpy as jnp
import optax

from experiments.models import stacks
from lsa_lab import estimators, prompts
from lsa_lab.models import constructions, linear_attention, moments
from lsa_lab.selection import gradient_matching, prefix, rivals
from lsa_lab.tasks import pools
from lsa_lab.training import Training, fit

RULES = ("linear proxy", "its start", "prefix", "moments", "mismatched")  # then random ones
SMALL = "one layer"  # the model on which the prefix is trained; the linear proxy's first step


def targets(config):
    """Trained stacks by name."""
    sizes, steps = (config.d, config.n), (config.steps, config.batch)
    noise, rate, slow = {"noise_std": config.noise_std}, config.learning_rate, config.wide_rate
    heads = noise | {"heads": config.heads}
    mlp = {"width": config.width, "norm": True, "mlp_width": config.mlp_width, "init_scale": 0.5}
    deep = (*sizes, config.deep, *steps, slow)
    known = {
        "linear": stacks.Stack("linear", *sizes, config.linear_depth, *steps, rate, **noise),
        "linear, MLP": stacks.Stack("linear heads", *deep, **heads, **mlp),
        "softmax": stacks.Stack("softmax", *sizes, config.depth, *steps, rate, **heads),
        "softmax, MLP": stacks.Stack("softmax", *deep, **heads, **mlp),
    }
    return {name: known[name] for name in config.trained}


def names(config):
    descents = [f"descent, {depth} steps" for depth in config.descents]
    return [SMALL, *descents, *targets(config)]


def small(config):
    """The best single step."""
    return constructions.one_step_optimum(jnp.eye(config.d), config.n, config.noise_std**2)


def descent(config):
    """Its step again and again; the first layers are the shorter descents."""
    step = 1 / (1 + (1 + config.d + config.noise_std**2) / config.n)
    return constructions.gradient_descent(jnp.full(max(config.descents), step), config.d)


def draw(config, key):  # Pool, leaves [G, m, ...], and queries [G, Q, ...], G = R·P
    task = pools.PoolTask(config.m, config.d, noise_std=config.noise_std)

    def one(key):
        key_pool, key_queries = jax.random.split(key)
        pool = pools.sample(key_pool, task)
        return pool, pools.queries(key_queries, task, pool.law, config.queries)

    return jax.vmap(one)(jax.random.split(key, config.runs * config.pools))


def prefixes(config, pool, key, progress):  # -> [G, C, k, e]
    """The prefix of the small model along its training on each pool, from before the first step."""
    keys = [jax.random.split(jax.random.fold_in(key, tag), len(pool.y)) for tag in range(2)]
    start = partial(prefix.init, prefix_length=config.prefix_length, e=config.d + 1)
    training = Training(
        loss=lambda z, batch, _: prefix.batch_loss(
            linear_attention.forward, small(config), z, batch
        ),
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
    match = partial(gradient_matching.match, size=config.n)

    def one(pool, learner, key):
        whole = prompts.Prompt(pool.x, pool.y, pool.x[0], pool.y[0])
        steps = jnp.full(config.checkpoints - 1, 0.3)  # from w = 0, in small steps
        path = prefix.linear_gradients(estimators.gradient_descent(whole, steps), pool)
        literal = prefix.prefix_gradients(linear_attention.forward, small(config), learner, pool)
        features = [path, path[:, : config.d], literal]
        features.append(rivals.moment_features(pools.tokens(pool)))
        width = max(part.shape[1] for part in features)  # zeros beside it change no distance
        padded = [jnp.pad(part, ((0, 0), (0, width - part.shape[1]))) for part in features]
        chosen = jax.lax.map(lambda part: match(part).indices, jnp.stack(padded))
        mismatched = match(path, reverse=True).indices
        others = rivals.random_subsets(key, config.m, config.n, config.random_subsets)
        return jnp.concatenate([chosen, mismatched[None], others])

    return jax.vmap(one)(pool.replace(law=None), learners, keys)


@partial(jax.jit, static_argnums=0)
def descents(config, x, y, queries):  # [R, P, S, n, d], [R, P, Q, d] -> [1 + descents, R, P, S]
    """The errors of the constructed stacks, whose answers are linear in the query."""

    def one(x, y, asked, answers):
        moment = prompts.second_moment(prompts.Prompt(x, y, x[0], y[0]))
        maps = (
            moments.layer_maps(small(config), moment),
            moments.layer_maps(descent(config), moment),
        )
        weights = -jnp.stack([maps[0][1], *(maps[1][depth] for depth in config.descents)])[
            :, -1, :-1
        ]
        return ((weights @ asked.T - answers[None]) ** 2).mean(1)

    over_pools = jax.vmap(jax.vmap(one, (0, 0, None, None)))
    return jnp.moveaxis(jax.lax.map(lambda row: over_pools(*row), (x, y, *queries)), -1, 0)


@partial(jax.jit, static_argnums=0)
def errors(predicted, params, x, y, queries):  # [R, P, S, n, d], [R, P, Q, d] -> [R, P, S]
    """Mean squared error on the queries of each pool, of every subset, on each run's weights."""

    def one(params, x, y, asked, answers):  # of one prompt
        batch = prompts.Prompt(
            jnp.broadcast_to(x, (len(asked), *x.shape)),
            jnp.broadcast_to(y, (len(asked), *y.shape)),
            asked,
            answers,
        )
        return ((predicted(params, batch) - answers) ** 2).mean()

    over_subsets = jax.vmap(one, (None, 0, 0, None, None))
    over_pools = jax.vmap(over_subsets, (None, 0, 0, 0, 0))
    return jax.lax.map(lambda row: over_pools(*row), (params, x, y, *queries))
