"""Probes of what a model needs, in weights, precision, time, memory and steps, and can learn."""

import time
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from lsa_lab.analyses.clipping import truncate
from lsa_lab.card.evaluation import EvaluationContext, Probe, make_probe
from lsa_lab.card.mechanism import relative_changes
from lsa_lab.card.probes import find_accuracy
from lsa_lab.card.recipe import STRIDE, fit_runs
from lsa_lab.training import Training

STATE_PROBE = "numbers in the state"
_MATRICES = ("w_q", "w_k", "w_v", "w_o", "mlp_in", "mlp_out")
_REPEATS = 5  # timings, of which the shortest counts
_POINTS = 100  # of the training curve
_COUNT_LENGTH = 16  # tokens in the training to count
_COUNT_SEED = 0x70617269
_COUNTS = {2: "parity of {} signs", 3: "count modulo 3 of {} signs"}
_truncate_half = jax.jit(partial(truncate, rate=0.5))


def measure_clipping(context: EvaluationContext) -> list[Probe]:
    """Measure the risk with the matrices of a layer at half rank, and without one of its heads."""
    n, probes, (depth, num_heads) = context.tier.n, [], context.params[0].w_q.shape[:2]
    test, validation = context.draw_batches(20), context.draw_batches(21)

    def compute_risks(batches: list, params: list) -> np.ndarray:  # [R]
        return replace(context, params=params).evaluate(batches, n)[0]

    intact = compute_risks(test, context.params)
    null = context.bayes_risks(test, n) / intact
    for layer in range(depth):
        title = f"layer {layer + 1} of {depth}"
        pruned = [
            [p.replace(w_o=jnp.asarray(p.w_o).at[layer, head].set(0)) for p in context.params]
            for head in range(num_heads)
        ]
        best = np.stack([compute_risks(validation, params) for params in pruned]).argmin(0)
        changes = {
            f"risk with {title} clipped": [_clip_layer(p, layer) for p in context.params],
            f"risk without a head of {title}": [pruned[h][run] for run, h in enumerate(best)],
        }
        probes += [
            make_probe(name, "clipping", "The risk rises by at most a tenth.",
                       compute_risks(test, params) / intact, at_most=1.1, null=null,
                       null_is="the Bayes rule")
            for name, params in changes.items()
        ]  # fmt: skip
    return probes


def _clip_layer(params: Any, layer: int) -> Any:
    """Return the params with every matrix of a layer, head by head, at half its rank."""
    leaves = {name: getattr(params, name) for name in _MATRICES}
    return params.replace(**{
        name: jnp.asarray(leaf).at[layer].set(_truncate_half(leaf[layer]))
        for name, leaf in leaves.items()
        if leaf is not None
    })  # fmt: skip


def measure_precision(context: EvaluationContext) -> list[Probe]:
    """Measure the change of the predictions in bfloat16 and, for float64 models, in float32."""
    model, n, probes, batches = context.model, context.tier.n, [], context.draw_batches(9)
    reference = context.predict(batches, n)
    for dtype in ["bfloat16"] + ["float32"] * (jnp.dtype(model.dtype).itemsize == 8):
        name = f"change in {dtype}"
        try:
            params = [_cast_params(dtype, run_params) for run_params in context.params]
            low = replace(context, model=replace(model, dtype=jnp.dtype(dtype)), params=params)
            answers = low.predict(batches, n)
        except (TypeError, ValueError, NotImplementedError) as error:
            question, note = f"Does the model run in {dtype}?", type(error).__name__
            probes.append(Probe(name, "precision", question, "no", note=f"not measured: {note}"))
            continue
        says = f"In {dtype} the predictions change by at most 0.01 of their mean square."
        probes.append(make_probe(name, "precision", says, relative_changes(answers, reference),
                                 answers, at_most=0.01, null=2.0,
                                 null_is="unrelated answers"))  # fmt: skip
    return probes


@partial(jax.jit, static_argnums=0)
def _cast_params(dtype: str, params: Any) -> Any:
    return jax.tree.map(
        lambda leaf: leaf.astype(dtype) if jnp.issubdtype(leaf.dtype, jnp.floating) else leaf,
        params,
    )


