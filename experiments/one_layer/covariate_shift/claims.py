"""What the statements of `covariate_shift` are judged by."""

from experiments.one_layer.covariate_shift.config import SHIFTS
from lsa_lab import results
from lsa_lab.claims import about_the_mean


def claims(dataset):
    settings = results.config_of(dataset)
    ratios = (dataset.risk / dataset.theory).transpose("case", "run").values
    drift = dataset.descent.max("scale") / dataset.descent.min("scale") - 1
    table = dataset.table_error.sel(table_length=settings.n).astype(float)
    layer, descent, _, mean = table.transpose("learner", "prompt").values
    band, source = settings.theory_ratio, "derived here from Zhang et al. 2306.09927"
    return [
        about_the_mean(
            "covariate_shift.theory",
            source,
            "At other scales and lengths the trained layer has the risk that theory gives Γ^{-1}",
            f"mean measured / predicted risk, at the worst scale and length, within 1 ± {band}",
            max(ratios, key=lambda runs: abs(runs.mean() - 1)),
            at_least=1 - band,
            at_most=1 + band,
        ),
        about_the_mean(
            "covariate_shift.floor",
            source,
            f"At scale {SHIFTS[-1]:g} even the longest prompt leaves it worse than predicting zero",
            f"(risk - risk of zero) / tr Λ', same prompts, m = {settings.lengths[-1]} >= 0",
            dataset.risk.isel(case=-1) - dataset.zero,
            at_least=0.0,
        ),
        about_the_mean(
            "covariate_shift.descent",
            "derived here",
            "Descent with each prompt's own step size does not feel the scale",
            f"its largest risk / tr Λ' over its smallest, less one <= {settings.descent_drift}",
            drift,
            at_most=settings.descent_drift,
        ),
        about_the_mean(
            "covariate_shift.table",
            "derived here",
            "A layer trained on isotropic Gaussians beats the mean on the diabetes table",
            f"its squared error - the mean's, over common prompts of m = n = {settings.n} <= 0",
            layer - mean,
            at_most=0.0,
        ),
        about_the_mean(
            "covariate_shift.table_descent",
            "derived here",
            "On that table descent with each prompt's own step size beats the trained layer",
            f"the layer's squared error - descent's, over common prompts of m = {settings.n} >= 0",
            layer - descent,
            at_least=0.0,
        ),
    ]
