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
    recipe = dict(batch=64, learning_rate=0.003, seeds=9, seed=11, checkpoints=PARTS) | training
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
    noisier: float = 2.0  # times the noise of training, where shrunk writes are judged
    prompts: int = 4096  # of each pair, its own, of either noise
    seed: int = 2
    # Criteria.
    helps: float = 0.95  # a ratio of excess risks of at most this is a gain
    smaller: float = 0.9  # a ratio of sizes of at most this is a smaller size
    shrunk: float = 0.99  # a ratio of excess risks of at most this is a gain, writes shrunk

    def __post_init__(self):
        checks.kinds(self)
        if self.plain.architecture.norm or self.plain.architecture.kernel != "softmax":
            raise ValueError(f"plain = {self.plain}: choose softmax attention without norms")
        checks.each_between(self, "shrinkages", 0.0, 0.999)
        checks.between(self, "noisier", 1.0, None)
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
    fresh = dict(over=f"{seeds} pairs of seeds", redrawn=f"{seeds} fresh pairs, 9 before")
    ratio = partial(Statement, statistic="ratio", **fresh)
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
            f"(Σ_l |ΔW_l|² / |h_l|²)^½ at the query h, in the feature space of A.2, {over}, keys "
            "and queries balanced: of all keys that leave a head's function alone those of mean "
            "zero over prompts whose second moments are those of the queries,",
            at_most=config.smaller,
            note="medians over prompts; what a layer reads is its input after the norm; in the "
            "basis of the stream as trained: another basis that is no rotation moves the number",
            revision="it was |ΔW| itself, and 2.7, which changes with the units of the stream; "
            "then |ΔW| / |h|, .61 and .92, with keys and queries as the training happened to leave "
            "them: keys c times and queries 1/c times as large are the same function, and moved "
            "the ratio from .3 to 31, its verdict with it",
        ),
        ratio(
            "smaller_writes",
            "derived here",
            "It makes smaller what layers write, beside the token that they write to",
            f"|ΔW φ| / |h| at the query, geometric mean over layers, {over},",
            at_most=config.smaller,
            note="which no change of keys and queries moves, unless the function changes",
        ),
        ratio(
            "shrinking_helps_noisy",
            remark,
            "Without norms, smaller updates lower the risk on labels noisier than in training",
            f"the excess risk on prompts with {config.noisier:g} times the noise of training, all "
            "writes shrunk by the factor that is best for the other pairs of "
            f"{', '.join(f'{s:g}' for s in config.shrinkages)}, over that without,",
            at_most=config.shrunk,
            note="what a norm is said to help by, done to models that have none",
            revision="it was judged on prompts as in training, and 1.00: there a trained model is "
            "stationary, also against shrinking, and no gain could be seen, whatever is true",
        ),
        ratio(
            "shrinking_beats_answers",
            "derived here",
            "Shrunk writes lower that risk more than shrunk answers alone do",
            "the same risk with all writes shrunk over that with the answers alone, each by the "
            "factor that is best for the other pairs,",
            at_most=1.0,
            revision="added to these runs: a rival that changes no layer",
            redrawn="",
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
