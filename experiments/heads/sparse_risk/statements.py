"""What `sparse_risk` judges; the bounds were fixed before its first run, the sizes were not."""

from dataclasses import replace

from lsa_lab.claims import Statement

HERE = "derived here"
A4 = "modelled on A4 (2408.04532), abstract"
LASSO = "modelled on A4 (2408.04532), its comparison with the Lasso"
LOOKED = "sizes settled in four looks"
ANEW = "sampled anew, once, from a fresh seed"


def statements(config) -> tuple[Statement, ...]:
    return tuple(replace(row, revision=LOOKED, redrawn=ANEW) for row in _rows(config))


def _rows(config) -> tuple[Statement, ...]:
    """Means, and orders: of an order the samples are the paired differences at the place where it
    is least clear, and the interval is ± ``config.errors`` standard errors."""
    order = {"statistic": "estimate", "at_least": 0.0, "standard_errors": config.errors}
    paired = (
        f"mean paired difference / bound, ± {config.errors:g} standard errors, at its least clear"
    )
    return (
        Statement(
            "exact",
            HERE,
            "The bound is attained: it is the risk of ridge with penalty σ²d/n",
            "risk of ridge / bound, where farthest from 1,",
            at_least=1 - config.tolerance,
            at_most=1 + config.tolerance,
        ),
        Statement(
            "bound",
            HERE,
            "Least squares and gradient descent at its best step are not below the bound",
            "risk / bound, where smallest,",
            at_least=1 - config.tolerance,
        ),
        Statement(
            "nonlinear",
            HERE,
            "Nor do rules that are not linear in the labels gain much if they commute with "
            "rotations",
            "gain of the best of them / bound, where largest,",
            at_most=config.nonlinear,
        ),
        Statement(
            "ridge",
            HERE,
            "Ridge is better than gradient descent and least squares",
            f"{paired} n and rule",
            **order,
        ),
        Statement(
            "preprocessed",
            A4,
            "Preprocessed descent is better than ridge at every n",
            f"{paired} n",
            **order,
        ),
        Statement(
            "lasso",
            HERE,
            "The Lasso is better than ridge at every n",
            f"{paired} n",
            **order,
        ),
        Statement(
            "bayes",
            HERE,
            "The exact sparse Bayes rule is better than the Lasso and preprocessed descent at "
            "every n",
            f"{paired} n and rule",
            **order,
        ),
        Statement(
            "noise",
            A4,
            "Preprocessed descent is better than ridge at every level of noise",
            f"{paired} noise",
            **order,
        ),
        Statement(
            "less_sparse",
            HERE,
            "Preprocessed descent is better than ridge at every sparsity below d",
            f"{paired} s",
            **order,
        ),
        Statement(
            "dense",
            HERE,
            "Control: for dense weights neither the Lasso nor preprocessed descent is as good as "
            "ridge",
            f"{paired} rule",
            **order,
        ),
        Statement(
            "gain",
            A4,
            "Preprocessing gains a good part of what ridge loses, with many demonstrations and "
            "noise",
            f"preprocessed descent / bound at n = {config.n}, σ² = {config.loud:g},",
            at_most=config.gain,
        ),
        Statement(
            "plateau",
            A4,
            "For flat non-zeros n excess / σ² of preprocessed descent falls to at most twice s",
            f"n excess / (σ² s) at d = {config.wide_d} and the largest n",
            at_most=config.plateau,
        ),
        Statement(
            "stays",
            HERE,
            "For flat non-zeros n excess / σ² of gradient descent does not fall below half of d",
            f"n excess / (σ² d) at d = {config.wide_d} and the largest n",
            at_least=config.stays,
        ),
        Statement(
            "gaussian",
            LASSO,
            "With Gaussian non-zeros preprocessed descent is not as good as the Lasso at any n",
            f"{paired} n",
            **order,
        ),
        Statement(
            "flat",
            LASSO,
            "With flat non-zeros and n >> d preprocessed descent is better than the Lasso",
            f"{paired} d of {config.d} and {config.wide_d}, at the largest n",
            **order,
        ),
    )
