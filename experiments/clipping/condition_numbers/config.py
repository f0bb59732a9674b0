"""The sizes and the statements of `condition_numbers`."""

from dataclasses import dataclass

from experiments.clipping.transformer_config import (
    GPU,
    OWN_PROMPTS,
    PAPER,
    SMOKE,
    TransformerConfig,
    fresh,
)
from lsa_lab.claims import Statement
from lsa_lab.harness import checks

MODULES = {"W_q": "w_q", "W_k": "w_k", "W_v": "w_v", "W_o": "w_o"}
MODULES |= {"MLP in": "mlp_in", "MLP out": "mlp_out"}


@dataclass(frozen=True)
class Config(TransformerConfig):
    """Condition numbers and stable ranks of every matrix, and what clipping it does.

    Condition numbers are compared by their logarithm: that of a random square matrix has no mean.
    """

    ends: int = 2  # layers that are called shallow, and deep
    rate: float = 0.75  # at which each matrix is clipped, by itself
    prompts: int = 500  # of each run
    seed: int = 1
    # Criteria.
    same: float = 0.3  # difference of log10 up to which condition numbers are alike: a factor 2

    def __post_init__(self):
        super().__post_init__()
        checks.between(self, "ends", 1, self.depth // 2)
        checks.between(self, "rate", 0.0, 0.999)
        checks.between(self, "prompts", 2, None)
        checks.positive(self, "same")
        checks.seed(self, "seed")


TIERS = {
    "smoke": Config(**SMOKE, ends=1, prompts=16),
    "laptop": Config(),
    "paper": Config(**PAPER, prompts=2000, seed=2),
    "gpu": Config(**GPU, prompts=10_000),
}


def statements(config) -> tuple[Statement, ...]:
    figure_3, derived = "A2 (2406.03768), figure 3, in our setting", "derived here"
    ends = f"last {config.ends} layers less first {config.ends}, averaged over modules"
    correlation = "Spearman's correlation over layers, averaged over modules, of the"
    tolerance = f"the risk after clipping {config.rate:g} over that before"
    return (
        Statement(
            "deep_is_larger",
            figure_3,
            "Deep layers of our models have larger condition numbers than shallow ones",
            f"log10 of the condition number, {ends},",
            at_least=0.0,
            redrawn=fresh(config),
        ),
        Statement(
            "last_is_largest",
            figure_3,
            "The last layer of our models has a larger condition number than the others",
            "log10 of the condition number, last layer less the mean of the others, averaged over "
            "modules,",
            at_least=0.0,
            redrawn=fresh(config),
        ),
        Statement(
            "random_is_level",
            derived,
            "Random weights are as well conditioned deep as shallow, within a factor 2",
            f"log10 of the condition number before training, {ends},",
            margin=config.same,
            note="a control: before training layers are alike but for luck",
            redrawn=fresh(config),
        ),
        Statement(
            "training_tilts",
            derived,
            "It is training that makes deep layers worse conditioned",
            f"log10 of the condition number, {ends}, after training less before",
            at_least=0.0,
            note="to be read beside deep_is_larger: what lies before training is luck",
            redrawn=fresh(config),
        ),
        Statement(
            "training_raises",
            derived,
            "Training raises condition numbers",
            "log10 of the condition number, averaged over modules and layers, after training less "
            "before",
            at_least=0.0,
            redrawn=fresh(config),
        ),
        Statement(
            "stable_rank_falls",
            derived,
            "Training lowers stable ranks",
            "log10 of the stable rank, averaged over modules and layers, after training less "
            "before",
            at_most=0.0,
            redrawn=fresh(config),
        ),
        Statement(
            "condition_tells",
            "A2 (2406.03768), section 3.4, our reading, in our setting",
            "In our models the layer with the larger condition number tolerates clipping better",
            f"{correlation} condition number with {tolerance}",
            at_most=0.0,
            note="A2: it may serve as a reference for which layer to prune",
            revision=OWN_PROMPTS,
            redrawn=fresh(config),
        ),
        Statement(
            "stable_rank_tells",
            derived,
            "In our models the layer with the smaller stable rank tolerates clipping better",
            f"{correlation} stable rank with {tolerance}",
            at_least=0.0,
            revision=OWN_PROMPTS,
            redrawn=fresh(config),
        ),
    )
