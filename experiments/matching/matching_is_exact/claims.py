"""What `matching_is_exact` judges: gaps between the answers after a twin or a subset and its pool.

None for what is exact, a theorem (docs/theory, "Matched gradients predict alike").
"""

from functools import partial

from lsa_lab.judging.statements import Statement, grid
from lsa_lab.store import parts, results

A3 = "modelled on A3 (2506.04579), its method"
CLEAN = "softmax is trained on prompts without noise; the pools have noise"
NEARER = 0.9  # a gap of at most this share of another is nearer
EFFECT = "its bound, .9, was set upon the effect and left it undecided"
WITH_THE_RULE = "added, with the rule, to runs that other rows had judged"
LESSER = "random and trained weights had one row, the lesser gap, and four runs shared weights"
TRIAL = "added: in a trial scaling alone gave a part of the gain over plain matching"


class Gaps:
    """The gaps of a result at d + 1 matched checkpoints, and those of subsets."""

    def __init__(self, dataset):
        self.config = results.config_of(dataset)
        self.dataset = parts.part(dataset).transpose("pair", ...)
        self.subsets = parts.part(dataset, "subsets").transpose("run", ...)
        self.random = random_subsets(self.config, self.subsets.subset)

    def softmax(self, weights, matched=None):  # [pair]
        gap = self.dataset.softmax.sel(weights=weights)
        return gap.sel(matched=self.config.d + 1 if matched is None else matched)

    def chosen(self, gradients, learner="descent"):  # [run or pair]
        """The gap after the subset that these gradients choose."""
        if learner == "softmax":
            return self.dataset.softmax_subset.sel(weights="trained", gradients=gradients)
        if gradients == "plain":
            return self.subsets.subset[:, self.config.d]
        return self.subsets[gradients]

    def ratio(self, rival, learner):  # [R]
        """Gaps after whitened matching over those after another."""
        return (self.chosen("whitened", learner) / self.chosen(rival, learner)).values


numbers = Gaps


def random_subsets(config, values):  # [run, pick] -> [run]
    """The median random subset; those that match 1, 2, ... checkpoints come first."""
    return values[:, config.most :].median("pick")


def statements(config) -> tuple[Statement, ...]:
    later = config.runs > 64  # the paper tier, whose rows other runs of it judged before
    deep = f"the gap of {max(config.depths)} layers"
    median = partial(Statement, statistic="median")
    before = (96, 32, 16) if later else (16,)
    more = config.subsets.runs
    softmax = partial(median, redrawn=fresh(config.trained, *before))
    whitened = partial(median, revision=WITH_THE_RULE)
    since_the_rule = fresh(more, 192, 192, 64, 48) if later else fresh(more, 48)
    since_scaled = {
        "descent": fresh(more, 192, 96) if later else fresh(more, 48),
        "softmax": fresh(config.trained, 96) if later else "",
    }
    nearer = partial(
        softmax,
        source=A3,
        measured="the gap with matched moments over that without",
        revision="added",
    )
    return (
        softmax(
            "softmax_departs",
            "derived here",
            "Softmax departs with {weights} weights: equal moments are not enough",
            "the gap between a set with the pool's moments and the pool",
            at_least=0.02,
            note=CLEAN,
            revision=LESSER,
            sample=lambda g, weights: g.softmax(weights).values,
            cells=grid("softmax_random softmax_trained", weights=("random", "trained")),
            message="Softmax departs with random weights and with trained ones: equal moments are "
            "not enough",
        ),
        nearer(
            "softmax_trained_nearer",
            says="Softmax with trained weights is nearer to its pool after a set with the pool's "
            "moments than after one without",
            at_most=NEARER,
            note=CLEAN,
            sample=lambda g: (g.softmax("trained") / g.softmax("trained", 0)).values,
        ),
        nearer(
            "softmax_random_nearer",
            says="Softmax with random weights is nearer to its pool after a set with the pool's "
            "moments than after one without",
            unjudged=EFFECT,
            sample=lambda g: (g.softmax("random") / g.softmax("random", 0)).values,
        ),
        median(
            "subset",
            A3,
            "A subset chosen to match d + 1 checkpoints comes near to its pool",
            f"{deep} over that of the median random subset",
            at_most=0.3,
            redrawn=fresh(more, *((192, 192, 64, 16) if later else (48, 16))),
            sample=lambda g: (g.chosen("plain") / g.random).values,
        ),
        # Before the whitened rows of the paper tier are the laptop's 48 runs, 12 with softmax.
        whitened(
            "whitened_subset",
            A3,
            "A subset chosen by whitened gradients at d + 1 checkpoints comes near to its pool",
            f"{deep} over that of the median random subset",
            at_most=0.3,
            redrawn=since_the_rule,
            sample=lambda g: (g.chosen("whitened") / g.random).values,
        ),
        whitened(
            "whitened_nearer",
            A3,
            "A subset chosen by whitened gradients comes nearer to its pool than one chosen by "
            "plain gradients",
            f"{deep} over that after plain matching",
            at_most=NEARER,
            redrawn=since_the_rule,
            sample=lambda g: g.ratio("plain", "descent"),
        ),
        whitened(
            "whitened_softmax",
            A3,
            "Before softmax with trained weights, too, a subset chosen by whitened gradients comes "
            "nearer than one chosen by plain gradients",
            "the gap over that after plain matching",
            unjudged=EFFECT,
            note=CLEAN,
            redrawn=fresh(config.trained, 96, 32, 12) if later else "",
            sample=lambda g: g.ratio("plain", "softmax"),
        ),
        # A trial had 96 runs of an earlier paper tier, and none of the laptop tier's.
        median(
            "whitened_over_units",
            "derived here",
            "A subset that whitened gradients choose comes nearer than one that merely scaled "
            "gradients choose, before {learner}",
            f"the gap, of descent that of {max(config.depths)} layers, over that after matching of "
            "gradients whose entries have one size",
            at_most=NEARER,
            note=CLEAN,
            revision=TRIAL,
            redrawn="{fresh}",
            sample=lambda g, learner: g.ratio("scaled", learner),
            cells=grid("whitened_over_scaled whitened_over_scaled_softmax", learner=since_scaled),
            words=lambda learner: dict(fresh=since_scaled[learner]),
            message="A subset that whitened gradients choose comes nearer than one that merely "
            "scaled gradients choose, before descent and before softmax",
        ),
    )


def fresh(runs: int, *before: int) -> str:
    *most, last = map(str, before)
    return f"{runs} fresh runs, {', '.join(most) + ' and ' if most else ''}{last} before"
