"""The criteria of `published_logs`; what it judges stands in its statements."""

from dataclasses import dataclass

from lsa_lab.claims import Statement
from lsa_lab.harness import checks

TASKS = ("RTE", "COPA")
ENDS = ("first", "last")  # layers 0 and 1, and the last two


@dataclass(frozen=True)
class Config:
    """The 32 logs of two models, two tasks, attention and MLP of the first and the last two layers.

    Copied from the authors' repository, github.com/chen123CtrlS/EnhancingICL_SVDPruning, folder
    src/results at commit a3d1538. It has four more, of CB, with one deep layer each: left out. A
    score of exactly 0, which no guess has, is no measurement: left out too.
    """

    tasks: tuple[str, ...] = TASKS  # whose logs are counted
    high: float = 0.75  # from this rate on clipping is drastic
    # Criteria, on scores: accuracy for RTE, F1 for COPA.
    degraded: float = 0.02  # a fall by more than this is a degradation
    near: float = 0.03  # of 0.5: as good as a guess
    gain: float = 0.019  # of a search, on test: that which table C.5 has on average

    def __post_init__(self):
        checks.kinds(self)
        if not self.tasks or {*self.tasks} - {*TASKS}:
            raise ValueError(f"tasks = {self.tasks!r}: choose some of {TASKS}")
        checks.between(self, "high", 0.1, 0.995)
        for name in ("degraded", "near", "gain"):
            checks.positive(self, name)


TIERS = {"smoke": Config(tasks=("RTE",)), "laptop": Config()}


def statements(config) -> tuple[Statement, ...]:
    figure_1, figure_4 = (
        f"A2 (2406.03768), {place}, as stated, of its own logs"
        for place in ("figure 1", "figure 4 and appendix C.5")
    )
    change = f"the score, averaged over rates >= {config.high:g}, less that unclipped,"
    read_before = "means of these logs had been read before the bound was chosen"
    shared = "four scores unclipped, of two models on two tasks, stand under all logs"
    return (
        Statement(
            "deep_is_flat",
            figure_1,
            "Deep layers can be reduced drastically without much degradation",
            f"{change} last two layers,",
            at_least=-config.degraded,
            over="logs",
            note=f"{read_before}; {shared}",
        ),
        Statement(
            "shallow_degrades",
            figure_1,
            "After a sharp reduction of a shallow layer performance falls",
            f"{change} first two layers,",
            at_most=-config.degraded,
            over="logs",
            note=f"{read_before}; {shared}; undecided by .0002: "
            "the logs of one more task would decide",
        ),
        Statement(
            "deep_is_steadier",
            figure_1,
            "Deep layers tolerate a sharp reduction better than shallow ones",
            f"{change} of a deep layer less that of the shallow one beside it in order,",
            at_least=0.0,
            over="pairs of logs of one model, task and part",
            note=read_before,
        ),
        Statement(
            "shallow_guesses",
            figure_1,
            "Shallow layers sharply reduced leave the model guessing",
            "the score less .5, averaged over the two largest rates, first two layers,",
            margin=config.near,
            over="logs",
            note="GPT-J-6B is as near to .5 unclipped: a collapse is LLAMA2-7B's alone",
        ),
        Statement(
            "search_gains",
            figure_4,
            "A searched rate gains on test what table C.5 has on average",
            "the score on test with the rate that is best on validation less that without,",
            at_least=config.gain,
            over="logs",
            note=f"first and last layers; {read_before}",
        ),
        Statement(
            "search_gains_deep",
            figure_4,
            "A searched rate of a deep layer gains that on test",
            "the score on test with the rate that is best on validation less that without, last "
            "two layers,",
            at_least=config.gain,
            over="logs",
            note=read_before,
        ),
        Statement(
            "optimism",
            "derived here",
            "The gain on validation is in part won by selection",
            "the best gain on validation less that on test,",
            at_least=0.0,
            over="logs",
            note=read_before,
        ),
    )
