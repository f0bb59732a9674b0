"""Predictions at every x of a prompt from the pairs before it."""

from collections.abc import Callable
from typing import Any, Literal

import jax.numpy as jnp
from jax import Array

from lsa_lab import prompts
from lsa_lab.arguments import check_choice
from lsa_lab.models import trace as traces
from lsa_lab.models.trace import Trace
from lsa_lab.prompts import Prompt

Layout = Literal["bound", "interleaved", "merged"]


def predictions(
    forward: Callable[[Any, Array], Trace],
    params: Any,
    prompt: Prompt,
    layout: Layout = "bound",
    sign: float = -1.0,
) -> Array:  # [n+1]
    """Return ŷ at x_1, ..., x_n and the query, each from the pairs before it.

    Args:
        forward: (params, tokens [T, e]) -> Trace.
        params: weights of one model.
        prompt: one prompt; use ``jax.vmap`` for a batch.
        layout: "bound" tokens [x_t, x_{t-1}, y_{t-1}] or "interleaved" ones x_1, y_1, x_2, ... take
            one pass, which equals the predictions of the prefixes if the model is causal (Garg et
            al. 2208.01066); "merged" tokens take n passes, and the first prediction is 0.
        sign: that of the read-out.

    Raises:
        ValueError: the layout is unknown, or the model returns the query's label slot alone.
    """
    check_choice(layout, "layout", Layout)
    if layout == "merged":
        n = prompt.x.shape[0]
        answers = [jnp.zeros_like(prompt.y_query)]
        for t in range(1, n + 1):
            x_query = prompt.x[t] if t < n else prompt.x_query
            prefix = prompt.replace(x=prompt.x[:t], y=prompt.y[:t], x_query=x_query)
            answers.append(traces.predict(forward(params, prompts.tokens(prefix)), sign))
        return jnp.stack(answers)
    bound = layout == "bound"
    rows = prompts.bound_tokens(prompt) if bound else prompts.interleaved_tokens(prompt)
    slots = traces.label_slots(forward(params, rows))[-1]
    if slots.shape[0] != rows.shape[0]:
        raise ValueError(
            "the model returns the query's label slot alone: return those of every token, "
            "interop.as_forward(function, causal=True), or use layout='merged'"
        )
    return sign * (slots if bound else slots[::2])


def loss(
    forward: Callable[[Any, Array], Trace], params: Any, prompt: Prompt, layout: Layout = "bound"
) -> Array:  # []
    """Return the mean squared error over all n + 1 prefixes of one prompt."""
    labels = jnp.append(prompt.y, prompt.y_query)
    return jnp.mean((predictions(forward, params, prompt, layout) - labels) ** 2)
