"""How much each head matters, and which to keep.

Everything takes ``loss``: head_mask [L, H] -> [], the risk of a model on an evaluation batch that
the closure holds, so that all masks are judged on the same prompts. What the mask does to a head is
the loss's affair: zero, or with ``head_fill`` its mean or its writes on another prompt,

    def loss(mask):
        traces = jax.vmap(lambda t, fill: forward(params, t, config, mask, fill))(tokens, fills)

A model that takes no mask is masked in its weights, by ``masked``. Layers with fewer heads than H
are told by ``head_counts`` (transformer.Config.head_counts). Linear stacks can explode when a head
is missing: take the median over prompts as the loss, or over runs.
Modelled on the head assessment and pruning of A4, 2408.04532 (docs/theory, "Head
importance", "Pruning").
"""

from lsa_lab.analyses.heads.fills import masked as masked
from lsa_lab.analyses.heads.fills import mean_fill as mean_fill
from lsa_lab.analyses.heads.fills import resampled_fill as resampled_fill
from lsa_lab.analyses.heads.measures import Loss as Loss
from lsa_lab.analyses.heads.measures import effective_heads as effective_heads
from lsa_lab.analyses.heads.measures import first_order as first_order
from lsa_lab.analyses.heads.measures import importance as importance
from lsa_lab.analyses.heads.measures import losses as losses
from lsa_lab.analyses.heads.measures import normalised as normalised
from lsa_lab.analyses.heads.pruning import prune as prune
from lsa_lab.analyses.heads.pruning import prune_first_layer as prune_first_layer
from lsa_lab.analyses.heads.pruning import prune_to_random_heads as prune_to_random_heads
from lsa_lab.analyses.heads.pruning import remove_at_random as remove_at_random
