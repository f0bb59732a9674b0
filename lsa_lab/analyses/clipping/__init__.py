"""Truncate singular values of weight matrices and compare risks on the same prompts.

A2 removes the smallest singular values of one module of one layer and asks whether the model
predicts better (docs/theory, "Norms under truncation", "The search for a rate"). Each matrix is
decomposed once, in float64; an edit is then a number of singular values that are kept, and many
edits run in one compiled program.
"""

from lsa_lab.analyses.clipping.curves import Averages as Averages
from lsa_lab.analyses.clipping.curves import Curve as Curve
from lsa_lab.analyses.clipping.curves import curve as curve
from lsa_lab.analyses.clipping.edits import Edit as Edit
from lsa_lab.analyses.clipping.edits import Pruning as Pruning
from lsa_lab.analyses.clipping.edits import Terms as Terms
from lsa_lab.analyses.clipping.edits import clip as clip
from lsa_lab.analyses.clipping.edits import count_parameters as count_parameters
from lsa_lab.analyses.clipping.edits import kept_ranks as kept_ranks
from lsa_lab.analyses.clipping.edits import rebuild as rebuild
from lsa_lab.analyses.clipping.edits import sorted_magnitudes as sorted_magnitudes
from lsa_lab.analyses.clipping.edits import svd_terms as svd_terms
from lsa_lab.analyses.clipping.ranks import DROP as DROP
from lsa_lab.analyses.clipping.ranks import RATES as RATES
from lsa_lab.analyses.clipping.ranks import condition_number as condition_number
from lsa_lab.analyses.clipping.ranks import every_rate as every_rate
from lsa_lab.analyses.clipping.ranks import kept_rank as kept_rank
from lsa_lab.analyses.clipping.ranks import singular_values as singular_values
from lsa_lab.analyses.clipping.ranks import truncate as truncate
from lsa_lab.analyses.clipping.searches import Search as Search
from lsa_lab.analyses.clipping.searches import condition_numbers as condition_numbers
from lsa_lab.analyses.clipping.searches import search as search
