"""The sizes and the statements of `preprocess_then_optimise`, fixed before its first run.

Before it, figures for few steps and for d = 64 were known from smaller trials (docs/theory, "Trials
before the experiments"). The trained models are our setting, modelled on A4 (2408.04532).
"""

from dataclasses import dataclass

from experiments.heads.preprocess_then_optimise.statements import statements as statements
from experiments.models.named import Named, named
from experiments.models.specs import Spec
from lsa_lab.harness import checks

# Rules by their step size: the same for all prompts, on raw and on preprocessed covariates; over
# |r|², that is with R/|R|; a share of the largest that converges in the prompt.
RULES = ("raw", "preprocessed", "normalised", "own step")
TUNED = ("raw", "preprocessed", "normalised", "mixed", "mixed, normalised")
FITTED = ("raw", "mixed")  # those of TUNED with as many layers as the models
MODELS = ("single head", "first layer only", "all heads")  # with h heads in which layers
SHUFFLED = "shuffled labels"  # read by the first layer of the last of these
# What is descended on; of models: the white tokens that their first layers write.
FEATURES = ("raw", "preprocessed", *MODELS, SHUFFLED)

_TRAINED = named("laptop", ("depth 3",))


@dataclass(frozen=True)
class Config:
    """Three tasks with E |w|² = 1: one for known rules, a wide one, and that of trained models.

    A step size, a share of the largest one, or a number of steps is chosen on as many prompts as it
    is then judged on, and never on these; for known rules once for all runs. In first runs each
    chose its own, the wide and the learned tasks had fewer prompts, and the search for step sizes
    started elsewhere; then all was sampled anew, once, from seed 1. The statements say so.
    """

    d: int = 8  # covariates; the non-zeros of w are Gaussian
    sparsity: int = 2  # non-zeros of w
    n: int = 16
    noise_var: float = 0.1  # variance of the labels' noise
    depth: int = 5  # most steps whose step sizes are fitted one by one
    tuning_prompts: int = 2048  # that fit them
    heads: tuple[int, ...] = (1, 2, 4, 8)  # of the first layer, coordinates shared out among them
    steps: int = 2048  # the most of a constant step size
    step_sizes: tuple[float, ...] = tuple(2.0**k for k in range(-9, 5))  # of one for all prompts
    share: float = 0.5  # of the largest step that converges in a prompt, where it is not chosen
    runs: int = 16
    prompts: int = 256  # of each run, to be judged on
    wide_d: int = 64  # covariates of the wide task, non-zeros ± 1/√s
    wide_sparsity: int = 4  # non-zeros of the wide task
    wide_n: int = 512  # demonstrations of the wide task
    wide_noise_var: float = 0.5  # variance of its noise
    wide_runs: int = 16  # runs of it
    wide_prompts: int = 128  # of each of these runs
    models: Named = _TRAINED  # the trained model, by name
    retrain: bool = False  # train again instead of reading committed weights
    trained_n: int = 16  # demonstrations in a prompt of trained models
    trained_steps: int = 64  # the most of descent on their features
    trained_prompts: int = 1024  # of each run, to be judged on
    seed: int = 1
    # Criteria. Ratios are between mean excess risks on the same prompts.
    slow: float = 1.0  # preprocessed with one step size for all, over raw, where it is least: more
    no_worse: float = 1.02  # mixed over raw at equally many steps, where it is most
    gain: float = 0.9  # mixed over raw at the most steps that are fitted
    layer: float = 1.0  # mixed with one step less, for the layer that preprocesses, over raw there
    best: float = 1.0  # preprocessed over ridge, each at its best
    heads_gain: float = 0.9  # features of d heads over those of fewer, where they are most
    plateau: float = 2.0  # n · excess / σ² of the wide task over s, preprocessed at its best step
    dense: float = 0.9  # the same over d, raw at its best step: more
    learned: float = 0.9  # learned features over raw covariates, each at its best step
    unlearned: float = 0.9  # single-head features over raw covariates: more
    nothing: float = 0.95  # features made with shuffled labels over raw covariates: more
    like_descent: float = 1.25  # a model over descent on its own features, from 1/1.25
    sparse: float = 1.0  # a model over the best rule that commutes with rotations

    def __post_init__(self):
        checks.kinds(self)
        checks.between(self, "d", 2, 64)
        checks.between(self, "wide_d", 2, 128)
        for prefix in ("", "wide_"):
            checks.between(self, f"{prefix}sparsity", 1, getattr(self, f"{prefix}d"))
            checks.between(self, f"{prefix}runs", 2, None)
        for name in ("n", "wide_n", "trained_n", "steps", "trained_steps"):
            checks.between(self, name, 1, None)
        for name in ("prompts", "wide_prompts", "trained_prompts", "tuning_prompts"):
            checks.between(self, name, 2, None)
        checks.between(self, "depth", 2, 8)
        checks.each_between(self, "heads", 1, self.d)
        if len(self.heads) < 2 or list(self.heads) != sorted({*self.heads, self.d}):
            raise ValueError(
                f"heads = {self.heads}: choose increasing numbers, the last of them d = {self.d}"
            )
        checks.each_positive(self, "step_sizes")
        checks.between(self, "share", 0.01, 0.99)
        if [_has_all_variants(spec) for _, spec in self.models] != [True]:
            raise ValueError(
                "models: choose one of sparse regression, with variants of one head a layer, "
                "of all heads in the first layer alone, and of all"
            )
        for name in ("noise_var", "wide_noise_var", "slow", "no_worse", "gain"):
            checks.positive(self, name)
        for name in ("layer", "best", "heads_gain", "plateau", "dense", "learned", "unlearned"):
            checks.positive(self, name)
        for name in ("nothing", "like_descent", "sparse"):
            checks.positive(self, name)
        checks.seed(self, "seed")


def _has_all_variants(spec: Spec) -> bool:
    sparse = spec.task.sparsity is not None and spec.task.degree == 1
    return sparse and {"single", "first", "full"} <= {*spec.architecture.places}


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
        wide_d=2,
        wide_sparsity=1,
        wide_n=8,
        wide_runs=2,
        wide_prompts=4,
        models=named("smoke", ("depth 3",)),
        trained_n=8,
        trained_steps=4,
        trained_prompts=4,
    ),
    "laptop": Config(),
    "paper": Config(models=named("paper", ("depth 3",)), runs=36, wide_runs=36, seed=2),
    "gpu": Config(
        depth=8,
        tuning_prompts=16_384,
        steps=16_384,
        runs=32,
        prompts=4096,
        wide_d=128,
        wide_n=1024,
        wide_runs=32,
        wide_prompts=512,
        models=named("gpu", ("depth 3",)),
        trained_n=32,
        trained_steps=2048,
        trained_prompts=4096,
    ),
}
