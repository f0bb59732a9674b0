"""The sizes and the statements of `finite_pretraining`, fixed before its first run."""

from dataclasses import dataclass

from lsa_lab.claims import Statement
from lsa_lab.harness import checks

RISKS = ("new tasks", "pretraining tasks")


@dataclass(frozen=True)
class Config:
    """One layer fitted by least squares to N = tau d² prompts with tasks from k = kappa d."""

    sizes: tuple[int, ...] = (16, 32)  # values of d, growing; the last two are extrapolated
    alphas: tuple[float, ...] = (1.0, 10.0)  # demonstrations of a prompt / d, growing
    kappas: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0)  # tasks / d, growing
    taus: tuple[float, ...] = (0.25, 0.5, 0.75, 0.9, 1.1, 1.5, 2.0, 4.0)  # prompts / d², growing
    near: float = 1.6  # judged against the closed form where tau or 1 / tau is above it
    noise_var: float = 0.1  # of a label, relative to its signal
    runs: int = 32  # fits at the largest d; of a smaller d each run is a mean of (largest / d)²
    seed: int = 1
    # Criteria.
    deviation: float = 0.1  # of the risk at d to infinity from the closed form, as a ratio
    peak: float = 1.5  # the risk near tau = 1 over that on both sides
    memorised: float = 2.0  # new tasks over pretraining tasks, with the fewest tasks
    learned: float = 1.25  # the same with the most tasks

    def __post_init__(self):
        checks.kinds(self)
        checks.each_between(self, "sizes", 2, 128)
        checks.each_between(self, "alphas", 2 / min(self.sizes), None)  # two demonstrations
        checks.each_between(self, "kappas", 1 / min(self.sizes), None)  # one task
        checks.each_between(self, "taus", 0.1, 16)
        for name, least in (("sizes", 2), ("alphas", 1), ("kappas", 2), ("taus", 3)):
            values = getattr(self, name)
            if len(values) < least or list(values) != sorted({*values}):
                raise ValueError(f"{name} = {values}: choose {least} or more numbers that grow")
        if not self.taus[0] < self.taus[1] < 1 < self.taus[-2]:
            raise ValueError(f"taus = {self.taus}: choose two or more below 1, and above 1")
        checks.between(self, "runs", 3, None)
        for name in ("noise_var", "near", "deviation", "peak", "memorised", "learned"):
            checks.positive(self, name)
        checks.seed(self, "seed")


TIERS = {
    "smoke": Config(sizes=(4, 8), kappas=(0.5, 2.0), taus=(0.25, 0.5, 1.5, 4.0), near=1.2, runs=3),
    "laptop": Config(),
    "paper": Config(sizes=(32, 64)),
}

_SOURCE = "Lu et al. 2405.11751"


def statements(config) -> tuple[Statement, ...]:
    largest, fresh = f"at d = {config.sizes[-1]}", f"{config.runs} fresh runs, 24 before"
    return (
        *(_closed_form(config, name) for name in RISKS),
        Statement(
            "peak",
            f"{_SOURCE}, in our setting",
            "The risk on new tasks has a peak where prompts are as many as entries of the layer",
            f"risk just above tau = 1 / the larger of those at tau {config.taus[1]:g} and "
            f"{config.taus[-2]:g}, where least, {largest}",
            "ratio",
            at_least=config.peak,
            redrawn=fresh,
        ),
        Statement(
            "memorised",
            f"{_SOURCE}, in our setting",
            "With fewer tasks than dimensions a layer learns these and answers new ones badly",
            f"risk on new tasks / on those of the pretraining at kappa = {config.kappas[0]:g}, "
            f"alpha = {config.alphas[-1]:g}, tau = {config.taus[-1]:g}, {largest}",
            "ratio",
            at_least=config.memorised,
            redrawn=fresh,
        ),
        Statement(
            "learned",
            f"{_SOURCE}, in our setting",
            "With more tasks than dimensions new tasks are answered nearly as well as its own",
            f"the same ratio at kappa = {config.kappas[-1]:g}",
            "ratio",
            at_most=config.learned,
            redrawn=fresh,
        ),
    )


def _closed_form(config, name):
    *_, coarse, fine = config.sizes
    return Statement(
        f"closed_form_{name.split()[0]}",
        f"{_SOURCE}, as stated; the proof is ours",
        f"The closed form is the risk on {name} as d grows",
        "risk over closed form, its log extrapolated to 1/d = 0 by the line through d = "
        f"{coarse} and {fine}, at the place that is worst for the other runs",
        "ratio",
        margin=config.deviation,
        note=f"places where tau or 1 / tau is above {config.near:g}: finite d widens the peak",
        revision="it was the ratio, not its log, on a line: where 1/d² counts it bends more",
        redrawn=f"{config.runs} fresh runs, 24 before",
    )
