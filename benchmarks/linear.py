"""Linear attention: W1, W2 and W5 train it; W6 takes its gradient over the demonstrations.

W1: Ahn et al. (2306.00297), W2: von Oswald et al. (2212.07677), at the sizes of their scripts.
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp

from benchmarks.loops import fit_form, functions, hand_form
from benchmarks.timing import Form, calls
from lsa_lab import prompts
from lsa_lab.models import linear_attention, moments
from lsa_lab.models.trace import predict
from lsa_lab.tasks.linear import LinearTask, sample, sample_batch, sample_moments_batch

SCALE = 0.02  # of the first weights


def ours(n: int, d: int, layers: int, batch: int, runs: int | None = None, **how) -> Form:
    """Prompts drawn, predictions in the form that the library chooses."""
    return fit_form(loss, prompts_of(n, d), batch, weights(layers, d, runs), runs, **how)


def ours_moments(n: int, d: int, layers: int, batch: int, **how) -> Form:
    """Second moments drawn in the place of prompts: the cost does not depend on n."""
    return fit_form(loss_by_moments, moments_of(n, d), batch, weights(layers, d), **how)


def ours_gradient(d: int, layers: int, batch: int, lengths: list[int]) -> Form:
    """The gradient in the form that the library chooses, of the same prompts at each n."""
    params = weights(layers, d)
    pairs = [(jax.grad(loss), (params, fixed_batch(n, d, batch))) for n in lengths]
    return functions(*pairs, options=moments.compiler_options(), units=repeats(lengths))


def ours_growth(places: list[dict], by: str) -> Form:
    """Prompts or moments, their loss and its gradient, at each place of sizes."""
    draws, read = {"prompts": (prompts_of, loss), "moments": (moments_of, loss_by_moments)}[by]

    def step(draw, params, key):
        return jax.value_and_grad(read)(params, draw(key))

    def pair(n, d, layers, batch):
        return partial(step, draws(n, d)(batch)), (weights(layers, d), jax.random.key(0))

    pairs = [pair(**place) for place in places]
    units = [max(2, 4000 // place["batch"]) for place in places]
    return functions(*pairs, options=moments.compiler_options(), units=units)


def ours_habits(n: int, d: int, layers: int, batch: int, other: bool) -> Form:
    """What docs/performance.md advises, or its other way: the gradient with ``compiler_options``
    or without, drawing its prompts flat or by vmap, and predicting a batch at once or by
    ``forward``, for one prompt and vmapped."""
    params = weights(layers, d)
    given, key = fixed_batch(n, d, batch), jax.random.key(0)
    slope = partial(jax.grad(loss), batch=given)
    flat, draw = prompts_of(n, d)(batch), partial(sample, task=LinearTask(n, d, dtype=jnp.float32))

    def draw_flat_or_by_vmap(key):
        batch_of_key = jax.vmap(draw)(jax.random.split(key, batch)) if other else flat(key)
        return jax.grad(loss)(params, batch_of_key)

    options = moments.compiler_options()
    pairs = [
        jax.jit(slope, compiler_options=None if other else options),
        jax.jit(draw_flat_or_by_vmap, compiler_options=options),
        jax.jit(
            partial(jax.grad(loss_by_forward if other else loss), batch=given),
            compiler_options=options,
        ),
    ]
    turn = calls(
        *map(partial, pairs, (params, key, params)),
        units=(units := [100, 50, 20]),
        wait=jax.block_until_ready,
    )
    return Form(turn, units, lambda: [None] * 3)


def prompts_of(n: int, d: int) -> Callable:
    """size -> key -> a batch of prompts."""
    task = LinearTask(n, d, dtype=jnp.float32)
    return lambda size: partial(sample_batch, task=task, size=size)


def moments_of(n: int, d: int) -> Callable:
    """size -> key -> second moments [e, e, B], queries [d, B] and their labels [B]."""
    task = LinearTask(n, d, dtype=jnp.float32)
    return lambda size: partial(sample_moments_batch, task=task, size=size)


def loss(params, batch):
    return jnp.mean((moments.predictions(params, batch) - batch.y_query) ** 2)


def loss_by_forward(params, batch):
    read = jax.vmap(lambda p: predict(linear_attention.forward(params, prompts.tokens(p))))
    return jnp.mean((read(batch) - batch.y_query) ** 2)


def loss_by_moments(params, batch):
    second_moments, x_queries, targets = batch
    predicted = moments.predictions_from_moments(params, second_moments, x_queries)
    return jnp.mean((predicted - targets) ** 2)


def plain(n: int, d: int, layers: int, batch: int, runs: int = 1, **how) -> Form:
    """What a careful newcomer writes after the formula: one prompt, vmap, jit."""

    def draw(key):
        return jax.vmap(lambda key: plain_prompt(key, n, d))(jax.random.split(key, batch))

    return hand_form(plain_loss, draw, plain_weights(layers, d), runs, **how)


def plain_gradient(d: int, layers: int, batch: int, lengths: list[int], form: str) -> Form:
    """The gradient in a newcomer's linear or quadratic form, of the same prompts as ours."""

    def given(n):
        same = fixed_batch(n, d, batch)
        return plain_weights(layers, d), (jax.vmap(prompts.tokens)(same), same.y_query)

    slope = jax.grad(partial(plain_loss, form=form))
    return functions(*((slope, given(n)) for n in lengths), units=repeats(lengths))


