"""The sizes and the criteria of `why_a_rate`; what it judges stands in its statements."""

from dataclasses import dataclass

from experiments.clipping.transformer_config import GPU, PAPER, SMOKE, TransformerConfig
from experiments.clipping.why_a_rate.statements import CONDITIONS as CONDITIONS
from experiments.clipping.why_a_rate.statements import statements as statements
from lsa_lab.harness import checks

RIVALS = ("prune", "project")  # by magnitude; onto random directions


@dataclass(frozen=True)
class Config(TransformerConfig):
    """Clipped models that are trained or not, on prompts like those of training or not."""

    early: int = 1  # the checkpoint at which a model counts as under-trained
    noise: float = 1.0  # of the labels of noisy prompts
    shift: float = 1.5  # shifted prompts: covariates longer by this factor
    prompts: int = 200  # of each run and condition to choose with, and as many to judge all edits
    more_prompts: int = 1280  # to judge the edit that was chosen
    # A2's rates, and of its rivals fewer.
    rates: tuple[float, ...] = (0.0, 0.1, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995)
    rival_rates: tuple[float, ...] = (0.5, 0.9)  # the clipping rates of A2's rivals
    energy: float = 0.99  # share of Σs² that the rule "energy" keeps
    seed: int = 1
    # Criteria. Gains are shares of the risk of the unclipped model.
    worthwhile: float = 0.01  # gain that counts as one
    varies: float = 0.1  # share of matrices whose best rank differs, beyond that by luck
    harmless: float = 0.05  # share of the risk by which dropping a layer may change it
    rank_correlation: float = 0.5  # of the predicted and the best rank, over the matrices
    regret: float = 0.01  # of the predicted rank beside the searched one

    def __post_init__(self):
        super().__post_init__()
        checks.between(self, "mlp_width", self.width)  # all matrices have one full rank
        checks.between(self, "early", 1, self.checkpoints - 1)
        for name in ("prompts", "more_prompts"):
            checks.between(self, name, 2, None)
        for name in ("noise", "shift", "worthwhile", "varies", "harmless", "regret"):
            checks.positive(self, name)
        for name in ("energy", "rank_correlation"):
            checks.between(self, name, 0, 1)
        for name in ("rates", "rival_rates"):
            checks.each_between(self, name, 0, 0.999)
        checks.seed(self, "seed")
        if self.rates[0] != 0 or list(self.rates) != sorted(set(self.rates)):
            raise ValueError(f"rates = {self.rates!r}: they grow from 0, the unclipped model")
        strange = [rate for rate in self.rival_rates if rate not in self.rates]
        if strange:
            raise ValueError(f"rival_rates = {self.rival_rates!r}: {strange} are not among rates")


TIERS = {
    "smoke": Config(**SMOKE, prompts=4, more_prompts=4, rates=(0.0, 0.5, 0.9), rival_rates=(0.5,)),
    "laptop": Config(),
    "paper": Config(**PAPER, more_prompts=5120, seed=2),
    "gpu": Config(**GPU, prompts=1024, more_prompts=8192),
}
