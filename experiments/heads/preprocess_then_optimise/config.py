"""The sizes of `preprocess_then_optimise`."""

from dataclasses import dataclass
from typing import Annotated

from lsa_lab.harness.run.bounds import (
    INCREASING,
    POSITIVE,
    Bounded,
    Seed,
    at_least,
    at_most,
    between,
)

# Rules by their step size: the same for all prompts, on raw and on preprocessed covariates; over
# |r|², that is with R/|R|; a share of the largest that converges in the prompt.
RULES = ("raw", "preprocessed", "normalised", "own step")
TUNED = ("raw", "preprocessed")  # rules whose steps have sizes of their own

_STEP_SIZES = tuple(2.0**k for k in range(-9, 5))


@dataclass(frozen=True)
class FewHeads(Bounded):
    """Descent on what first layers of few heads make of covariates, alone and beside raw ones.

    Covariates, non-zeros of w and heads are as many as in the whole; non-zeros are ± 1/√s here.
    """

    n: Annotated[int, at_least(1)] = 40
    noise_std: Annotated[float, POSITIVE] = 0.5
    # Shares of raw covariates beside the features.
    shares: Annotated[tuple[float, ...], POSITIVE, at_most(0.999)] = (0.25, 0.5, 0.75)
    # Step sizes times 1/λ_max of each prompt.
    step_sizes: Annotated[tuple[float, ...], POSITIVE, at_most(1.999)] = (0.25, 0.5, 1.0, 1.5)
    steps: Annotated[int, at_least(1)] = 64  # of descent, at most
    prompts: Annotated[int, at_least(1)] = 512  # to choose what is free; as many to judge it
    runs: Annotated[int, at_least(2)] = 12
    seed: Seed = 1


@dataclass(frozen=True)
class Config(Bounded):
    """Sparse regression with E |w|² = 1, and rules that know the task.

    A step size, a share of the largest one, or a number of steps is chosen on as many prompts as it
    is then judged on, and never on these, once for all runs.
    """

    d: Annotated[int, between(2, 64)] = 8  # covariates; the non-zeros of w are Gaussian
    sparsity: Annotated[int, between(1, "d")] = 2  # non-zeros of w
    n: Annotated[int, at_least(1)] = 16
    noise_var: Annotated[float, POSITIVE] = 0.1  # variance of the labels' noise
    depth: Annotated[int, between(2, 8)] = 5  # most steps whose step sizes are fitted one by one
    tuning_prompts: Annotated[int, at_least(2)] = 2048  # that fit them
    # Of the first layer, coordinates shared out among them.
    heads: Annotated[tuple[int, ...], between(1, "d"), INCREASING] = (1, 2, 4, 8)
    steps: Annotated[int, at_least(1)] = 2048  # the most of a constant step size
    step_sizes: Annotated[tuple[float, ...], POSITIVE] = _STEP_SIZES  # of one for all prompts
    # Of the largest step that converges in a prompt, where it is not chosen.
    share: Annotated[float, between(0.01, 0.99)] = 0.5
    runs: Annotated[int, at_least(2)] = 16
    prompts: Annotated[int, at_least(2)] = 256  # of each run, to be judged on
    seed: Seed = 1
    few_heads: FewHeads = FewHeads()  # with a step size for each prompt

    def __post_init__(self):
        super().__post_init__()
        if len(self.heads) < 2 or self.heads[-1] != self.d:
            raise ValueError(
                f"heads = {self.heads}: choose increasing numbers, the last of them d = {self.d}"
            )


TIERS = {
    "smoke": Config(  # shapes that agree, so that there is less to compile
        d=2,
        sparsity=1,
        n=8,
        depth=2,
        tuning_prompts=8,
        heads=(1, 2),
        steps=4,
        step_sizes=(0.125, 0.5),
        runs=2,
        prompts=4,
        few_heads=FewHeads(8, shares=(0.5,), step_sizes=(0.5,), steps=2, prompts=4, runs=2),
    ),
    "laptop": Config(),
    "paper": Config(runs=36, seed=2),
}
