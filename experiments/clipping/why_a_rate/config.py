"""The sizes of `why_a_rate`."""

from dataclasses import dataclass

from experiments.clipping.clipped_models import Rates, transformer
from experiments.models.named import Named

CONDITIONS = ("matched", "under-trained", "noisy", "shifted")  # of models and prompts
RIVALS = ("prune", "project")  # by magnitude; onto random directions
MODELS = transformer("laptop")


@dataclass(frozen=True)
class Config:
    """Clipped models that are trained or not, on prompts like those of training or not."""

    models: Named = MODELS  # trained models, by name
    early: int = 1  # the checkpoint at which a model counts as under-trained
    noise: float = 1.0  # of the labels of noisy prompts
    shift: float = 1.5  # shifted prompts: covariates longer by this factor
    # Of each run and condition to choose with, and as many to judge all edits.
    prompts: int = 200
    more_prompts: int = 1280  # to judge the edit that was chosen
    # A2's rates, and of its rivals fewer.
    rates: Rates = (0.0, 0.1, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995)
    rival_rates: Rates = (0.5, 0.9)
    energy: float = 0.99  # share of Σs² that the rule "energy" keeps
    seed: int = 3


TIERS = {
    "smoke": Config(
        transformer("smoke"), prompts=4, more_prompts=4, rates=(0.0, 0.5, 0.9), rival_rates=(0.5,)
    ),
    "laptop": Config(),
    "paper": Config(transformer("paper"), more_prompts=5120, seed=4),
}
