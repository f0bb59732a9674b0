"""The sizes and the statements of `norms_and_updates`."""

import dataclasses
from dataclasses import dataclass
from functools import partial

from experiments.models.regression import dense
from experiments.models.specs import Spec, restored
from lsa_lab.claims import Statement
from lsa_lab.harness import checks

NORMS = ("without", "with")
PARTS = 5  # of the training, after each of which risks are measured


def attention(d: int, n: int, depth: int, heads: int, key_width: int, **training) -> Spec:
    """Softmax attention without norms, on prompts with noise."""
    recipe = dict(batch=64, learning_rate=0.003, seeds=9, checkpoints=PARTS) | training
    shape = dict(heads=heads, key_width=key_width, width=heads * key_width, init_scale=0.5)
    return dense("softmax", d, n, depth, noise_std=0.5, training=recipe, **shape)


def normed(spec: Spec) -> Spec:
    """The same with a norm before each layer, trained on the same prompts."""
    spec = restored(spec)
    return dataclasses.replace(spec, architecture=dataclasses.replace(spec.architecture, norm=True))


SMALL = attention(4, 10, 3, 2, 8, steps=6000)
# The sizes of the shared softmax attention, whose risk is 1.08 times that of least squares.
SHARED = attention(8, 20, 4, 4, 8, steps=20_000)


@dataclass(frozen=True)
class Config:
    """Pairs of models, alike but for their norms, from the same seeds and on the same prompts."""

    plain: Spec = SMALL  # the models without norms
    shrinkages: tuple[float, ...] = (0.8, 0.9, 0.95, 0.98)  # of all that layers write
    prompts: int = 4096  # of each pair, its own
    seed: int = 1
    # Criteria.
    helps: float = 0.95  # a ratio of excess risks of at most this is a gain
    smaller: float = 0.9  # a ratio of sizes of at most this is a smaller size
    shrunk: float = 0.99  # a ratio of excess risks of at most this is a gain, after training

    def __post_init__(self):
        checks.kinds(self)
        if self.plain.architecture.norm or self.plain.architecture.kernel != "softmax":
            raise ValueError(f"plain = {self.plain}: choose softmax attention without norms")
        checks.each_between(self, "shrinkages", 0.0, 0.999)
        checks.between(self, "prompts", 2, None)
        checks.seed(self, "seed")
        for name in ("helps", "smaller", "shrunk"):
            checks.between(self, name, 0.0, 1.0)


TIERS = {
    "smoke": Config(attention(2, 4, 2, 2, 2, steps=10, batch=4, seeds=2), prompts=8),
    "laptop": Config(),
    "paper": Config(SHARED),
}


def statements(config) -> tuple[Statement, ...]:
    seeds = restored(config.plain).training.seeds
    remark = "A2 (2406.03768), Remark 4, our reading, in our setting"
    ratio = partial(Statement, statistic="ratio", over=f"{seeds} pairs of seeds")
    over = "with norms over without"
    return (
        ratio(
            "helps",
            remark,
            "A norm before each layer lowers the risk of softmax attention, trained alike",
            f"the excess risk after the training, {over},",
            at_most=config.helps,
            note="A2 says that its theory could elucidate the utility of normalisation; by one "
            "recipe, and in regression, which needs the size of a token",
        ),
        ratio(
            "smaller_updates",
            remark,
            "It makes the updates of the trained layers smaller",
            f"(Σ_l |ΔW_l|² / |h_l|²)^½ at the query h, in the feature space of A.2, {over},",
            at_most=config.smaller,
            note="medians over prompts; what a layer reads is its input after the norm",
            revision="it was |ΔW| itself, and 2.7, which changes with the units of the stream and "
            "not with the function; as these runs had it",
        ),
        ratio(
            "smaller_writes",
            "derived here",
            "It makes smaller what layers write, beside the token that they write to",
            f"|ΔW φ| / |h| at the query, geometric mean over layers, {over},",
            at_most=config.smaller,
        ),
        ratio(
            "shrinking_helps",
            remark,
            "Without norms, smaller updates lower the risk",
            "the excess risk with all writes shrunk, by the factor that is best for the other "
            f"pairs of {', '.join(f'{s:g}' for s in config.shrinkages)}, over that without,",
            at_most=config.shrunk,
            note="what a norm is said to help by, done to models that have none",
        ),
        ratio(
            "trains_faster",
            "derived here",
            "It lowers the risk after a fifth of the training",
            f"the excess risk there, {over},",
            at_most=config.helps,
            note="what else a norm may help: the training",
        ),
    )
