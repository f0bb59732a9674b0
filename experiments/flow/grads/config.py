"""The sizes and the statements of `grads`, fixed before its first run."""

from dataclasses import dataclass

from lsa_lab.claims import Statement
from lsa_lab.harness import checks

TASKS = ("prior", "duplicates", "table")  # the axis "setting"
FLOWS = ("GradS", "slot's flow", "label's flow", "flow × input", "contribution")
DIVERSE = ("determinantal", "farthest point", "relevance × determinantal")
RECOMPUTED = ("GradS, recomputed", "contribution, recomputed")
PROMPTS = ("alone", "pool")  # in which the flow of a demonstration is taken


@dataclass(frozen=True)
class Config:
    """Demonstrations selected from a pool, for attention that knows some of the task.

    w ~ N(0, I), of which the weights know ``known`` coordinates, and no noise; covariates have few
    non-zeros, and E|x|² = 1. On the table the weights know half of the covariates.
    """

    d: int = 8
    known: int = 4
    density: float = 0.3  # of the non-zeros of a demonstration
    query_density: float = 0.5
    distinct: int = 8  # demonstrations that a pool with duplicates repeats
    closeness: float = 0.98  # correlation of a duplicate's covariates with those of its original
    pool: int = 32
    pools: tuple[int, ...] = (8, 32, 128)  # ``pool`` and ``small`` are among them
    small: int = 8  # a pool of which every subset is tried
    shots: tuple[int, ...] = (1, 2, 4, 8, 16)
    judged: int = 4  # shots at which the claims are made
    depth: int = 8  # layers: steps of the learner, each 1 / λ_max of its prompt
    ridge: float = 0.01  # of the determinant, over the mean square of the points
    runs: int = 8
    validation: int = 4  # runs more, which choose the strongest rival
    queries: int = 200  # of each run, each with a task and a pool of its own
    few: int = 50  # of these, for what is costly: the greedy oracle and the flow of joining
    seed: int = 0
    # Criteria, on relative gains: (error of one - error of the other) / error of one.
    gain: float = 0.0  # more than this is a gain
    headline: float = 0.068  # A1's first version reports this much over the strongest rival
    later: float = 0.013  # and its later version this

    def __post_init__(self):
        checks.between(self, "d", 2, 10)  # the covariates of the table
        checks.between(self, "known", 1, self.d - 1)
        for name in ("density", "query_density", "closeness"):
            checks.positive(self, name)
            checks.between(self, name, None, 1.0)
        checks.between(self, "distinct", 1, None)
        checks.each_between(self, "pools", 2, 200)  # half of the table has 221 rows
        for name in ("pool", "small"):
            checks.one_of(self, name, self.pools)
        checks.between(self, "small", 2, 16)
        checks.each_between(self, "shots", 1, self.pool)
        checks.one_of(self, "judged", self.shots)
        checks.between(self, "judged", 1, min(self.pools))
        checks.between(self, "depth", 2, 16)
        checks.between(self, "runs", 2, None)
        for name in ("validation", "queries"):
            checks.between(self, name, 1, None)
        checks.between(self, "few", 1, self.queries)
        for name in ("ridge", "headline", "later"):
            checks.positive(self, name)
        checks.between(self, "gain", 0.0, 1.0)
        checks.seed(self, "seed")


TIERS = {
    "smoke": Config(
        pool=6,
        pools=(6,),
        small=6,
        shots=(1, 2),
        judged=2,
        depth=2,
        runs=2,
        validation=1,
        queries=4,
        few=2,
    ),
    "laptop": Config(),
    "paper": Config(runs=32, validation=16, queries=2000, few=200),
}


def statements(config) -> tuple[Statement, ...]:
    paper, own = "A1 (2508.00385)", "derived here"
    carried, ablation = f"{paper}, carried over", f"{paper}, its ablation of layers"
    gain = f"the relative gain in squared error, {config.judged} shots of {config.pool}, over"
    rival = f"{gain} the rival that is best on other queries"
    layer = f"{gain} the earlier layer that is best on other queries"
    random, once = f"{gain} a random choice", f"{gain} the same, computed once"
    more = {"at_least": config.gain}
    beats, beats_random = "GradS beats its strongest rival", "GradS beats a random choice"
    nothing = "On the table GradS is better than no demonstrations"
    product = "Flow × input selects better than the norm of the flow"
    last = "The last layer's flow is the best to select by"
    alone, pooled = f"{last}, every demonstration alone", f"{last}, all of the pool in the prompt"
    again = "With duplicates in the pool it helps to recompute, after each pick,"
    return (
        Statement("prior", paper, f"{beats} where weights know half", rival, **more),
        Statement(
            "headline",
            f"{paper}, version 1",
            f"{beats} by {config.headline:.1%}",
            rival,
            at_least=config.headline,
        ),
        Statement(
            "later",
            f"{paper}, on OpenReview",
            f"{beats} by {config.later:.1%}",
            rival,
            at_least=config.later,
        ),
        Statement("duplicates", carried, f"{beats} with duplicates", rival, **more),
        Statement("table", carried, f"{beats} on the diabetes table", rival, **more),
        Statement("random", paper, f"{beats_random} where weights know half", random, **more),
        Statement("table_random", carried, f"{beats_random} on the table", random, **more),
        Statement("table_none", own, nothing, f"{gain} no demonstrations", **more),
        Statement("times_input", own, product, f"{gain} GradS", **more),
        Statement("last_layer", ablation, alone, layer, **more),
        Statement("last_layer_pool", ablation, pooled, layer, **more),
        Statement("recomputed_flow", own, f"{again} the last layer's flow", once, **more),
        Statement("recomputed_contribution", own, f"{again} the contribution", once, **more),
    )
