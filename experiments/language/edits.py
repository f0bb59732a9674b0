"""One layer of a decoder with singular values cut from it, as ``halts`` takes it."""

from lsa_lab.analyses import clipping
from lsa_lab.analyses.clipping import Edit, Factors
from lsa_lab.analyses.clipping.ranks import Rate
from lsa_lab.lm.decoder import Params
from lsa_lab.store.cache import cache


class Edits:
    """Edits of single layers; a matrix is decomposed once, and its factors stay in the cache."""

    def __init__(self, params: Params):
        self.params = params
        self.factors = Factors(cache() / "factors", params, ("attention", "mlp"))

    def __call__(self, layer: int, module: str, rate: Rate) -> Params:
        """The layer's own leaves, those of a module cut at a rate, the heads of each stacked."""
        edit = Edit((layer,), (module,), rate)
        keep = clipping.keep_masks(self.params, self.factors, edit)
        return clipping.rebuild_layer(self.params, self.factors, keep, layer)
