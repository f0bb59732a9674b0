"""Edits of single layers of a decoder: parts clipped, or changed at random by as much."""

import jax
import jax.numpy as jnp
import numpy as np

from lsa_lab import lm
from lsa_lab.analyses import clipping
from lsa_lab.analyses.clipping.ranks import condition
from lsa_lab.lm import halts
from lsa_lab.lm.decoder import Params
from lsa_lab.models import leaves
from lsa_lab.store.cache import cache

Edit = tuple[int, str, float | str]  # layer, module, rate of clipping or "drop"


class Clipped:
    """A decoder and edits of its single layers; the factors of its matrices stay in the cache."""

    def __init__(self, decoder: lm.Decoder):
        self.decoder = decoder
        self.factors = clipping.Factors(cache() / "factors", decoder.params, ("attention", "mlp"))

    def layer(self, edit: Edit) -> Params:
        """The layer's own leaves, those of a module cut at a rate, the heads of each stacked."""
        layer, module, rate = edit
        edit = clipping.Edit((layer,), (module,), rate)
        keep = clipping.keep_masks(self.decoder.params, self.factors, edit)
        return clipping.rebuild_layer(self.decoder.params, self.factors, keep, layer)

    def disturbed(self, edit: Edit, seed: int) -> Params:
        """The layer's own leaves with a Gaussian matrix in the place of what the cut takes away,
        as large in the Frobenius norm: the null of clipping."""
        rng = np.random.default_rng(seed)

        def change(whole, cut):
            size = np.linalg.norm(np.asarray(whole - cut, float))
            if not size:
                return whole
            noise = rng.standard_normal(whole.shape, np.float32)
            return whole + jnp.asarray(size / np.linalg.norm(noise) * noise, whole.dtype)

        return jax.tree.map(change, halts.layer_of(self.decoder.params, edit[0]), self.layer(edit))


def condition_numbers(params, module: str) -> np.ndarray:  # [L]
    """s_1/s_min of each layer, of a module's matrices the largest; heads are stacked."""
    every = leaves.matrices(params, module).values()
    spectra = (np.linalg.svd(np.asarray(x, float), compute_uv=False) for x in every)
    return np.max([np.asarray(condition(values)) for values in spectra], axis=0)
