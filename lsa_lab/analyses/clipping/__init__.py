"""What truncated weights do: singular values cut from any module, curves over the rate, the search.

A2 cuts the smallest singular values of one module of one layer and asks whether the model predicts
better (docs/theory, "Norms under truncation", "The search for a rate"). Here every matrix is
decomposed once, exactly and in float64; an edit is then a mask over its singular values, and many
edits are one compiled program. A large model is edited layer by layer: ``Factors``,
``rebuild_layer``.
"""

from lsa_lab.analyses.clipping.cells import Averages
from lsa_lab.analyses.clipping.curves import Curve, curve
from lsa_lab.analyses.clipping.edits import Edit, clip, keep_masks
from lsa_lab.analyses.clipping.factors import Factors
from lsa_lab.analyses.clipping.ranks import (
    DROP,
    RATES,
    Factored,
    apply,
    as_heads,
    condition_number,
    drop,
    every_rate,
    factor,
    kept_rank,
    singular_values,
    stable_rank,
    truncate,
)
from lsa_lab.analyses.clipping.rebuilds import rebuild, rebuild_layer
from lsa_lab.analyses.clipping.searches import (
    compose,
    condition_numbers,
    search,
    search_everywhere,
)
from lsa_lab.analyses.clipping.splits import (
    Magnitudes,
    Terms,
    by_magnitude,
    by_random_direction,
    by_singular_value,
    free_numbers,
)
from lsa_lab.analyses.clipping.trials import Search
from lsa_lab.models.leaves import matrices, resolve

__all__ = [
    "DROP",
    "RATES",
    "Averages",
    "Curve",
    "Edit",
    "Factored",
    "Factors",
    "Magnitudes",
    "Search",
    "Terms",
    "apply",
    "as_heads",
    "by_magnitude",
    "by_random_direction",
    "by_singular_value",
    "clip",
    "compose",
    "condition_number",
    "condition_numbers",
    "curve",
    "drop",
    "every_rate",
    "factor",
    "free_numbers",
    "keep_masks",
    "kept_rank",
    "matrices",
    "rebuild",
    "rebuild_layer",
    "resolve",
    "search",
    "search_everywhere",
    "singular_values",
    "stable_rank",
    "truncate",
]
