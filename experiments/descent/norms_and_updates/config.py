"""The sizes of `norms_and_updates`."""

import dataclasses
from dataclasses import dataclass
from typing import Annotated

from experiments.descent.specs import linear, spec_of, stack_and_softmax
from experiments.models.named import Named
from experiments.models.specs import Spec, dense_spec
from lsa_lab.harness.run.bounds import POSITIVE, Bounded, Seed, at_least, between

NORMS = {"without": "without norms", "with": "with norms"}  # the names of the models
SIZES = (  # of a layer of softmax attention, at the query
    "update",  # |ΔW| in the feature space of the kernel, 1/Z in it
    "paper",  # |ΔW| without its normaliser Z, as A2's linear layers have none
    "written",  # |ΔW φ|, what it adds to the query's token
    "change",  # the change of what is written when W_V is clipped
    "relative change",
)


def attention(d: int, n: int, depth: int, heads: int, key_width: int, **training) -> Spec:
    """Softmax attention without norms, on prompts with noise."""
    # Risks are measured after each of five parts of the training.
    recipe = dict(batch=64, learning_rate=0.003, seeds=9, seed=11, checkpoints=5) | training
    shape = dict(heads=heads, key_width=key_width, width=heads * key_width, init_scale=0.5)
    return dense_spec("softmax", d, n, depth, noise_std=0.5, training=recipe, **shape)


def pair(plain: Spec) -> Named:
    """A model without norms and the same with a norm before each layer, trained on the same
    prompts."""
    architecture = dataclasses.replace(plain.architecture, norm=True)
    specs = plain, dataclasses.replace(plain, architecture=architecture)
    return tuple(zip(NORMS.values(), specs, strict=True))


BY_SHOTS = stack_and_softmax("laptop")
MODELS = (*pair(attention(4, 10, 3, 2, 8, steps=6000)), *BY_SHOTS)


@dataclass(frozen=True)
class ByShots(Bounded):
    """Updates of trained layers by the number of demonstrations that they read."""

    # Shots in the test over those in training.
    factors: Annotated[tuple[float, ...], POSITIVE] = (0.25, 0.5, 1.0, 2.0, 4.0)
    rate: Annotated[float, between(0.0, 0.999)] = 0.5  # at which W_V of one layer is clipped
    prompts: Annotated[int, at_least(2)] = 512  # of each run, its own
    seed: Seed = 2

    def __post_init__(self):
        super().__post_init__()
        if list(self.factors) != sorted({*self.factors, 0.5, 1.0, 2.0}):
            raise ValueError(f"factors = {self.factors!r}: choose growing ones, with 0.5, 1 and 2")


@dataclass(frozen=True)
class Config(Bounded):
    """Pairs of models, alike but for their norms, from the same seeds and on the same prompts."""

    models: Named = MODELS  # trained models, by name: a pair, a linear stack and softmax attention
    # Of all that layers write.
    shrinkages: Annotated[tuple[float, ...], between(0.0, 0.999)] = (0.8, 0.9, 0.95, 0.98)
    # Times the noise of training, where shrunk writes are judged.
    noisier: Annotated[float, at_least(1.0)] = 2.0
    prompts: Annotated[int, at_least(2)] = 4096  # of each pair, its own, of either noise
    seed: Seed = 2
    by_shots: ByShots = ByShots()  # how updates shrink with more shots

    def __post_init__(self):
        super().__post_init__()
        plain = spec_of(self, NORMS["without"])
        if plain.architecture.norm or plain.architecture.kernel != "softmax":
            raise ValueError(f"models = {plain}: choose softmax attention without norms")
        if not dict(pair(plain)).items() <= dict(self.models).items():
            raise ValueError("models: choose two that are alike but for their norms, as pair does")


_TINY = pair(attention(2, 4, 2, 2, 2, steps=10, batch=4, seeds=2))
_FEW = stack_and_softmax("smoke", linear(6, 3, batch=4, d=2, n=4, depth=2))
_SHOTS = ByShots(factors=(0.5, 1.0, 2.0), prompts=8)
TIERS = {
    "smoke": Config((*_TINY, *_FEW), prompts=8, by_shots=_SHOTS),
    "laptop": Config(),
    # A pair of the sizes of the shared softmax attention: 1.08 times the risk of least squares.
    "paper": Config((*pair(attention(8, 20, 4, 4, 8, steps=20_000)), *BY_SHOTS)),
}
