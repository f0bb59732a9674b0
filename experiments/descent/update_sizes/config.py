"""The sizes and the statements of `update_sizes`."""

from dataclasses import dataclass

from experiments.descent.linear_stacks import LINEAR, linear
from experiments.models.named import named
from experiments.models.specs import Spec
from lsa_lab.claims import Statement
from lsa_lab.harness import checks

SIZES = (  # of a layer of softmax attention, at the query
    "update",  # |ΔW| in the feature space of the kernel, 1/Z in it
    "paper",  # |ΔW| without its normaliser Z, as A2's linear layers have none
    "written",  # |ΔW φ|, what it adds to the query's token
    "change",  # the change of what is written when W_V is clipped
    "relative change",
)

SOFTMAX = dict(named("laptop"))["softmax attention"]


@dataclass(frozen=True)
class Config:
    """Updates of trained layers by the number of demonstrations that they read."""

    softmax: Spec = SOFTMAX  # the trained softmax attention
    linear: Spec = LINEAR  # the trained linear stacks
    factors: tuple[float, ...] = (0.25, 0.5, 1.0, 2.0, 4.0)  # shots in the test over in training
    rate: float = 0.5  # at which W_V of one layer is clipped
    prompts: int = 512  # of each run, its own
    seed: int = 2
    # Criteria.
    grows: float = 0.0  # slope of log size over log n: above it a size grows

    def __post_init__(self):
        checks.kinds(self)
        checks.each_positive(self, "factors")
        if list(self.factors) != sorted({*self.factors, 0.5, 1.0, 2.0}):
            raise ValueError(
                f"factors = {self.factors!r}: choose ones that grow, with 0.5, 1 and 2 among them"
            )
        checks.between(self, "rate", 0.0, 0.999)
        checks.between(self, "prompts", 2, None)
        checks.between(self, "grows", 0.0, None)
        checks.seed(self, "seed")


TIERS = {
    "smoke": Config(
        softmax=dict(named("smoke"))["softmax attention"],
        linear=linear(6, 3, batch=4, d=2, n=4, depth=2),
        factors=(0.5, 1.0, 2.0),
        prompts=8,
    ),
    "laptop": Config(),
    "paper": Config(
        linear=linear(20_000, 16, batch=512),
        prompts=4096,
    ),
}

_SHOTS = "A2 (2406.03768), Remark 6 (ii)"


def statements(config) -> tuple[Statement, ...]:
    def slope(name, says, what, source=f"{_SHOTS}, in our setting", note=""):
        measured = f"the slope of log {what} over log n, from half to twice the shots of training,"
        return Statement(
            name,
            source,
            says,
            measured,
            at_least=config.grows,
            note=note,
            revision="it was the root mean square over prompts, averaged over layers, which at few "
            "shots a rare prompt decides, and was once not finite",
            redrawn="fresh prompts",
        )

    layers = "the median over prompts, the geometric mean over layers"
    return (
        slope(
            "linear_grows",
            "The updates of a trained linear stack grow with the number of demonstrations",
            f"|G_t| ({layers})",
            note="divided by n, as our layers are; of the first layer a theorem says how it falls",
        ),
        slope(
            "linear_grows_as_in_the_paper",
            "The same without the division by n, as in A2",
            f"n |G_t| ({layers})",
            f"{_SHOTS}, our reading, in our setting",
            note="of the weights trained with it",
        ),
        slope(
            "softmax_grows",
            "The updates of trained softmax attention grow with the number of demonstrations",
            f"|ΔW| ({layers})",
            note="in the feature space of A.2, keys as trained: keys 4 times and queries 1/4 times "
            "as large are the same function, and the slope is then .7 ± .7; balanced, as in "
            "norms_and_updates, -.44 ± .11",
        ),
        slope(
            "softmax_grows_as_in_the_paper",
            "The same without the normaliser of the softmax, as A2's linear layers have none",
            f"Z |ΔW| ({layers})",
            f"{_SHOTS}, our reading, in our setting",
            note="keys as trained: with keys 1/8 to 8 times as large, and queries 8 to 1/8 times, "
            "the same function, the slope is .35 to 6.8; balanced .59 ± .07",
        ),
        slope(
            "written_grows",
            "What a softmax layer adds to the query grows with the number of demonstrations",
            f"|ΔW φ| ({layers})",
            f"{_SHOTS}, our reading, in our setting",
        ),
        slope(
            "more_sensitive",
            "The more demonstrations, the more clipping a value matrix changes what it writes",
            f"|change| when W_V is clipped at rate {config.rate:g} ({layers})",
        ),
        slope(
            "relatively_more_sensitive",
            "The same, beside what it writes",
            f"|change| over |ΔW φ| when W_V is clipped at rate {config.rate:g} ({layers})",
            f"{_SHOTS}, our reading, in our setting",
        ),
    )
