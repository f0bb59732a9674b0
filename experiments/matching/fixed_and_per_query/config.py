"""The pools, shares, learners and statements of `fixed_and_per_query`."""

from dataclasses import dataclass
from functools import partial

from experiments.matching.learners import EXACT, learners, tag
from experiments.models.named import Named, named
from lsa_lab.claims import Statement
from lsa_lab.harness import checks

RULES = ("matching", "matching, whitened", "random")  # by which the fixed ones are chosen
TRAINED = ("softmax attention",)  # linear attention explodes on prompts chosen for a query
KINDS = {"one task": 0.0, "related tasks": 0.5, "own tasks": 1.0}  # how far the tasks are apart


@dataclass(frozen=True)
class Config:
    """n demonstrations, some of them chosen once, the rest the most similar to each query.

    Pools have clusters, each with weights √(1 - a) w_0 + √a w_c: one task at a = 0, and tasks that
    have nothing in common at a = 1. Both pools and queries keep E|x|² = d, as in training.
    """

    d: int = 8
    n: int = 20  # demonstrations of a prompt
    fixed: tuple[int, ...] = (0, 5, 10, 15, 20)  # how many of them are the same for all queries
    m: int = 256  # the pool
    clusters: int = 4  # of a pool
    separation: float = 2.0  # distance of each cluster's centre from 0
    noise_std: float = 0.5  # of the pool's labels
    depth: int = 16  # steps of the descent that answers, which a linear stack computes
    step: float = 0.15  # size of each
    epochs: int = 10  # of the linear proxy's training, whose gradients are matched
    batch: int = 64  # examples of the pool in a step of it
    learning_rate: float = 0.1  # of the proxy
    saves: int = 10  # checkpoints of its training
    random_draws: int = 2  # random fixed parts, to compare with
    queries: int = 6  # of each cluster
    pools: int = 32  # of each run and kind
    models: Named = ()  # trained attention that answers too
    runs: int = 9  # as many as the seeds of the models
    seed: int = 4
    # Criteria: ratios of errors in each run, means of logarithms over its pools.
    helps: float = 1.0  # error of both parts over that of the better alone, several tasks: lower
    no_worse: float = 1.1  # the same, one task
    clear: float = 0.8  # error of both parts over that of random demonstrations
    part: float = 1.0  # error with a matched fixed part over that with a random one, at half: lower
    moves: float = 0.2  # how much more of the prompt is each query's own, with tasks of their own

    def __post_init__(self):
        checks.kinds(self)
        checks.between(self, "d", 1, 64)
        checks.between(self, "m", 2, None)
        checks.between(self, "n", 2, self.m)
        checks.each_between(self, "fixed", 0, self.n)
        if list(self.fixed) != sorted({*self.fixed, 0, self.n}) or len(self.fixed) < 3:
            raise ValueError(
                f"fixed = {self.fixed!r}: increasing, from 0 to n = {self.n}, with more"
            )
        if self.n // 2 not in self.fixed:
            raise ValueError(f"fixed = {self.fixed!r}: n // 2 = {self.n // 2} is among them")
        checks.between(self, "clusters", 2, self.m)
        checks.between(self, "separation", 0, self.d**0.5)
        for name in ("depth", "epochs", "batch", "saves", "queries", "pools", "random_draws"):
            checks.between(self, name, 1, None)
        checks.between(self, "runs", 2, None)
        bounds = ("helps", "no_worse", "clear", "part", "moves")
        for name in ("noise_std", "step", "learning_rate", *bounds):
            checks.positive(self, name)
        checks.seed(self, "seed")


TIERS = {
    "smoke": Config(
        d=2,
        n=4,
        fixed=(0, 2, 4),
        m=24,
        clusters=2,
        separation=1.0,
        depth=2,
        saves=2,
        random_draws=2,
        queries=2,
        pools=1,
        models=named("smoke", TRAINED),
        runs=2,
    ),
    "laptop": Config(models=named("laptop", TRAINED)),
    "paper": Config(models=named("paper", TRAINED), pools=48, runs=36, seed=14),
}


def statements(config) -> tuple[Statement, ...]:
    paper, half = "A3 (2506.04579), hybrid selection", config.n // 2
    rows = []
    for learner in learners(config):
        source = f"modelled on {paper}" if learner in EXACT else f"{paper}, in our setting"
        before = "9 of 4 and twice 9 of 16" if learner in EXACT else "9 of 16"
        fresh = f"{config.runs} fresh runs of {config.pools} pools; before, {before}"
        ratio = partial(Statement, statistic="ratio", redrawn=fresh)
        error = "the error at the share that is best in the other runs over that of all fixed or "
        error += "all per query, whichever is better in the other runs"
        rows += [
            ratio(
                f"{tag(learner)}_tasks",
                source,
                "Where clusters differ in their tasks, matched and per-query demonstrations "
                f"together teach {learner} better than either alone",
                f"{error}, geometric mean of related and own tasks",
                at_most=config.helps,
                note="our reading: the number of demonstrations stays",
                revision="one row for the two kinds, it was one for each; linear attention, which "
                "explodes on such prompts, left out",
            ),
            ratio(
                f"{tag(learner)}_one_task",
                "derived here",
                f"With one task both together teach {learner} no worse than the better of them",
                error,
                at_most=config.no_worse,
                revision="bound 1.1, no worse; it was 1",
            ),
        ]
        rows += [
            ratio(
                f"{tag(learner)}_random",
                source,
                f"Both together teach {learner} better than random demonstrations",
                "the error at the share that is best in the other runs over that of random ones, "
                "geometric mean of the kinds",
                at_most=config.clear,
            ),
            ratio(
                f"{tag(learner)}_part",
                "derived here",
                f"Beside demonstrations of the query's own, {learner} learns more from matched "
                "fixed ones than from random fixed ones",
                f"the error over that with a random fixed part, {half} of {config.n} fixed, "
                "geometric mean of the kinds",
                at_most=config.part,
            ),
            Statement(
                f"{tag(learner)}_share",
                "derived here",
                f"Where clusters have tasks of their own, more of the best prompt of {learner} is "
                "the query's own",
                "the best share per query with tasks of their own less that with one task",
                at_least=config.moves,
                redrawn=fresh,
            ),
        ]
    return tuple(rows)
