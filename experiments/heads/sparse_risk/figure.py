"""The figure of `sparse_risk`, drawn from its result alone."""

from experiments.heads.sparse_risk.claims import EQUIVARIANT, EXACT
from experiments.heads.sparse_risk.compute import LASSO, PREPROCESSED
from experiments.heads.sparse_risk.panels import (
    BOUND,
    against,
    against_n,
    duel,
    laws,
    plateaus,
    ratio,
)
from experiments.heads.sparse_risk.places import RULES
from lsa_lab import results
from lsa_lab.harness import style


def plot(dataset):
    settings = results.config_of(dataset)
    drawn, axes = style.figure(10.0, 6.4, (2, 3))
    against_n(axes[0], dataset)
    against(axes[1], dataset, "by_noise", "noise_var", "noise variance σ²")
    axes[1].set_title(f"against noise, n = {settings.n}")
    against(axes[2], dataset, "by_s", "s", f"non-zeros s of {settings.d}")
    axes[2].set_title(f"against sparsity, n = {settings.n}, σ² = {settings.loud:g}")
    plateaus(axes[3], dataset)
    laws(axes[4], dataset)
    duel(axes[5], dataset)
    here, few = ratio(dataset, "by_law").sel(law="Gaussian"), settings.sparsities[0]
    scarce = ratio(dataset, "by_s").sel(s=few, rule=EQUIVARIANT)
    gain = {rule: f"{100 * float(1 - here.sel(rule=rule).mean()):.0f} %" for rule in RULES}
    style.caption(
        drawn,
        f"{BOUND}: the least risk of rules that ignore directions and are linear in the labels, "
        f"attained by ridge. With d = {settings.d}, s = {settings.s}, n = {settings.n}, σ² = "
        f"{settings.loud:g} preprocessed descent is {gain[PREPROCESSED]} below it, the Lasso "
        f"{gain[LASSO]}, the exact Bayes rule {gain[EXACT]} (shown where it can be enumerated); "
        f"the best of all rules that commute with rotations {gain[EQUIVARIANT]}, and for s = {few} "
        f"it is {100 * float(1 - scarce.mean()):.0f} % below. a to c: Gaussian non-zeros; d, e: "
        f"colours as in a. Penalty and number of steps are the best for each law, chosen on other "
        f"prompts. Means over {settings.runs * settings.prompts} common prompts in {settings.runs} "
        f"runs (d: {settings.runs * settings.wide_prompts}) and their 95 % intervals.",
    )
    return drawn
