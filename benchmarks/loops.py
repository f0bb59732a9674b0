"""The two loops that training is timed in: `fit`, and the one that a careful newcomer writes."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from benchmarks import machine
from benchmarks.machine import NORMALS, NUMBERS, WIDTH
from benchmarks.timing import Clock, Form, Spent, calls, time_calls
from lsa_lab.models import moments
from lsa_lab.training import Training, fit

RATE = 1e-4  # of Adam, everywhere


def versions() -> str:
    return f"jax {jax.__version__}, optax {version('optax')}, {len(jax.local_devices())} devices"


def fit_form(
    loss: Callable,
    sample_of: Callable,
    batch: int,
    params: Any,
    runs: int | None = None,
    *,
    chunk: int,
    chunks: int = 3,
) -> Form:
    """Steps of ``fit`` as a user calls it: each turn is one call, whose first chunk isn't counted.

    With ``runs`` a step is one of all runs; every leaf of ``params`` then has that axis in front.
    ``sample_of(size)`` draws a batch of that size from a key.
    """
    steps, sample = chunk * chunks, sample_of(batch)
    training = Training(loss=loss, sample=sample, optimizer=optax.adam(RATE), steps=steps)
    key = jax.random.key(1)
    keys = key if runs is None else jax.random.split(key, runs)

    def turn() -> list[Spent]:
        clock = Clock()
        run = fit(training, params, keys, chunk=chunk, progress=clock)
        assert "diverged" not in str(run.status), run.status
        return [clock.spent(steps - chunk)]

    single = params if runs is None else jax.tree.map(lambda leaf: leaf[0], params)
    return Form(turn, [steps], lambda: [step_flops(loss, sample, single) * (runs or 1)])


def hand_form(loss: Callable, sample: Callable, params: Any, runs: int = 1, *, steps: int) -> Form:
    """A jitted step of value_and_grad and optax, called from Python, one run after the other."""
    optimizer = optax.adam(RATE)

    @jax.jit
    def step(params, opt_state, key):
        value, grads = jax.value_and_grad(loss)(params, sample(key))
        updates, opt_state = optimizer.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, value

    def train():
        for run in range(runs):
            now, opt_state = params, optimizer.init(params)
            for key in jax.random.split(jax.random.key(run), steps):
                now, opt_state, value = step(now, opt_state, key)
        return value

    def turn() -> list[Spent]:
        wall, processor = time_calls(train, 1, jax.block_until_ready)
        return [(wall / steps, processor / steps)]

    return Form(turn, [steps], lambda: [step_flops(loss, sample, params, lab=False) * runs])


def functions(
    *pairs: tuple[Callable, tuple], units: list[int], options: dict | None = None
) -> Form:
    """Compiled functions of given arguments, a point each."""
    jitted = [(jax.jit(function, compiler_options=options), given) for function, given in pairs]

    def called(function, given):
        return lambda: function(*given)

    def flops() -> list[float | None]:
        return [count_flops(function.lower(*given).compile()) for function, given in jitted]

    turn = calls(*(called(*pair) for pair in jitted), units=units, wait=jax.block_until_ready)
    return Form(turn, units, flops)


def once(*functions: Callable) -> Form:
    """Each function once, a point each, whose operations nobody counts."""
    ones = [1] * len(functions)
    return Form(
        calls(*functions, units=ones, wait=jax.block_until_ready), ones, lambda: [None] * len(ones)
    )


def step_flops(loss: Callable, sample: Callable, params: Any, lab: bool = True) -> float:
    """The compiler's count for a batch, its loss and the gradient."""
    options = moments.compiler_options() if lab else None
    step = jax.jit(
        lambda params, key: jax.value_and_grad(loss)(params, sample(key)), compiler_options=options
    )
    return count_flops(step.lower(params, jax.random.key(0)).compile())


def count_flops(compiled: Any) -> float:
    return compiled.cost_analysis()["flops"]


def limits(width: int = WIDTH, numbers: int = NUMBERS, normals: int = NORMALS) -> Form:
    """What this machine can do at best, points as ``machine.rates`` takes them: products, copies,
    fresh memory and random numbers."""
    matrix = jnp.ones((width, width), jnp.float32)
    product = jax.jit(lambda a: a @ a)
    draw = jax.jit(lambda key: jax.random.normal(key, (normals,), jnp.float32))
    source, target = np.ones(numbers, np.float32), np.ones(numbers, np.float32)
    count = len(machine.cores())
    pieces = list(zip(np.array_split(target, count), np.array_split(source, count), strict=True))
    pool = ThreadPoolExecutor(count)

    def copy():
        return list(pool.map(lambda pair: np.copyto(*pair), pieces))

    turn = calls(
        lambda: product(matrix),
        copy,
        source.copy,
        lambda: draw(jax.random.key(0)),
        units=(units := [3, 2, 1, 2]),
        wait=jax.block_until_ready,
    )
    return Form(turn, units, lambda: [None] * 4)
