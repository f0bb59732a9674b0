"""The sizes of `norms_and_updates`."""

import dataclasses
from dataclasses import dataclass
from typing import Annotated

from experiments.descent.specs import spec_of
from experiments.models.named import Named
from experiments.models.regression import dense
from experiments.models.specs import Spec
from lsa_lab.harness.run.bounds import Bounded, Seed, at_least, between

NORMS = {"without": "without norms", "with": "with norms"}  # the names of the models
PARTS = 5  # of the training, after each of which risks are measured


def attention(d: int, n: int, depth: int, heads: int, key_width: int, **training) -> Spec:
    """Softmax attention without norms, on prompts with noise."""
    recipe = dict(batch=64, learning_rate=0.003, seeds=9, seed=11, checkpoints=PARTS) | training
    shape = dict(heads=heads, key_width=key_width, width=heads * key_width, init_scale=0.5)
    return dense("softmax", d, n, depth, noise_std=0.5, training=recipe, **shape)


def pair(plain: Spec) -> Named:
    """A model without norms and the same with a norm before each layer, trained on the same
    prompts."""
    architecture = dataclasses.replace(plain.architecture, norm=True)
    specs = plain, dataclasses.replace(plain, architecture=architecture)
    return tuple(zip(NORMS.values(), specs, strict=True))


SMALL = pair(attention(4, 10, 3, 2, 8, steps=6000))
# The sizes of the shared softmax attention, whose risk is 1.08 times that of least squares.
SHARED = pair(attention(8, 20, 4, 4, 8, steps=20_000))


@dataclass(frozen=True)
class Config(Bounded):
    """Pairs of models, alike but for their norms, from the same seeds and on the same prompts."""

    models: Named = SMALL  # trained models, by name
    # Of all that layers write.
    shrinkages: Annotated[tuple[float, ...], between(0.0, 0.999)] = (0.8, 0.9, 0.95, 0.98)
    # Times the noise of training, where shrunk writes are judged.
    noisier: Annotated[float, at_least(1.0)] = 2.0
    prompts: Annotated[int, at_least(2)] = 4096  # of each pair, its own, of either noise
    seed: Seed = 2

    def __post_init__(self):
        super().__post_init__()
        plain = spec_of(self, NORMS["without"])
        if plain.architecture.norm or plain.architecture.kernel != "softmax":
            raise ValueError(f"models = {plain}: choose softmax attention without norms")
        if dict(self.models) != dict(pair(plain)):
            raise ValueError("models: choose two that are alike but for their norms, as pair does")


TIERS = {
    "smoke": Config(pair(attention(2, 4, 2, 2, 2, steps=10, batch=4, seeds=2)), prompts=8),
    "laptop": Config(),
    "paper": Config(SHARED),
}
