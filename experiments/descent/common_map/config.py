"""The models and the sizes of `common_map`."""

from dataclasses import dataclass
from typing import Annotated

from lsa_lab.harness.run import checks
from lsa_lab.harness.run.bounds import POSITIVE, Bounded, Seed, at_least, between

# What a model is made of, beside masked linear attention.
MODELS = {
    "linear": {},
    "linear, query a key": {"keys": "all"},
    "linear, causal": {"keys": "causal"},
    "linear, norm": {"norm": True},
    "linear, MLP": {"mlp_width": True},
    "softmax": {"kernel": "softmax"},
    "softmax, norm": {"kernel": "softmax", "norm": True},
    "softmax, norm, MLP": {"kernel": "softmax", "norm": True, "mlp_width": True},
}


@dataclass(frozen=True)
class Config(Bounded):
    """Random transformers, and the one matrix per layer that explains their tokens best."""

    d: Annotated[int, between(1, 64)] = 4
    n: int = 16
    # Without noise in the labels, tokens lie in a subspace.
    noise_std: Annotated[float, POSITIVE] = 0.5
    layers: Annotated[int, at_least(1)] = 4  # of each model
    heads: Annotated[int, at_least(1)] = 2
    key_width: Annotated[int, at_least(1)] = 4  # of a head
    mlp_width: Annotated[int, at_least(1)] = 16  # of the hidden layer
    # Scales of the weights, times 1 / √inputs.
    scales: Annotated[tuple[float, ...], POSITIVE] = (0.5, 1.0, 2.0)
    runs: Annotated[int, at_least(2)] = 12
    prompts: Annotated[int, at_least(1)] = 4  # for each run, averaged
    queries: int = 12  # after the demonstrations of each prompt
    seed: Seed = 1

    def __post_init__(self):
        super().__post_init__()
        # At most e tokens, or d queries, always have a common map.
        checks.between(self, "n", self.d + 2, None)
        checks.between(self, "queries", self.d + 2, None)


TIERS = {
    "smoke": Config(
        d=2, n=6, layers=2, heads=1, key_width=2, mlp_width=4, scales=(1.0,), runs=2, prompts=1
    ),
    "laptop": Config(),
    "paper": Config(
        d=8, n=64, layers=6, heads=4, key_width=8, mlp_width=64, runs=64, prompts=16, queries=32
    ),
}
