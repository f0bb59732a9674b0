"""The flow from each demonstration to the answer, layer by layer, and how much its order sharpens.

A1 measures a demonstration by the gradient that flows from it to the prediction, and holds that
depth enlarges the ratio between a strong demonstration and a weak one (docs/theory, "The
amplification theorem"). The flow is a derivative and exists for every model; the ratio is a number
to look at, not a theorem. Shares of the total, and fractions over many prompts, are in
``disparity``.

Everywhere ``forward(params, tokens)`` takes the merged tokens of ``prompts.tokens``: a model with a
config comes as ``functools.partial(transformer.forward, config=config)``, a mask likewise, and a
model of interleaved tokens after a function that interleaves them. A model without a label slot
says by ``flow(read, tokens)`` what is read, and its demonstrations are spans of tokens:

    def read(stream):  # the margin of two words of a decoder at the last token, by layer
        rows = decoder.forward(params, stream, config).stream[1:, last]
        return decoder.logits(params, rows, config) @ words  # [L]

    logs = log_sizes(flow(read, decoder.embed(params, ids, config)), spans)
"""

from lsa_lab.analyses.amplification.flows import Forward as Forward
from lsa_lab.analyses.amplification.flows import Read as Read
from lsa_lab.analyses.amplification.flows import demonstration_flow as demonstration_flow
from lsa_lab.analyses.amplification.flows import flow as flow
from lsa_lab.analyses.amplification.flows import interactions as interactions
from lsa_lab.analyses.amplification.flows import moment_flow as moment_flow
from lsa_lab.analyses.amplification.flows import moment_token_flow as moment_token_flow
from lsa_lab.analyses.amplification.flows import token_flow as token_flow
from lsa_lab.analyses.amplification.sizes import Spans as Spans
from lsa_lab.analyses.amplification.sizes import amplification_ratio as amplification_ratio
from lsa_lab.analyses.amplification.sizes import log_ratio as log_ratio
from lsa_lab.analyses.amplification.sizes import log_sizes as log_sizes
