"""The sizes of `training_dynamics`."""

from dataclasses import dataclass
from typing import Annotated

from lsa_lab.harness.run.bounds import POSITIVE, Bounded, Seed, at_least, between

Eigenvalues = Annotated[tuple[float, ...], POSITIVE]
Positive = Annotated[float, POSITIVE]


@dataclass(frozen=True)
class Config(Bounded):
    """The closed laws of gradient flow beside population descent and stochastic descent."""

    d: Annotated[int, between(1, 64)] = 8
    n: Annotated[int, at_least(1)] = 32
    runs: Annotated[int, at_least(2)] = 12
    initial_step: Positive = 0.01  # a_0 = u U, the effective step at time 0
    population_rate: Positive = 1e-3  # learning rate of descent on the population loss
    # Learning rate of descent on fresh batches. A run at 0.01 with batches of 128 was 8 % late at
    # its half: the law is of gradient flow, and 0.01 is no longer small.
    stochastic_rate: Positive = 5e-3
    batch: Annotated[int, at_least(1)] = 256  # prompts in a step of stochastic descent
    horizon: Positive = 4.0  # time shown, in multiples of the half-time
    eigenvalues: Eigenvalues = (2.0, 1.0, 0.5, 0.25)  # of the covariance with modes
    mode_time: Positive = 25.0  # time up to which the modes are followed
    head_size: Positive = 0.02  # of separate keys, queries and values at time 0
    head_time: Positive = 2000.0  # time up to which separate heads are followed
    points: Annotated[int, at_least(10)] = 100  # times at which a path is recorded
    seed: Seed = 1


TIERS = {
    "smoke": Config(
        d=2,
        n=4,
        runs=2,
        population_rate=0.02,
        stochastic_rate=0.02,
        batch=8,
        mode_time=2.0,
        points=10,
    ),
    "laptop": Config(),
    "paper": Config(d=16, n=64, runs=32, batch=4096, stochastic_rate=1e-3),
}
