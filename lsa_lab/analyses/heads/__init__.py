"""The importance of attention heads, and which of them to keep.

All functions take ``loss``: head_mask [L, H] -> [], the risk of a model on evaluation prompts that
the closure holds, so that all masks are compared on the same prompts:

    def loss(mask):
        traces = jax.vmap(lambda tokens: forward(params, tokens, config, mask))(batch)

A model that takes no mask is masked in its weights, by ``mask_heads``. For layers with fewer heads
than H give ``head_counts`` (transformer.Config.head_counts). Linear stacks can explode when a head
is missing: use the median over prompts, or over runs, as the loss. Modelled on the head assessment
and pruning of A4, 2408.04532 (docs/theory, "Head importance", "Pruning").
"""

from lsa_lab.analyses.heads.measures import Loss as Loss
from lsa_lab.analyses.heads.measures import effective_heads as effective_heads
from lsa_lab.analyses.heads.measures import first_order as first_order
from lsa_lab.analyses.heads.measures import importance as importance
from lsa_lab.analyses.heads.measures import losses as losses
from lsa_lab.analyses.heads.measures import mask_heads as mask_heads
from lsa_lab.analyses.heads.measures import normalised as normalised
from lsa_lab.analyses.heads.pruning import prune as prune
from lsa_lab.analyses.heads.pruning import prune_first_layer as prune_first_layer
from lsa_lab.analyses.heads.pruning import prune_to_random_heads as prune_to_random_heads
from lsa_lab.analyses.heads.pruning import remove_at_random as remove_at_random
