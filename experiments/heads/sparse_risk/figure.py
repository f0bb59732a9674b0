"""Which rules are below the bound of those that ignore directions, and by how much."""

from experiments.heads.rule_names import EQUIVARIANT, LASSO, SPARSE_BAYES
from experiments.heads.sparse_risk import curves
from experiments.heads.sparse_risk.claims import BOUND, ERRORS
from experiments.heads.sparse_risk.config import PREPROCESSED, RULES
from experiments.heads.sparse_risk.differences import over_bound
from lsa_lab.harness.draw import judged_panel, style
from lsa_lab.judging.statistics import level
from lsa_lab.store import results


def plot(dataset):
    config = results.config_of(dataset)
    figure, axes = style.stacked(6.75, (2.3, 2.3, 2.3), ((1, 1),) * 3)
    kinds, by_n, by_s, wide, duel, judged = axes
    curves.kinds_of_weights(kinds, dataset)
    kinds.set_title("what each rule loses")
    names = (PREPROCESSED, LASSO, SPARSE_BAYES)
    curves.against(by_n, dataset, "by_n", "n", "demonstrations n", names)
    by_n.set_title(f"against n, σ² = {config.noise_var:g}")
    curves.against(by_s, dataset, "by_s", "s", f"non-zeros s of {config.d}")
    by_s.set_title(f"against sparsity, n = {config.n}")
    curves.plateaus(wide, dataset)
    wide.set_title(f"two plateaus: flat, d = {config.wide_d}")
    curves.duel(duel, dataset)
    duel.set_title(f"who is ahead, d = {config.d}")
    curves.judged(judged, dataset, curves.ORDERS, (-0.15, 0.6))
    judged.set(xlabel=f"difference of risks / {BOUND}", title="judged: whose risk is less")
    return figure


def appendix(dataset):
    """The rules against noise, and what is judged beside their order."""
    config = results.config_of(dataset)
    figure, (noise, judged) = style.stacked(6.75, (2.4,), ((1, 1),), first="g")
    curves.against(noise, dataset, "by_noise", "noise_var", "noise variance σ²")
    noise.set_title(f"against noise, n = {config.n}")
    curves.judged(judged, dataset, curves.RATIOS, (0, 2.2))
    judged.set(xlabel="ratio", title="what is judged")
    return figure


def caption(dataset) -> str:
    config = results.config_of(dataset)
    risks, few = over_bound(dataset, "by_law").sel(law="Gaussian"), config.sparsities[0]
    scarce = over_bound(dataset, "by_s").sel(s=few, rule=EQUIVARIANT)
    gain = {rule: f"{100 * float(1 - risks.sel(rule=rule).mean()):.0f} %" for rule in RULES}
    return (
        "Those that see coordinates: preprocessed descent, the Lasso and the sparse Bayes rule "
        f"lose {gain[PREPROCESSED]}, {gain[LASSO]} and {gain[SPARSE_BAYES]} less than ridge. "
        f"σ² = {config.loud:g} but in b, n = {config.n} in a and c, d = {config.d} and "
        f"s = {config.s} if not said. "
        f"{BOUND}: the least risk of rules that ignore directions and are linear in the "
        "labels, attained by ridge (black). a: filled, Gaussian non-zeros; open, flat ones; pale, "
        "dense weights, a control. b, c: Gaussian, colours as in a; the exact Bayes rule where it "
        f"can be enumerated; the best rule that commutes with rotations is {gain[EQUIVARIANT]} "
        f"below the bound, for s = {few} {100 * float(1 - scarce.mean()):.0f} %. d: flat, "
        f"d = {config.wide_d}; e: below 1, preprocessed descent is ahead. f: "
        f"{judged_panel.KEY} (here ± {ERRORS:g} standard errors). Penalty and number of "
        "steps: the best on other prompts. Means over "
        f"{config.runs * config.prompts} common prompts in {config.runs} runs (d: "
        f"{config.runs * config.wide_prompts}) and their {level()} intervals. Appendix (g, h): "
        "against noise, and ratios that are judged."
    )
