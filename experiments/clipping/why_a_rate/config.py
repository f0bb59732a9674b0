"""The sizes of `why_a_rate`."""

from dataclasses import dataclass
from typing import Annotated

from experiments.clipping.clipped_models import Rates, spec_of, transformer
from experiments.models.named import Named
from lsa_lab.harness.run import checks
from lsa_lab.harness.run.bounds import INCREASING, POSITIVE, Bounded, Seed, at_least, between

CONDITIONS = ("matched", "under-trained", "noisy", "shifted")  # of models and prompts
RIVALS = ("prune", "project")  # by magnitude; onto random directions
MODELS = transformer("laptop")


@dataclass(frozen=True)
class Config(Bounded):
    """Clipped models that are trained or not, on prompts like those of training or not."""

    models: Named = MODELS  # trained models, by name
    early: int = 1  # the checkpoint at which a model counts as under-trained
    noise: Annotated[float, POSITIVE] = 1.0  # of the labels of noisy prompts
    shift: Annotated[float, POSITIVE] = 1.5  # shifted prompts: covariates longer by this factor
    # Of each run and condition to choose with, and as many to judge all edits.
    prompts: Annotated[int, at_least(2)] = 200
    more_prompts: Annotated[int, at_least(2)] = 1280  # to judge the edit that was chosen
    # A2's rates, and of its rivals fewer.
    rates: Annotated[Rates, INCREASING] = (0.0, 0.1, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995)
    rival_rates: Rates = (0.5, 0.9)
    energy: Annotated[float, between(0, 1)] = 0.99  # share of Σs² that the rule "energy" keeps
    seed: Seed = 3

    def __post_init__(self):
        super().__post_init__()
        spec = spec_of(self)
        width, mlp_width = spec.architecture.width, spec.architecture.mlp_width
        if width is None or mlp_width is None or mlp_width < width:
            raise ValueError(
                f"models: width = {width}, mlp_width = {mlp_width}: choose an MLP at least as wide "
                "as the stream, for all matrices to have one full rank"
            )
        checks.between(self, "early", 1, spec.training.checkpoints - 1)
        if self.rates[0] != 0:
            raise ValueError(f"rates = {self.rates!r}: they grow from 0, the unclipped model")
        strange = [rate for rate in self.rival_rates if rate not in self.rates]
        if strange:
            raise ValueError(f"rival_rates = {self.rival_rates!r}: {strange} are not among rates")


TIERS = {
    "smoke": Config(
        transformer("smoke"), prompts=4, more_prompts=4, rates=(0.0, 0.5, 0.9), rival_rates=(0.5,)
    ),
    "laptop": Config(),
    "paper": Config(transformer("paper"), more_prompts=5120, seed=4),
}
