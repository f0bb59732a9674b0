"""The sizes of `head_importance`."""

from dataclasses import dataclass
from typing import Annotated

from experiments.heads.kinds import mixable_and_own
from experiments.models.named import Named, named
from lsa_lab.harness.run.bounds import Bounded, Seed, at_least

ABLATIONS = ("zero", "mean", "resample", "zero, median prompt")  # how a head is taken away
ENDS = ("least", "as trained", "largest")  # of N_l over mixings

_NAMES = ("depth 3", "depth 5", "narrow keys", "softmax")
_MODELS = named("laptop", _NAMES)


@dataclass(frozen=True)
class Config(Bounded):
    """Heads of trained models are taken away, one at a time; how much does the risk rise?

    N_l = exp(entropy) of the rises in layer l, each at least 0, as shares of their sum: the number
    of effective heads. h heads that matter alike count h. It is a property of what a layer computes
    where keys are narrow or a softmax forbids that heads are mixed, and else of their weights.
    """

    models: Named = _MODELS  # trained models, by name
    retrain: bool = False  # train again instead of reading the committed weights
    n: Annotated[int, at_least(1)] = 16  # demonstrations of a prompt
    prompts: Annotated[int, at_least(2)] = 1024  # the same for all models of a task
    softmax_prompts: Annotated[int, at_least(2)] = 512  # for the kernel that is slow
    # For the other two ways of taking a head away.
    ablation_prompts: Annotated[int, at_least(2)] = 512
    searched_prompts: Annotated[int, at_least(2)] = 256  # on which mixings are chosen
    condition: Annotated[float, at_least(1)] = 20.0  # of a mixing, at most
    # Random mixings, of which the best is climbed from.
    starts: Annotated[int, at_least(1)] = 16
    climbs: Annotated[int, at_least(1)] = 30  # steps of each climb
    seed: Seed = 0

    def __post_init__(self):
        super().__post_init__()
        if not mixable_and_own(self.models)[1]:
            raise ValueError("models: choose one at least whose heads cannot be mixed")


TIERS = {
    "smoke": Config(
        models=named("smoke", ("depth 3", "softmax")),
        n=4,
        prompts=8,
        softmax_prompts=8,
        ablation_prompts=8,
        searched_prompts=8,
        starts=2,
        climbs=2,
    ),
    "laptop": Config(),
    "paper": Config(models=named("paper", _NAMES)),
}
