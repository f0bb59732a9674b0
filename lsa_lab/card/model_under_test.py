"""A model under test: its predictions for many prompts at once."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lsa_lab import prompts
from lsa_lab.prompts import Prompt

_BLOCK_SIZE = 64  # prompts in a call of the compiled program


class UnfitError(ValueError):
    """A model that a card cannot describe; the message says what to change."""


@dataclass(frozen=True)
class ModelUnderTest:
    """A checked model and the sizes of its prompts.

    ``predict(params, tokens)`` returns the predictions after each layer: [L+1, T] at every token of
    a causal model, and [L+1, 1] at the query of any other. Row 0 is the prediction before layer 1.
    """

    predict: Callable[[Any, Array], Array]
    causal: bool
    d: int
    n: int  # demonstrations in training
    dtype: Any
    predict_batch: Callable[[Any, Array], Array]  # jitted: [B, T, w] -> [B, L+1, T or 1]
    rule: str = ""  # the known rule that a layer computes by its design

    @property
    def width(self) -> int:
        """Return w, the width of a token."""
        return (2 if self.causal else 1) * self.d + 1

    def make_tokens(self, prompt: Prompt) -> Array:  # [T, 2d+1] or [n+1, d+1]
        """Return the tokens of one prompt in the layout of the model."""
        return prompts.bound_tokens(prompt) if self.causal else prompts.tokens(prompt)

    def predict_layers(self, params: Any, batch: Prompt) -> np.ndarray:  # [B, L]
        """Return the predictions for the query after each layer."""
        return self._predict(params, batch)[:, 1:, -1]

    def predict_places(self, params: Any, batch: Prompt, places: Any) -> np.ndarray:  # [B, P]
        """Return the predictions at places, that at t from the t pairs before it; [B] for one."""
        if self.causal:
            return self._predict(params, batch)[:, -1][:, places]
        prefixes = [take_prefix(batch, int(place)) for place in np.ravel(places)]
        rows = [self._predict(params, prefix)[:, -1, -1] for prefix in prefixes]
        return np.stack(rows, 1) if np.ndim(places) else rows[0]

    def _predict(self, params: Any, batch: Prompt) -> np.ndarray:  # [B, L+1, T or 1]
        batch = jax.tree.map(lambda leaf: np.asarray(leaf, self.dtype), batch)
        return self.predict_blocks(params, make_batch_tokens(batch, self.causal))

    def predict_blocks(self, params: Any, tokens: Array) -> np.ndarray:  # [B, L+1, T or 1]
        """Return the predictions for many prompts [B, T, w], computed in blocks of equal size.

        Prompts of a causal model are padded to the length in training. One compiled program thus
        serves all numbers of prompts and all lengths up to that in training.
        """
        size, length = tokens.shape[:2]
        num_padded = max(self.n + 1 - length, 0) if self.causal else 0
        padding = (0, -size % _BLOCK_SIZE), (0, num_padded), (0, 0)
        padded = jnp.pad(tokens, padding, mode="edge")
        starts = range(0, size, _BLOCK_SIZE)
        blocks = [self.predict_batch(params, padded[i : i + _BLOCK_SIZE]) for i in starts]
        predictions = np.concatenate([np.asarray(block, float) for block in blocks])[:size]
        return predictions[..., :length] if self.causal else predictions


@partial(jax.jit, static_argnums=1)
def make_batch_tokens(batch: Prompt, causal: bool) -> Array:  # [B, T, w]
    """Return the tokens of a batch in the causal layout or in that of a query."""
    return jax.vmap(prompts.bound_tokens if causal else prompts.tokens)(batch)


def take_prefix(batch: Prompt, place: int) -> Prompt:
    """Return the first ``place`` demonstrations of a batch, with the next x as the query."""
    n = batch.x.shape[1]
    x_query = batch.x_query if place == n else batch.x[:, place]
    y_query = batch.y_query if place == n else batch.y[:, place]
    return Prompt(batch.x[:, :place], batch.y[:, :place], x_query, y_query)


def hash_program(predict: Callable, params: Any, tokens: Array) -> str:
    """Return the sha256 of the traced model; "" if it calls Python code, which has no trace."""
    text = jax.jit(lambda *arguments: predict(*arguments)).lower(params, tokens).as_text()
    return "" if "python_cpu_callback" in text else hashlib.sha256(text.encode()).hexdigest()
