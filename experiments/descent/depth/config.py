"""The sizes of `depth`, fixed before its first run."""

from dataclasses import dataclass
from typing import Annotated

from lsa_lab.harness.run.bounds import INCREASING, POSITIVE, Bounded, Seed, at_least, between

COVARIANCES = ("identity", "rotated")
ALGORITHMS = ("gradient descent", "preconditioned", "GD++")


@dataclass(frozen=True)
class Tied(Bounded):
    """Stacks whose layers share their weights beside free ones, with label noise and without."""

    depth: Annotated[int, between(2, 8)] = 2  # layers of a stack
    # Of the labels, where E |w|² = 1.
    noise_vars: Annotated[tuple[float, ...], between(0.0, 10.0)] = (0.0, 0.5)
    runs: Annotated[int, at_least(2)] = 9
    steps_per_layer: Annotated[int, at_least(1)] = 1200
    test_prompts: Annotated[int, at_least(1)] = 100_000  # of every run


@dataclass(frozen=True)
class Turned(Bounded):
    """Stacks on prompts without end, each of which turns the covariance of these eigenvalues."""

    eigenvalues: Annotated[tuple[float, ...], POSITIVE, INCREASING] = (0.2, 0.4, 0.6, 0.8, 1.0)
    max_depth: Annotated[int, between(2, 8)] = 4  # layers of the deepest stack
    runs: Annotated[int, at_least(2)] = 9
    steps_per_layer: Annotated[int, at_least(1)] = 1200
    test_prompts: Annotated[int, at_least(1)] = 100_000  # of every run


@dataclass(frozen=True)
class Config(Bounded):
    """L trained layers beside L steps of three algorithms with tuned step sizes."""

    d: Annotated[int, between(1, 64)] = 5
    n: Annotated[int, at_least(1)] = 20
    max_depth: Annotated[int, between(1, 8)] = 4  # layers of the deepest stack
    runs: Annotated[int, at_least(2)] = 12
    # A stack of L layers is trained for L times as many.
    steps_per_layer: Annotated[int, at_least(1)] = 600
    batch: Annotated[int, at_least(1)] = 128
    # Of one layer; L layers are trained at an L-th of it.
    learning_rate: Annotated[float, POSITIVE] = 0.1
    init_scale: Annotated[float, POSITIVE] = 0.1
    # Prompts on which step sizes are tuned from several starts, and on which the best of these are
    # tuned further.
    coarse_prompts: Annotated[int, at_least(1)] = 1024
    tuning_prompts: Annotated[int, at_least("coarse_prompts")] = 16_384
    test_prompts: Annotated[int, at_least(1)] = 20_000
    seed: Seed = 1
    tied: Tied = Tied()
    turned: Turned = Turned()


TIERS = {
    "smoke": Config(
        d=2,
        n=4,
        max_depth=2,
        runs=2,
        steps_per_layer=10,
        batch=8,
        coarse_prompts=32,
        tuning_prompts=64,
        test_prompts=64,
        tied=Tied(runs=2, steps_per_layer=5, test_prompts=200),
        turned=Turned((0.25, 0.5, 1.0), 2, runs=2, steps_per_layer=5, test_prompts=200),
    ),
    "laptop": Config(),
    # 24 runs from seed 11 left two rows undecided, one of them narrowly.
    "paper": Config(runs=48, seed=12),
}
