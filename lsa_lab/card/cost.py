"""Probes of the cost of a model: lower precision, time, memory and the size of the state."""

import time
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from lsa_lab.card.evaluation import EvaluationContext
from lsa_lab.card.mechanism import relative_changes
from lsa_lab.card.probe import Probe, make_probe

STATE_PROBE = "numbers in the state"
_REPEATS = 5  # timings, of which the shortest counts


def measure_precision(context: EvaluationContext) -> list[Probe]:
    """Measure the change of the predictions in bfloat16 and, for float64 models, in float32."""
    model, n, probes = context.model, context.tier.n, []
    batches = context.draw_batches(9, context.distribution)
    reference = context.predict(batches, [n])[..., 0]
    dtypes = ["bfloat16"] + ["float32"] * (jnp.dtype(model.dtype).itemsize == 8)
    for dtype in dtypes:
        low_model = replace(model, dtype=jnp.dtype(dtype))
        name = f"change in {dtype}"
        try:
            params = [_cast_params(dtype, run_params) for run_params in context.params]
            answers = replace(context, model=low_model, params=params).predict(batches, [n])[..., 0]
        except (TypeError, ValueError, NotImplementedError) as error:
            note = f"not measured: {type(error).__name__}"
            question = f"Does the model run in {dtype}?"
            probes.append(Probe(name, "precision", question, "no", note=note))
            continue
        says = f"In {dtype} the predictions change by at most 0.01 of their mean square."
        probes.append(make_probe(name, "precision", says, relative_changes(answers, reference),
                                 answers=answers, at_most=0.01, null=2.0,
                                 null_is="unrelated answers"))  # fmt: skip
    return probes


@partial(jax.jit, static_argnums=0)
def _cast_params(dtype: str, params: Any) -> Any:
    def cast(leaf: Array) -> Array:
        return leaf.astype(dtype) if jnp.issubdtype(leaf.dtype, jnp.floating) else leaf

    return jax.tree.map(cast, params)


def measure_speed(context: EvaluationContext) -> list[Probe]:
    """Measure milliseconds and bytes a token for one prompt on this machine."""
    model, params, probes = context.model, context.params[0], []
    for length in context.tier.lengths:
        tokens = jnp.ones((length, model.width), model.dtype)
        program = jax.jit(model.predict).lower(params, tokens).compile()
        seconds = min(_time_call(program, params, tokens) for _ in range(_REPEATS))
        memory = program.memory_analysis()
        num_bytes = float(memory.temp_size_in_bytes) / length if memory else float("nan")
        probes += [
            Probe(f"milliseconds a token, T = {length}", "speed", "How long does a token take?",
                  1e3 * seconds / length),
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


def _time_call(program: Any, *arguments: Any) -> float:
    start = time.perf_counter()
    jax.block_until_ready(program(*arguments))
    return time.perf_counter() - start
