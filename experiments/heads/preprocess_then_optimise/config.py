"""The sizes of `preprocess_then_optimise`."""

from dataclasses import dataclass

# Rules by their step size: the same for all prompts, on raw and on preprocessed covariates; over
# |r|², that is with R/|R|; a share of the largest that converges in the prompt.
RULES = ("raw", "preprocessed", "normalised", "own step")
TUNED = ("raw", "preprocessed")  # rules whose steps have sizes of their own

_STEP_SIZES = tuple(2.0**k for k in range(-9, 5))


@dataclass(frozen=True)
class FewHeads:
    """Descent on what first layers of few heads make of covariates, alone and beside raw ones.

    Covariates, non-zeros of w and heads are as many as in the whole; non-zeros are ± 1/√s here.
    """

    n: int = 40
    noise_std: float = 0.5
    # Shares of raw covariates beside the features.
    shares: tuple[float, ...] = (0.25, 0.5, 0.75)
    # Step sizes times 1/λ_max of each prompt.
    step_sizes: tuple[float, ...] = (0.25, 0.5, 1.0, 1.5)
    steps: int = 64  # of descent, at most
    prompts: int = 512  # to choose what is free; as many to judge it
    runs: int = 12
    seed: int = 1


@dataclass(frozen=True)
class Config:
    """Sparse regression with E |w|² = 1, and rules that know the task.

    A step size, a share of the largest one, or a number of steps is chosen on as many prompts as it
    is then judged on, and never on these, once for all runs.
    """

    d: int = 8  # covariates; the non-zeros of w are Gaussian
    sparsity: int = 2  # non-zeros of w
    n: int = 16
    noise_var: float = 0.1  # variance of the labels' noise
    depth: int = 5  # most steps whose step sizes are fitted one by one
    tuning_prompts: int = 2048  # that fit them
    # Of the first layer, coordinates shared out among them.
    heads: tuple[int, ...] = (1, 2, 4, 8)
    steps: int = 2048  # the most of a constant step size
    step_sizes: tuple[float, ...] = _STEP_SIZES  # of one for all prompts
    # Of the largest step that converges in a prompt, where it is not chosen.
    share: float = 0.5
    runs: int = 16
    prompts: int = 256  # of each run, to be judged on
    seed: int = 1
    few_heads: FewHeads = FewHeads()  # with a step size for each prompt


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
