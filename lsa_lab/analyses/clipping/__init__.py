"""What truncated weights do: singular values cut from any module, curves over the rate, the search.

A2 cuts the smallest singular values of one module of one layer and asks whether the model predicts
better (docs/theory, "Norms under truncation", "The search for a rate"). Here every matrix is
decomposed once, exactly and in float64; an edit is then a mask over its singular values, and many
edits are one compiled program. A large model is edited layer by layer: ``Factors``,
``rebuild_layer``.
"""

from lsa_lab.analyses.clipping.cells import Averages as Averages
from lsa_lab.analyses.clipping.curves import Curve as Curve
from lsa_lab.analyses.clipping.curves import curve as curve
from lsa_lab.analyses.clipping.edits import Edit as Edit
from lsa_lab.analyses.clipping.edits import clip as clip
from lsa_lab.analyses.clipping.edits import keep_masks as keep_masks
from lsa_lab.analyses.clipping.factors import Factors as Factors
from lsa_lab.analyses.clipping.ranks import DROP as DROP
from lsa_lab.analyses.clipping.ranks import RATES as RATES
from lsa_lab.analyses.clipping.ranks import Factored as Factored
from lsa_lab.analyses.clipping.ranks import apply as apply
from lsa_lab.analyses.clipping.ranks import as_heads as as_heads
from lsa_lab.analyses.clipping.ranks import condition_number as condition_number
from lsa_lab.analyses.clipping.ranks import drop as drop
from lsa_lab.analyses.clipping.ranks import every_rate as every_rate
from lsa_lab.analyses.clipping.ranks import factor as factor
from lsa_lab.analyses.clipping.ranks import kept_rank as kept_rank
from lsa_lab.analyses.clipping.ranks import singular_values as singular_values
from lsa_lab.analyses.clipping.ranks import stable_rank as stable_rank
from lsa_lab.analyses.clipping.ranks import truncate as truncate
from lsa_lab.analyses.clipping.rebuilds import rebuild as rebuild
from lsa_lab.analyses.clipping.rebuilds import rebuild_layer as rebuild_layer
from lsa_lab.analyses.clipping.searches import compose as compose
from lsa_lab.analyses.clipping.searches import condition_numbers as condition_numbers
from lsa_lab.analyses.clipping.searches import search as search
from lsa_lab.analyses.clipping.searches import search_everywhere as search_everywhere
from lsa_lab.analyses.clipping.splits import Magnitudes as Magnitudes
from lsa_lab.analyses.clipping.splits import Terms as Terms
from lsa_lab.analyses.clipping.splits import by_magnitude as by_magnitude
from lsa_lab.analyses.clipping.splits import by_random_direction as by_random_direction
from lsa_lab.analyses.clipping.splits import by_singular_value as by_singular_value
from lsa_lab.analyses.clipping.splits import free_numbers as free_numbers
from lsa_lab.analyses.clipping.trials import Search as Search
from lsa_lab.models.leaves import matrices as matrices
from lsa_lab.models.leaves import resolve as resolve
