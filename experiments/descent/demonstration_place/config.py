"""The sizes and the statements of `demonstration_place`."""

from dataclasses import dataclass

from experiments.models.named import MODELS
from experiments.models.specs import Spec
from lsa_lab.claims import Statement
from lsa_lab.harness import checks

CAUSAL, FREE = "causal attention", "softmax attention"  # names of models
TRAINED, CONTROL, UNTRAINED, DESCENT = KINDS = (
    "trained, causal",
    "trained, no mask",
    "untrained, causal",
    "descent, causal",
)


@dataclass(frozen=True)
class Config:
    """Prompts in which one demonstration answers the query, asked with it in every place.

    Its covariates are the query's and its label has no noise; the others are as in training, and
    keep their order.
    """

    causal: Spec = MODELS["laptop"][CAUSAL]  # softmax attention alone, with a causal mask
    free: Spec = MODELS["laptop"][FREE]  # the same without one
    prompts: int = 500  # of each run, the same for all places
    seed: int = 1
    # Criteria, on errors as shares of their mean over places.
    better: float = 0.05  # lower by this share at least is better
    flat: float = 0.02  # a difference within this is none
    near: float = 1.5  # risk over ridge's on prompts as in training: at most this is trained

    def __post_init__(self):
        if (self.causal.architecture.keys, self.free.architecture.keys) != (
            "causal",
            "demonstrations",
        ):
            raise ValueError("choose a model with a causal mask and another without")
        if self.causal.task != self.free.task:
            raise ValueError("causal, free: choose models of one task")
        checks.between(self, "prompts", 4, None)
        for name in ("better", "flat", "near"):
            checks.positive(self, name)
        checks.seed(self, "seed")


TIERS = {
    "smoke": Config(MODELS["smoke"][CAUSAL], MODELS["smoke"][FREE], prompts=8),
    "laptop": Config(),
    "gpu": Config(MODELS["gpu"][CAUSAL], MODELS["gpu"][FREE], prompts=10_000),
}


def statements(config) -> tuple[Statement, ...]:
    source = "A2 (2406.03768), Remark 1, our reading, in our setting"
    shares = "as a share of the mean over places"
    middle = "the error with it in the middle half of the places less that with it"
    return (
        Statement(
            "beginning",
            source,
            "To trained causal models the relevant demonstration is worth more at the beginning "
            "than in the middle",
            f"{middle} in the first place, {shares},",
            at_least=config.better,
            note="of Liu et al. (2024) A2 reports that models do better with information at the "
            "beginning or at the end",
        ),
        Statement(
            "end",
            source,
            "To trained causal models it is worth more at the end than in the middle",
            f"{middle} in the last place, {shares},",
            at_least=config.better,
        ),
        Statement(
            "u_shape",
            source,
            "Over its places the performance of trained causal models has the shape of a U",
            f"{middle} in the first quarter or the last, whichever is worse on average over the "
            f"other runs, {shares},",
            at_least=config.better,
            note="the same on both sides, without a single place that sticks out",
        ),
        Statement(
            "untrained",
            "derived here",
            "Untrained causal models have no such shape",
            f"{middle} in the first and the last quarter, {shares},",
            margin=config.flat,
            note="the control; that without the mask no place differs is a theorem",
        ),
        Statement(
            "it_helps",
            "derived here",
            "The relevant demonstration helps trained causal models, wherever it stands",
            "the mean error over places over that with a demonstration as in training in its "
            "place,",
            "ratio",
            at_most=0.9,
            note="if not, no place of it says anything",
        ),
        Statement(
            "near_ridge",
            "derived here",
            "The causal models are well trained",
            "the risk over that of ridge regression, on prompts as in training,",
            "ratio",
            at_most=config.near,
            note="if not, the other rows judge nobody",
        ),
    )
