"""One layer of a decoder with singular values cut from it, as ``halts`` takes it."""

from jax import Array

from lsa_lab.analyses import clipping
from lsa_lab.analyses.clipping.ranks import Rate
from lsa_lab.lm import halts
from lsa_lab.lm.decoder import Params

# A2 clips a block's matrices together, each to its own rank, or one of them alone.
MODULES = {
    "attention": ("w_q", "w_k", "w_v", "w_o"),
    "mlp": ("mlp_in", "mlp_gate", "mlp_out"),
}


def edited_layer(params: Params, layer: int, module: str, rate: Rate) -> Params:
    """The layer's own leaves, those of ``module`` cut at ``rate``, the heads of each stacked."""
    own = halts.layer_of(params, layer)
    names = (name for name in MODULES.get(module, (module,)) if getattr(own, name) is not None)
    return own.replace(**{name: _cut(name, getattr(own, name), rate) for name in names})


def _cut(name: str, leaf: Array, rate: Rate) -> Array:
    """[H, k, D] is cut as [Hk, D], and w_o [H, D, k] as [D, Hk]; the MLP's have no heads."""
    turned = leaf.swapaxes(-1, -2) if name == "w_o" else leaf
    whole = turned.reshape(-1, turned.shape[-1])
    cut = clipping.drop(whole) if rate == clipping.DROP else clipping.truncate(whole, rate)
    cut = cut.reshape(turned.shape)
    return cut.swapaxes(-1, -2) if name == "w_o" else cut
