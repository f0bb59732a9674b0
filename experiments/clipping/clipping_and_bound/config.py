"""The sizes and the statements of `clipping_and_bound`, fixed before its first run."""

from dataclasses import dataclass

from experiments.clipping.linear_config import PAPER, SMOKE, LinearConfig
from lsa_lab.claims import Statement
from lsa_lab.harness import checks

MODULES = ("w_kq", "w_pv")
PLAIN = {"sum": "Σ|G|²", "upper": "Σ UB", "risk": "risk", "gap": "gap"}


@dataclass(frozen=True)
class Config(LinearConfig):
    """Every truncation of w_kq and of w_pv, layer by layer, in trained stacks and in descent."""

    prompts: int = 512  # of each run, its own
    population: int = 64  # fresh pairs for each prompt
    constructed: int = 16  # sets of prompts on which stacks that descend are looked at
    update_noises: tuple[float, ...] = (  # c of C = cI, an assumption of the theorem
        *(1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3),
        *(1.0, 3.0, 10.0, 30.0, 100.0),
    )
    largest_loss: float = 16.0  # squared errors are clipped to [0, b], so that R = b/2
    seed: int = 1
    # Criteria.
    rarely: float = 0.05  # share up to which something may still be said to happen always
    majority: float = 0.5  # share from which it may be said to happen as a rule
    rank_correlation: float = 0.5  # over the rates
    exact: float = 1e-9  # relative change that is none

    def __post_init__(self):
        super().__post_init__()
        for name in ("prompts", "population", "constructed"):
            checks.between(self, name, 2, None)
        checks.each_positive(self, "update_noises")
        for name in ("largest_loss", "exact"):
            checks.positive(self, name)
        for name in ("rarely", "majority", "rank_correlation"):
            checks.between(self, name, 0, 1)
        checks.seed(self, "seed")


TIERS = {
    "smoke": Config(**SMOKE, prompts=4, population=4, constructed=2, update_noises=(0.01, 1.0)),
    "laptop": Config(),
    "paper": Config(**PAPER, prompts=1024, population=256),
}


def statements(config) -> tuple[Statement, ...]:
    return (*_about_the_bound(config), *_about_dropping(config), *_about_descent(config))


_A2 = "A2 (2406.03768)"
_SPEARMAN = "Spearman's correlation over the ranks kept, averaged over matrices and layers"
_BEST_C = "at the c of C = cI that suits the statement best on the other runs"
_CHANGED = "it was c = 0.01"
_RUNS = "16 fresh runs, 10 before"
_FRESH = f"{_RUNS}, with four times the prompts"
_OVER_C = {"note": _BEST_C, "revision": _CHANGED, "redrawn": _FRESH}
_MAY = 'A2 says that lower norms "may" help, and warns of lost expressive power'


def _about_the_bound(config):
    share = "the share of matrices, layers and ranks"
    return (
        Statement(
            "bound_falls",
            f"{_A2}, Remark 6 and Theorem 2, our reading, in our setting",
            "Truncating w_kq or w_pv of a trained stack lowers the bound of Theorem 2",
            f"{share} at which it rises",
            at_most=config.rarely,
            **_OVER_C,
        ),
        Statement(
            "risk_falls_with_it",
            f"{_A2}, Remark 4, our reading, in our setting",
            "Where truncation lowers the bound, it lowers the risk",
            f"{share}, of those with a lower bound, in which the risk is lower",
            at_least=config.majority,
            note=f"{_BEST_C}; {_MAY}",
            revision=_CHANGED,
            redrawn=_FRESH,
        ),
        Statement(
            "ranks_risks",
            f"{_A2}, Theorem 2 and Remark 4, our reading, in our setting",
            "Over the ranks kept the bound and the risk fall together",
            _SPEARMAN,
            at_least=config.rank_correlation,
            note=f"{_BEST_C}; {_MAY}",
            revision=_CHANGED,
            redrawn=_FRESH,
        ),
        Statement(
            "ranks_gaps",
            f"{_A2}, Theorem 2 and Remark 4, our reading, in our setting",
            "Over the ranks kept the bound and the generalisation gap fall together",
            _SPEARMAN,
            at_least=config.rank_correlation,
            **_OVER_C,
        ),
        Statement(
            "sum_ranks_gaps",
            f"{_A2}, Theorem 2 and Remark 6, our reading, in our setting",
            "Over the ranks kept Σ|G_t|² and the generalisation gap fall together",
            _SPEARMAN,
            at_least=config.rank_correlation,
            redrawn=_FRESH,
        ),
    )


def _about_dropping(config):
    best = 'A2 says that it "may be the best option for generalization error"'
    return (
        Statement(
            "least_when_dropped",
            f"{_A2}, appendix B.6, our reading, in our setting",
            "The bound is least where the layer is dropped",
            "the share of matrices and layers in which it is not",
            at_most=config.rarely,
            **_OVER_C,
        ),
        Statement(
            "gap_least_when_dropped",
            f"{_A2}, appendix B.6, our reading, in our setting",
            "On average a layer dropped makes the generalisation gap no larger",
            "the gap when dropped - the gap unclipped, averaged over layers",
            at_most=0.0,
            note=best,
            revision="four times the prompts, for it was undecided",
            redrawn=_RUNS,
        ),
        Statement(
            "gap_falls_when_dropped",
            f"{_A2}, appendix B.6, our reading, in our setting",
            "Of most layers the drop makes the generalisation gap smaller",
            "the share of layers in which it does",
            at_least=config.majority,
            note=best,
            revision="added",
            redrawn=_FRESH,
        ),
        Statement(
            "chosen_by_bound",
            "derived here",
            "The rank at which the bound is least predicts no worse than the whole matrix",
            "log(risk at that rank / risk unclipped), averaged over matrices and layers",
            at_most=0.0,
            **_OVER_C,
        ),
    )


def _about_descent(config):
    return (
        Statement(
            "descent_bound",
            f"modelled on {_A2}, Remark 4",
            "In stacks that descend, too, the bound and the risk fall together as w_kq is cut",
            "Spearman's correlation over the ranks kept, averaged over layers",
            at_least=config.rank_correlation,
            over="sets of prompts",
            note=_BEST_C.replace("runs", "sets"),
            revision=_CHANGED,
            redrawn="16 fresh sets of prompts, 8 before, four times as large",
        ),
    )
