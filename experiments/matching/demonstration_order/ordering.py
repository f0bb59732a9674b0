"""Orders of demonstrations, and the causal stacks that `demonstration_order` asks with them."""

from functools import partial

import jax
import jax.numpy as jnp

from experiments.models import stacks
from lsa_lab import estimators, prompts
from lsa_lab.models import constructions, linear_attention, transformer
from lsa_lab.models.trace import predict
from lsa_lab.tasks.linear import LinearTask, sample

RULES = (
    "easy to hard",
    "hard to easy",
    "small to large step",
    "large to small step",
    "nearest last",
    "nearest first",
)


def models(config):
    """Their names: random, constructed, trained."""
    random, trained = ([f"{kind} {k}" for k in config.kernels] for kind in ("random", "trained"))
    return [*random, "descent", *trained]


def stack_of(config, kernel):
    sizes = (config.d, config.n, config.depth, config.steps, config.batch)
    return stacks.Stack(
        "softmax" if kernel == "softmax" else "linear heads",
        *sizes,
        config.learning_rate,
        heads=config.heads,
        noise_std=config.noise_std,
        init_scale=0.5,
        keys="causal",
    )


def orders(prompt, noise_std):  # Prompt -> [6, n]
    """The demonstrations sorted by each rule.

    Hard is a large residual |y_i - w·x_i| of the Bayes rule's w; a large step is a large gradient
    |y_i||x_i| at w = 0; near is near to the query.
    """
    weights = estimators.gaussian_posterior_mean(prompt, 1.0, noise_std**2)
    residual = jnp.abs(prompt.y - prompt.x @ weights)
    step = jnp.abs(prompt.y) * jnp.linalg.norm(prompt.x, axis=1)
    distance = jnp.linalg.norm(prompt.x - prompt.x_query[None], axis=1)
    keys = [residual, -residual, step, -step, -distance, distance]
    return jnp.stack([jnp.argsort(key) for key in keys])


@partial(jax.jit, static_argnums=0)
def draw(config, key):  # -> Prompt, leaves [R, B, ...], and orders [R, B, 6 + O, n]
    task = LinearTask(config.n, config.d, noise_std=config.noise_std)

    def one(key):
        key_prompt, key_orders = jax.random.split(key)
        prompt = sample(key_prompt, task)
        keys = jax.random.split(key_orders, config.random_orders)
        shuffled = jax.vmap(partial(jax.random.permutation, x=config.n))(keys)
        return prompt, jnp.concatenate([orders(prompt, config.noise_std), shuffled])

    keys = jax.random.split(key, (config.runs, config.test_prompts))
    return jax.lax.map(jax.vmap(one), keys)


@partial(jax.jit, static_argnums=0)
def predictions(forward, params, batch, orders):  # -> [R, B, 6 + O]
    def one(params, prompt, order):
        prompt = prompt.replace(x=prompt.x[order], y=prompt.y[order])
        return predict(forward(params, prompts.tokens(prompt)))

    over_orders = jax.vmap(one, (None, None, 0))
    over_prompts = jax.vmap(over_orders, (None, 0, 0))
    return jax.lax.map(lambda row: over_prompts(*row), (params, batch, orders))


def built(config, progress):
    """(forward, params [R]) of each model, twice: causal, and with every token reading all."""
    key = jax.random.fold_in(jax.random.key(config.seed), 1)
    found, status = {}, {}
    for kernel in config.kernels:
        stack = stack_of(config, kernel)
        label = f"demonstration_order: {kernel}"
        run = stacks.trained(stack, config.runs, config.seed, label, progress)
        shapes = {keys: _shape(stack, keys) for keys in ("causal", "demonstrations")}
        forward = {k: partial(transformer.forward, config=s) for k, s in shapes.items()}
        drawn = partial(transformer.init, config=_shape(stack, "causal", config.random_scale))
        found[f"random {kernel}"] = (
            forward,
            jax.jit(jax.vmap(drawn))(jax.random.split(key, config.runs)),
        )
        params = jax.tree.map(lambda leaf: jnp.asarray(leaf, float), run.params)
        found[f"trained {kernel}"] = forward, params
        status[f"trained {kernel}"] = [one.kind for one in run.status]
    step = 1 / (1 + (1 + config.d + config.noise_std**2) / config.n)
    descent = constructions.gradient_descent(jnp.full(config.depth, step), config.d)
    many = jax.tree.map(lambda leaf: jnp.repeat(leaf[None], config.runs, 0), descent)
    forward = {
        keys: partial(linear_attention.forward, keys=keys) for keys in ("causal", "demonstrations")
    }
    found["descent"] = forward, many
    return found, status


def _shape(stack, keys, scale=None):
    shape = stacks.shape(stack)
    changes = {"keys": keys} | ({} if scale is None else {"init_scale": scale})
    return transformer.Config(**(vars(shape) | changes))
