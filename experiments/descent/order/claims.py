"""What `order` judges: what a new order changes in two causal layers."""

from lsa_lab.judging.statements import Statement
from lsa_lab.judging.statistics import worst


def two_causal_layers(dataset, name):  # [R]
    """A variable at the kernel where it is least."""
    two = dataset[name].sel(mask="causal", depth=2).transpose("run", ...)
    return worst(two, lambda runs: -runs.mean())


def statements(config) -> tuple[Statement, ...]:
    source = "modelled on A2 (2406.03768), Remark 1"
    fresh = f"{config.runs} fresh runs, 16 before"
    least = "at the kernel with the least"
    hardest = "the least is the hardest to hold for"
    return (
        Statement(
            "share",
            source,
            "To two causal layers the order is at least a tenth of what the demonstrations are",
            f"the spread over orders over that over other demonstrations, {least}",
            at_least=0.1,
            note=f"{hardest}; less in deeper random linear stacks, whose predictions explode",
            revision="added; two layers and the bound 0.1 chosen on earlier runs",
            redrawn=fresh,
            label="spread / that over other demonstrations",
            sample=lambda dataset: two_causal_layers(dataset, "share"),
        ),
        Statement(
            "two_causal_layers",
            source,
            "Two causal layers see the order, linear or softmax, random or constructed",
            f"the largest change, relative, {least}",
            at_least=1e-6,
            note=f"{hardest}; that one causal layer does not see it is a theorem",
            redrawn=fresh,
            label="largest change / size of predictions",
            sample=lambda dataset: two_causal_layers(dataset, "effect"),
        ),
    )
