"""Edits of single layers of a language model, and its answers from a stream cached before them."""

import jax
import jax.numpy as jnp
import numpy as np

from experiments.language import models
from lsa_lab.analyses import clipping
from lsa_lab.lm import cached_stream
from lsa_lab.models.matrices import matrices


class Editor:
    """Edits of single layers of a model; singular vectors of edited layers stay in memory."""

    def __init__(self, params):
        self.params, self.terms = params, {}

    def clip(self, layer, part, rate):
        """Return a layer's leaves with matrices of a part truncated; heads are joined as in A2."""
        leaves = cached_stream.take_layer(self.params, layer)
        stacked = jax.tree.map(lambda leaf: leaf[None], leaves)
        if (layer, part) not in self.terms:
            self.terms[layer, part] = clipping.svd_terms(matrices(stacked, part))
        kept = clipping.kept_ranks(stacked, clipping.Edit(0, part, rate))
        clipped = clipping.rebuild(stacked, self.terms[layer, part], kept)
        return jax.tree.map(lambda leaf: leaf[0], clipped)

    def disturb(self, layer, part, rate, seed):
        """Return the leaves with Gaussian changes, each as large as that of clipping its leaf."""
        rng = np.random.default_rng(seed)

        def change(whole, clipped):
            size = np.linalg.norm(np.asarray(whole - clipped, float))
            if not size:
                return whole
            noise = rng.standard_normal(whole.shape)
            return whole + jnp.asarray(size / np.linalg.norm(noise) * noise, whole.dtype)

        leaves = cached_stream.take_layer(self.params, layer)
        return jax.tree.map(change, leaves, self.clip(layer, part, rate))

    def edit(self, kind, layer, part, rate, seed):
        place = layer, part, rate
        return self.clip(*place) if kind == "clipped" else self.disturb(*place, seed)


class Answers:
    """The margins of questions after one prompt, by the model or with a layer edited."""

    def __init__(self, model, pool, shown, questions, layers):
        self.model, self.words = model, pool.words
        self.cached = models.cache_streams(model, pool.write(shown), questions, layers)

    def read(self, layer, edit=None):  # -> [B]
        params, config = self.model.params, self.model.config
        rows = cached_stream.resume(params, self.cached[layer], config, at=layer, edit=edit)
        margins = models.read_margins(params, rows[:, -1], self.words, config=config)
        return np.asarray(margins, float)
