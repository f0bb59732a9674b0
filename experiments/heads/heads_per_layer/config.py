"""The sizes and the statements of `heads_per_layer`, fixed before its first run.

One seed of some variants had been looked at before, in a trial of the training. After the
first run test prompts were halved for time; no verdict moved. Later A4's own statement was added,
at every n, with tuned descent for it.
"""

from dataclasses import dataclass

from experiments.heads.heads_per_layer.statements import LONG, depths
from experiments.heads.heads_per_layer.statements import statements as statements
from experiments.models.named import Named, named
from lsa_lab.harness import checks

_MODELS = named("laptop", ("depth 3", "depth 5", LONG))


@dataclass(frozen=True)
class Config:
    """Architectures that differ in where their heads sit, at two depths."""

    models: Named = _MODELS  # trained models, by name
    retrain: bool = False  # train again instead of reading committed weights
    shots: tuple[int, ...] = (8, 16, 32, 64)  # demonstrations in a test prompt
    judged: int = 16  # the number of demonstrations at which claims are judged
    test_prompts: int = 4096
    tuning_prompts: int = 2048  # on which the step sizes of descent are chosen
    seed: int = 0
    # Criteria: ratios of mean excess risks, seed by seed, at the judged number of demonstrations,
    # or at every one.
    beats: float = 1.0  # a model over a rule
    near: float = 1.5  # the full model over the sparse Bayes rule
    helps: float = 0.9  # heads where they are said to help, over a model without them
    suffices: float = 1.1  # all heads in layer 1 and one in each later layer, over all everywhere
    longer: float = 0.9  # four times the training, over the training
    level: float = 0.98  # the last sixth of a training's loss, over the sixth before it

    def __post_init__(self):
        checks.kinds(self)
        tasks = {spec.task for _, spec in self.models}
        if len(tasks) != 1 or not depths(self):
            raise ValueError("models: choose at least one besides the long training, of one task")
        checks.each_between(self, "shots", 2, None)
        checks.one_of(self, "judged", self.shots)
        for name in ("test_prompts", "tuning_prompts"):
            checks.between(self, name, 2, None)
        for name in ("beats", "near", "helps", "suffices", "longer", "level"):
            checks.positive(self, name)
        checks.seed(self, "seed")


_DEPTHS = tuple(f"depth {depth}" for depth in (3, 4, 5, 6))
TIERS = {
    "smoke": Config(
        models=named("smoke", _DEPTHS), shots=(4, 8), judged=8, test_prompts=32, tuning_prompts=32
    ),
    "laptop": Config(),
    "paper": Config(models=named("paper", _DEPTHS)),
    "gpu": Config(
        models=named("gpu", _DEPTHS), shots=(16, 32, 64, 128), judged=32, test_prompts=2048
    ),
}
