"""What `disturbances` judges: who spreads them, and what clipping changes of it."""

import numpy as np

from experiments.clipping.disturbances.config import KINDS
from lsa_lab.judging.statements import Statement, grid
from lsa_lab.judging.statistics import spearman

CELLS = ("layer", "module")


def removed_share(dataset):  # (run, layer, module)
    """log10 of what a disturbed input does to answers, each matrix clipped over whole."""
    return np.log10(dataset.clipped / dataset.move.sel(kind="input"))


def rank_correlation(left, right) -> np.ndarray:  # (run, layer, module) twice -> [R]
    """Spearman's over the layers of a run, averaged over modules."""
    over_layers = np.vectorize(spearman, signature="(l),(l)->()", otypes=[float])
    tables = (values.transpose("run", "module", "layer").values for values in (left, right))
    return over_layers(*tables).mean(-1)


def statements(config) -> tuple[Statement, ...]:
    move = "the mean square by which answers move, over that of answers,"
    words = {
        "input": dict(
            of="of what it reads",
            verb="is",
            note="Case 1 itself speaks of solving a system, which no layer does",
        ),
        "weights": dict(
            of="of its weights",
            verb="are",
            note="Case 1's footnote: the solution is sensitive to the coefficients of A; of W_v "
            "the worse conditioned layers spread less, of W_q more, and the mean is near 0",
        ),
    }
    return (
        Statement(
            "spreads",
            "A2 (2406.03768), Case 1, our reading, in our setting",
            "The worse conditioned a matrix, the more a disturbance {of} moves answers",
            "Spearman's correlation over layers, averaged over modules, of condition number and "
            f"{move} when its {{kind}} {{verb}} disturbed by {config.level:g}",
            at_least=0.0,
            note="{note}",
            label="condition, {kind}",
            sample=lambda r, kind: rank_correlation(r.condition, r.move.sel(kind=kind)),
            cells=grid("input_spreads weights_spread", kind=KINDS),
            words=lambda kind: words[kind],
            message="The worse conditioned a matrix, the more a disturbance of what it reads, or "
            "of its weights, moves answers",
        ),
        Statement(
            "clipping_removes",
            "A2 (2406.03768), section 3.4, our reading, in our setting",
            "A clipped matrix spreads less of a disturbance of what it reads than the whole one",
            f"log10 of {move} clipped at rate {config.rate:g} over whole, averaged over layers and "
            "modules,",
            at_most=0.0,
            note="a clipped matrix is smaller too: size_explains",
            label="clipped / whole, log₁₀",
            sample=lambda r: removed_share(r).mean(CELLS).values,
        ),
        Statement(
            "size_explains",
            "derived here",
            "Clipping takes away no more of a disturbance than of the matrix",
            f"log10 of {move} clipped over whole, less log10 of the ratio of |W|_F², averaged over "
            "layers and modules,",
            at_least=0.0,
            note="on average over directions both fall alike "
            '(docs/theory, "Solving and applying an ill-conditioned matrix"); '
            "with 36 runs they do within half a percent",
            label="the same, less size",
            sample=lambda r: (removed_share(r) - np.log10(r["share"])).mean(CELLS).values,
        ),
    )
