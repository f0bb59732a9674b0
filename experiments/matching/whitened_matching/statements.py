"""The rules and the pools of `whitened_matching`, and what it judges by its Config's criteria."""

from dataclasses import dataclass
from functools import partial

from experiments.matching.learners import tag
from lsa_lab.claims import Statement

MATCHING = ("matching, whitened", "matching", "matching, scaled")
RIVALS = ("k-means", "determinantal", "random", "stratified")  # of the last two several subsets
RULES = (*MATCHING, *RIVALS)
FEW = (*MATCHING, "random")  # where the other rivals are left out


@dataclass(frozen=True)
class Case:
    """A pool that is unlike the usual one in some respect: words of ``PoolTask``."""

    spectrum: tuple[float, float] = (0.4, 2.0)  # ends of the covariates' variances
    queried: tuple[float, float] | None = None  # of the queries', where they are others
    noise_std: float = 0.5  # of the labels
    words: tuple[tuple[str, object], ...] = ()


CLUSTERS = (("shares", (0.75, 0.25)), ("separation", 2.0))
CASES = {
    "usual": Case(),
    "noisy labels": Case(noise_std=2.0),
    "wrong labels": Case(words=(("flips", 0.2),)),
    "heavy tails": Case(words=(("tail", 3.0),)),
    "nearly singular": Case(spectrum=(1e-4, 2.0)),
    "shifted queries": Case(spectrum=(0.1, 2.0), queried=(2.0, 0.1)),
    "two tasks": Case(words=(("num_weights", 2),)),
    "a task each": Case(words=(*CLUSTERS, ("num_weights", "cluster"))),
    "two classes": Case(noise_std=0.0, words=(*CLUSTERS, ("labels", "cluster"))),
    "signs": Case(noise_std=0.0, words=(("labels", "sign"),)),
}


def statements(config) -> tuple[Statement, ...]:
    fresh = f"{config.runs} fresh runs, 16 before"
    median = partial(Statement, source="derived here", statistic="median", redrawn=fresh)
    method = partial(median, source="modelled on A3 (2506.04579), its method")
    deepest = max(config.depths)
    gap, error = f"the gap of {config.depth} layers", f"the error of {deepest} layers"
    over_plain, worst = (
        "over that after plain matching",
        "at the d that is worst for the other runs",
    )
    added = "added after a look at other runs"
    knees = [
        median(
            f"knee_{name}",
            says=f"{label} matching has a knee at d + 1 checkpoints",
            measured=f"{gap} with d + 1 checkpoints over that with d,",
            at_most=config.knee,
        )
        for name, label in (("whitened", "Whitened"), ("plain", "Plain"))
    ]
    cases = [
        median(
            f"case_{tag(case)}",
            says=f"Whitened matching teaches no worse than plain matching: {case}",
            measured=f"{error} {over_plain}",
            at_most=config.no_worse,
        )
        for case in CASES
    ]
    rivals = [
        median(
            f"over_{tag(rival)}",
            says=f"Whitened matching comes nearer to the pool than {rival} subsets, at any d",
            measured=f"{gap} over that after {rival} ones, {worst}",
            at_most=config.nearer,
        )
        for rival in RIVALS
    ]
    return (
        *knees,
        method(
            "nearer",
            says="Whitened matching comes nearer to the pool than plain matching, "
            "as far as demonstrations outnumber directions",
            measured=f"{gap} {over_plain}, {worst}",
            at_most=config.nearer,
        ),
        method(
            "nearer_on_average",
            says="The same on average over d",
            measured=f"{gap} {over_plain}, geometric mean over d",
            at_most=config.nearer,
            revision=added,
        ),
        method(
            "nearer_deep",
            says="The same for a deep descent",
            measured=f"the gap of {deepest} layers {over_plain}, {worst}",
            at_most=config.nearer,
        ),
        method(
            "nearer_shallow",
            says="The same for a single layer",
            measured=f"the gap of one layer {over_plain}, {worst}",
            at_most=config.not_farther,
        ),
        method(
            "beyond",
            says="With more directions than demonstrations it comes no less near",
            measured=f"{gap} {over_plain}, d = {max(config.dims)}",
            at_most=config.not_farther,
        ),
        method(
            "few",
            says="With fewer demonstrations than directions it comes no less near",
            measured=f"{gap} {over_plain}, at the worst n of the other runs",
            at_most=config.not_farther,
        ),
        median(
            "scaled",
            says="It is not the units of each entry: whitening is more than scaling",
            measured=f"{gap} over that after matching of gradients whose entries have one size, "
            f"{worst}",
            at_most=config.nearer,
        ),
        median(
            "scaled_deep",
            says="Whitening is no worse than scaling for a deep descent",
            measured=f"the gap of {deepest} layers over that after matching of scaled gradients, "
            "geometric mean over d",
            at_most=config.not_farther,
            revision=added,
        ),
        *rivals,
        *cases,
        median(
            "bound",
            says="The bound on the gap of the deep descent is less than ten times the gap",
            measured="the bound over the distance of the learned weights",
            at_most=config.bound,
        ),
        median(
            "ranks",
            says="The whitened objective tells near subsets from far ones better than the plain "
            "one",
            measured="Spearman's correlation of objective and gap over random subsets, less that "
            "of the plain objective,",
            at_least=0.0,
        ),
    )
