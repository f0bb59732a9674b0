"""Which rules are below the bound of those that ignore directions, and by how much."""

from experiments.heads.rule_names import EQUIVARIANT, LASSO, SPARSE_BAYES
from experiments.heads.sparse_risk import curves
from experiments.heads.sparse_risk.claims import over_bound
from experiments.heads.sparse_risk.config import PREPROCESSED, RULES
from lsa_lab import results
from lsa_lab.harness import style


def plot(dataset):
    config = results.config_of(dataset)
    figure, axes = style.figure(10.0, 6.4, (2, 3))
    curves.against_n(axes[0], dataset)
    curves.against(axes[1], dataset, "by_noise", "noise_var", "noise variance σ²")
    axes[1].set_title(f"against noise, n = {config.n}")
    curves.against(axes[2], dataset, "by_s", "s", f"non-zeros s of {config.d}")
    axes[2].set_title(f"against sparsity, n = {config.n}, σ² = {config.loud:g}")
    curves.plateaus(axes[3], dataset)
    curves.kinds_of_weights(axes[4], dataset)
    curves.duel(axes[5], dataset)
    return figure


def caption(dataset) -> str:
    config = results.config_of(dataset)
    risks, few = over_bound(dataset, "by_law").sel(law="Gaussian"), config.sparsities[0]
    scarce = over_bound(dataset, "by_s").sel(s=few, rule=EQUIVARIANT)
    gain = {rule: f"{100 * float(1 - risks.sel(rule=rule).mean()):.0f} %" for rule in RULES}
    return (
        "Those that see coordinates: preprocessed descent, the Lasso and the sparse Bayes rule "
        f"lose {gain[PREPROCESSED]}, {gain[LASSO]} and {gain[SPARSE_BAYES]} less than ridge. "
        f"{curves.BOUND}: the least risk of rules that ignore directions and are linear in the "
        f"labels, attained by ridge, here with d = {config.d}, s = {config.s}, n = {config.n}, "
        f"σ² = {config.loud:g}. The exact Bayes rule is shown where it can be enumerated; the best "
        f"of all rules that commute with rotations is {gain[EQUIVARIANT]} below the bound, and for "
        f"s = {few} {100 * float(1 - scarce.mean()):.0f} %. a to c: Gaussian non-zeros; d, e: "
        "colours as in a. Penalty and number of steps are the best for each task, chosen on other "
        f"prompts. Means over {config.runs * config.prompts} common prompts in {config.runs} runs "
        f"(d: {config.runs * config.wide_prompts}) and their 95 % intervals."
    )