def plain_prompt(key, n, d):
    """Tokens [n + 1, d + 1], the query last, and its label."""
    key_x, key_w = jax.random.split(key)
    x = jax.random.normal(key_x, (n + 1, d))
    y = x @ jax.random.normal(key_w, (d,))
    return jnp.concatenate([x, y[:, None]], axis=1).at[-1, -1].set(0), y[-1]


def plain_weights(layers, d):
    keys = jax.random.split(jax.random.key(0), 2 * layers)
    matrices = [SCALE * jax.random.normal(key, (d + 1, d + 1)) for key in keys]
    return [{"kq": kq, "pv": pv} for kq, pv in zip(matrices[::2], matrices[1::2], strict=True)]


def plain_quadratic(params, tokens):
    """E + W_pv E M (Eᵀ W_kq E) / n, the query masked as a key; minus the last label slot."""
    n = len(tokens) - 1
    mask = jnp.ones(n + 1).at[-1].set(0)
    for layer in params:
        scores = (tokens @ layer["kq"].T) @ tokens.T * mask
        tokens = tokens + scores @ tokens @ layer["pv"].T / n
    return -tokens[-1, -1]


def plain_linear(params, tokens):
    """The same with the products in the other order: no scores."""
    n = len(tokens) - 1
    for layer in params:
        moment = tokens[:-1].T @ tokens[:-1] / n
        tokens = tokens + tokens @ (layer["pv"] @ moment @ layer["kq"]).T
    return -tokens[-1, -1]


PLAIN = {"linear": plain_linear, "quadratic": plain_quadratic}


def plain_loss(params, batch, form="quadratic"):
    tokens, targets = batch
    return jnp.mean((jax.vmap(PLAIN[form], (None, 0))(params, tokens) - targets) ** 2)


def weights(layers: int, d: int, runs: int | None = None) -> linear_attention.Params:
    init = partial(
        linear_attention.init, num_layers=layers, num_heads=1, d=d, scale=SCALE, dtype=jnp.float32
    )
    key = jax.random.key(0)
    return init(key) if runs is None else jax.vmap(init)(jax.random.split(key, runs))


def fixed_batch(n: int, d: int, batch: int) -> prompts.Prompt:
    """A batch that all forms are given."""
    return jax.jit(prompts_of(n, d)(batch))(jax.random.key(2))


def repeats(lengths: list[int]) -> list[int]:
    """Calls in a turn, so that each n takes about as long."""
    return [max(1, 1024 // n) for n in lengths]