def measure_speed(context: EvaluationContext) -> list[Probe]:
    """Measure milliseconds and bytes a token for one prompt on this machine."""
    model, params, probes = context.model, context.params[0], []
    for length in context.tier.lengths:
        tokens, seconds = jnp.ones((length, model.width), model.dtype), []
        program = jax.jit(model.predict).lower(params, tokens).compile()
        for _ in range(_REPEATS):
            start = time.perf_counter()
            jax.block_until_ready(program(params, tokens))
            seconds.append(time.perf_counter() - start)
        memory = program.memory_analysis()
        num_bytes = float(memory.temp_size_in_bytes) / length if memory else float("nan")
        probes += [
            Probe(f"milliseconds a token, T = {length}", "speed", "How long does a token take?",
                  1e3 * min(seconds) / length),
            Probe(f"bytes a token, T = {length}", "speed", "How much memory does a token need?",
                  num_bytes, note="bytes that XLA reserves besides tokens and params"),
        ]  # fmt: skip
    if context.states is not None:
        tokens = jnp.ones((2, model.width), model.dtype)
        states = jax.eval_shape(context.states, params, tokens)
        if state_size := sum(leaf.size // 2 for leaf in jax.tree.leaves(states)):
            question = "How many numbers does the model carry from token to token?"
            probes.append(Probe(STATE_PROBE, "speed", question, float(state_size)))
    return probes


def measure_training_steps(context: EvaluationContext) -> list[Probe]:
    """Measure the steps until the risk on held-out prompts is at most twice the Bayes risk."""
    assert context.training is not None  # a condition of this probe
    history, num_steps = context.training.history, context.tier.steps
    below, block = np.less_equal(history["watch"], 2), max(num_steps // _POINTS, 1)
    losses = history["loss"][:, : num_steps // block * block]
    means = losses.reshape(len(losses), -1, block).mean(2)
    steps = [block * (i + 0.5) for i in range(means.shape[1])]
    context.curves["training"] = {"steps": steps, "runs": means}
    reached = np.asarray(below.any(1))
    first_steps = np.where(reached, below.argmax(1) * STRIDE, np.inf)
    num_missing = int((~reached).sum())
    note = f"{num_missing} of {len(reached)} runs never did" if num_missing else ""
    says = f"It reaches twice the Bayes risk within half of the {num_steps} steps of training."
    return [make_probe("steps to twice the Bayes risk", "steps", says, first_steps,
                       at_most=num_steps / 2, note=note)]  # fmt: skip


def draw_counts(key: Array, size: int, length: int, modulus: Array) -> tuple[Array, Array]:
    """Draw signs, and return them with the targets 1 - 2c/(m - 1) for the count c of -1 modulo m.

    The target of m = 2 is the product of the signs.
    """
    signs = jax.random.rademacher(key, (size, length), modulus.dtype)
    count = jnp.mod(jnp.cumsum((1 - signs) / 2, 1), modulus)
    return signs, 1 - 2 * count / (modulus - 1)


def measure_state_tracking(context: EvaluationContext) -> list[Probe]:
    """Measure the accuracy for parity and for counting modulo 3, at 16 and at 64 tokens."""
    model, runs = context.model, len(context.params)
    steps, predict = max(context.tier.steps // 4, 1), jax.vmap(model.predict, (None, 0))

    def sample(
        key: Array, settings: tuple, length: int = _COUNT_LENGTH, size: int = context.tier.batch
    ) -> tuple[Array, Array]:
        signs, targets = draw_counts(key, size, length, settings[0])
        rows = jnp.zeros((size, length, model.width), model.dtype)
        slots = jnp.asarray([0, model.d, 2 * model.d])  # of x_t, x_{t-1} and y_{t-1}
        return rows.at[..., slots].set(signs[..., None]), targets

    def loss(params: Any, examples: tuple[Array, Array], settings: tuple) -> Array:
        tokens, targets = examples
        return jnp.mean((predict(params, tokens)[:, -1] - targets) ** 2)

    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(3e-3))
    training = Training(loss, sample, lambda settings: optimizer, steps, label="counting")
    keys = jax.random.split(jax.random.fold_in(jax.random.key(0), _COUNT_SEED), runs)
    moduli = jnp.repeat(jnp.asarray([2, 3], model.dtype), runs)
    trained = fit_runs(training, context.init, jnp.concatenate([keys, keys]), moduli).params
    probes, note = [], f"trained anew for {steps} steps on the count after every sign"
    for i, (modulus, template) in enumerate(_COUNTS.items()):
        levels = 1 - 2 * np.arange(modulus) / (modulus - 1)
        for length in (_COUNT_LENGTH, 4 * _COUNT_LENGTH):
            answers, ends = [], []
            for r in range(i * runs, (i + 1) * runs):
                key = jax.random.fold_in(jax.random.key(1), r)
                tokens, targets = sample(key, (moduli[r],), length, context.tier.prompts)
                run_params = jax.tree.map(lambda leaf, r=r: leaf[r], trained)
                answers.append(model.predict_blocks(run_params, tokens)[:, -1, -1])
                ends.append(targets[:, -1])
            name, rows = template.format(length), np.stack(answers)
            says = f"The accuracy for the {name} is at least 0.9."
            accuracies = find_accuracy(rows, np.stack(ends), levels)
            probes.append(make_probe(name, "tracking", says, accuracies, rows, at_least=0.9,
                                     null=1 / modulus, null_is="chance", note=note))  # fmt: skip
    return probes
