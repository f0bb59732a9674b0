"""The sizes of `order`."""

from dataclasses import dataclass
from typing import Annotated

from lsa_lab.harness.run.bounds import POSITIVE, Bounded, Seed, at_least, between

KINDS = ("linear", "softmax", "descent")  # random, random, and constructed linear attention
MASKS = {"non-causal": "demonstrations", "causal": "causal"}


@dataclass(frozen=True)
class Config(Bounded):
    """Predictions of random and constructed stacks for demonstrations in many orders."""

    d: Annotated[int, between(1, 64)] = 4
    n: Annotated[int, at_least(2)] = 16
    noise_std: Annotated[float, POSITIVE] = 0.5
    depth: Annotated[int, between(2, 8)] = 4
    heads: Annotated[int, at_least(1)] = 2
    key_width: Annotated[int, at_least(1)] = 4  # of a head
    scale: Annotated[float, POSITIVE] = 1.0  # of random weights, times 1 / √inputs
    runs: Annotated[int, at_least(2)] = 32
    prompts: Annotated[int, at_least(2)] = 16  # for each run
    # Orders of each prompt, and as many other draws of its demonstrations.
    orders: Annotated[int, at_least(2)] = 16
    seed: Seed = 1


TIERS = {
    "smoke": Config(d=2, n=4, depth=2, heads=1, key_width=2, runs=2, prompts=2, orders=2),
    "laptop": Config(),
    "paper": Config(d=8, n=64, depth=6, heads=4, key_width=8, runs=64, prompts=64, orders=64),
}
