"""One colour and one marker for a method, in all figures.

    style.mean_band(ax, x, runs, "Lasso", **METHOD["Lasso"])

A colour is a family, a marker its member: softmax attention is vermilion whatever stands beside it.
Rules that know the answer best are black or grey lines. Methods that select demonstrations never
stand beside models, and share their colours.
"""

from typing import Any

BLACK, GREY = "#000000", "#767676"
# Okabe and Ito's colours: told apart with any kind of colour vision. Yellow is left out: it is
# too pale for a line on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY = COLOURS


def _look(color: str, marker: str | None = None) -> dict[str, Any]:
    return {"color": color, "marker": marker}


MODELS = {  # and the algorithms and known rules beside them
    "linear": _look(BLUE, "o"),
    "linear, causal": _look(BLUE, "d"),
    "linear, norm": _look(BLUE, "D"),
    "linear, MLP": _look(BLUE, "P"),
    "linear, query a key": _look(BLUE, "X"),
    "linear, narrow keys": _look(BLUE, "v"),
    "softmax": _look(VERMILION, "s"),
    "softmax, causal": _look(VERMILION, "d"),
    "softmax, norm": _look(VERMILION, "D"),
    "softmax, norm, MLP": _look(VERMILION, "P"),
    # algorithms
    "descent": _look(GREEN, "^"),
    "descent, causal": _look(GREEN, "d"),
    "GD++": _look(PURPLE, "D"),
    "preconditioned descent": _look(ORANGE, "v"),
    "preprocessed descent": _look(SKY, "P"),
    "Newton": _look(SKY, "X"),
    # known rules
    "ridge": _look(BLACK),
    "least squares": _look(GREY),
    "Lasso": _look(ORANGE, ">"),
    "sparse Bayes": _look(PURPLE, "p"),
    "rotation-equivariant Bayes": _look(GREY, "h"),
}
SELECTION = {
    "random": _look(GREY, "X"),
    "best of 5": _look(GREY, "^"),
    "stratified": _look(GREY, "*"),
    "matching": _look(BLUE, "D"),
    "matching, intercept": _look(BLUE, "s"),
    "matching, prefix": _look(GREEN, "D"),
    "matching, whitened": _look(BLUE, "P"),
    "moments": _look(PURPLE, "P"),
    "mismatching": _look(SKY, "v"),
    "k-means": _look(ORANGE, "d"),
    "determinantal": _look(SKY, "p"),
    "leverage": _look(ORANGE, "s"),
    "similarity": _look(PURPLE, "D"),
    "residual": _look(ORANGE, "^"),
    "embedding": _look(PURPLE, "d"),
    "BM25": _look(PURPLE, "v"),
    "relevance": _look(GREEN, "s"),
    "contribution": _look(BLUE, "*"),
    "GradS": _look(VERMILION, "o"),
    "oracle": _look(BLACK, "*"),
    "no demonstrations": _look(GREY, "o"),
}
METHOD: dict[str, dict[str, Any]] = MODELS | SELECTION
