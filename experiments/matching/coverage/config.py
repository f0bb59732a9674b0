"""The pools, rules, sizes and statements of `coverage`."""

from dataclasses import dataclass
from functools import partial

from lsa_lab.claims import Statement
from lsa_lab.harness import checks

KINDS = {  # of the labels: PoolTask's own words
    "one task": {},
    "a task each": {"num_weights": "cluster"},
    "a class each": {"labels": "cluster", "noise_std": 0.0},
}
CLASSES = "a class each"  # labels that the proxy learns by the logistic loss, as ±1
TAGS = dict(zip(KINDS, ("one_task", "own_tasks", "classes"), strict=True))  # in names of statements
# Gradients of w·x, of w·x + c, and of that without those at w = 0, c = 0, before training.
PROXIES = ("matching", "matching, intercept", "intercept, later")
WHITE = "matching, whitened"  # gradients of w·x
RULES = (*PROXIES, "moments", "k-means", "determinantal", WHITE, "random", "stratified")
SHARES = ("shares", "shares_intercept", "shares_later")  # of the proxies, in names of statements
GROUPS = ("majority", "minority")


@dataclass(frozen=True)
class Config:
    """Subsets of pools with clusters 3:1: their shares, and the errors of either group.

    A quarter, and 32 demonstrations at least, leave the shares of a subset many values.
    """

    d: int = 8
    m: int = 512
    minority: float = 0.25  # share of the second cluster
    separation: float = 2.0  # distance of each cluster's centre from 0
    noise_std: float = 0.5  # of a task's labels; classes have none
    sizes: tuple[int, ...] = (32, 64, 128)  # A3's table 6 has 128
    depth: int = 16  # of the stack that answers: steps of gradient descent
    step: float = 0.15  # size of a step of that descent
    epochs: int = 10  # of the proxies' training
    batch: int = 64  # examples of the pool in a training step
    learning_rate: float = 0.1  # of the linear proxies
    saves: int = 10  # checkpoints of each training, at which gradients are matched
    random_draws: int = 20  # random subsets, to compare with
    queries: int = 128  # of each group
    runs: int = 24
    seed: int = 1
    # Criteria; errors of random and of stratified subsets are the mean of the draws.
    shares: float = 0.5  # KL of matching over that expected of random subsets
    minority_error: float = 1.1  # of matching over random, at the worst size: no worse
    no_worse: float = 1.0  # error of whitened matching over that of plain matching
    strata: float = 1.1  # error of stratified subsets over that of matching: as good
    favours: float = 1.0  # gain of the majority over gain of the minority, at the size with least

    def __post_init__(self):
        checks.kinds(self)
        checks.between(self, "d", 1, 64)
        checks.between(self, "m", 2, None)
        checks.between(self, "minority", 0.01, 0.5)
        checks.between(self, "separation", 0, 10)
        checks.each_between(self, "sizes", 1, self.m)
        for name in ("depth", "epochs", "batch", "saves", "queries"):
            checks.between(self, name, 1, None)
        for name in ("random_draws", "runs"):
            checks.between(self, name, 2, None)
        for name in ("noise_std", "step", "learning_rate"):
            checks.positive(self, name)
        for name in ("shares", "minority_error", "no_worse", "strata", "favours"):
            checks.positive(self, name)
        checks.seed(self, "seed")


TIERS = {
    "smoke": Config(d=2, m=40, sizes=(12,), depth=2, saves=2, random_draws=4, queries=8, runs=2),
    "laptop": Config(),
    "paper": Config(d=16, m=2048, sizes=(32, 64, 128, 256), queries=512, runs=64),
}


def shares(config) -> tuple[float, float]:
    """The groups' shares of a pool."""
    return 1 - config.minority, config.minority


def count_proxies(kind: str) -> int:
    """How many of the proxies are judged by the shares that they keep."""
    return 3 if kind == CLASSES else 2


def statements(config) -> tuple[Statement, ...]:
    fresh, later = f"{config.runs} fresh runs, 16 before", "added after a look at these runs"
    mean = "a mean; it was a median of few values"
    start = "before training its gradient is the share"
    paper, most = "A3 (2506.04579)", max(config.sizes)
    bias, rows = f"{paper}, limitations, open question", []
    for kind, tag in TAGS.items():
        table = f"modelled on {paper}, table 6"
        where, changed = (
            "at the size that is worst for the other runs",
            "pools and sizes were others",
        )
        place = "" if kind == CLASSES else "; the worst size was that of the judged runs"
        if kind == CLASSES:
            table, where = f"{paper}, table 6, in our setting", f"n = {most}"
            changed += "; the logistic loss; it was the squared one"
        median = partial(Statement, statistic="median", revision=changed, redrawn=fresh)
        rows += [
            Statement(
                f"{tag}_{name}",
                table,
                "Matching keeps the clusters' shares twice as well as random subsets "
                f"({kind}{more})",
                f"the KL over its expectation for random subsets, {where}",
                at_most=config.shares,
                note=note if kind == CLASSES else "",
                revision=revision,
                redrawn="" if revision == later else fresh,
            )
            for name, more, note, revision in (
                ("shares", "", "", f"{mean}; {changed}{place}"),
                ("shares_intercept", ", with intercept", start, f"added{place}"),
                ("shares_later", ", with intercept, its start left out", "", later),
            )
            if name in SHARES[: count_proxies(kind)]
        ]
        rows += [
            median(
                f"{tag}_minority",
                bias,
                f"Matching teaches the minority no worse than random subsets do ({kind})",
                "the error of the minority over that of random subsets, at the worst size",
                at_most=config.minority_error,
                revision=f"bound {config.minority_error:g}, no worse; it was 1; {changed}",
            ),
            median(
                f"{tag}_favours",
                bias,
                f"What matching gains goes to the majority more than to the minority ({kind})",
                "the minority's relative error over the majority's, at the size where it is least",
                at_least=config.favours,
            ),
            median(
                f"{tag}_strata",
                f"modelled on {paper}, section 4.10",
                f"Stratified random subsets teach as well as matched ones ({kind})",
                "the error, groups weighed as in pools, over that of matching, at the worst size",
                at_most=config.strata,
            ),
        ]
        rows += whitened(config, kind, tag, where)
    return tuple(rows)


def whitened(config, kind: str, tag: str, where: str) -> list[Statement]:
    """Rows on whitened gradients, which were added before any run had them."""
    row = partial(Statement, revision="added, with the rule, to runs that others had judged")
    return [
        row(
            f"{tag}_shares_whitened",
            "modelled on A3 (2506.04579), table 6",
            "Whitened matching keeps the clusters' shares twice as well as random subsets "
            f"({kind}, without intercept)",
            f"the KL over its expectation for random subsets, {where}",
            at_most=config.shares,
        ),
        row(
            f"{tag}_whitened",
            "modelled on A3 (2506.04579), its method",
            f"Whitened gradients choose no worse than plain ones ({kind})",
            "the error, groups weighed as in pools, over that of matching, at the worst size",
            statistic="median",
            at_most=config.no_worse,
        ),
    ]
