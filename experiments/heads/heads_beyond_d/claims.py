"""What `heads_beyond_d` judges: ratios of mean excess risks, seed by seed, on the same prompts.

It was fixed before a look at any of its weights. Known before: a trial of (8,1,1) and (8,8,8), one
seed of 60 000 steps, with .90 and .59 of ridge's risk at n = 16; and the losses at which two of
these runs ended. For time, test prompts went from 8192 to 2048, and from 65 536 to 4096 in the
paper tier, before there was a first result.
"""

from functools import cached_property

import numpy as np

from experiments.heads.heads_beyond_d.config import FIRST, FULL, SINGLE, counts, kind_of
from experiments.heads.rule_names import LASSO, RIDGE, SPARSE_BAYES
from experiments.models.specs import restored
from lsa_lab.judging.statements import Statement, grid
from lsa_lab.judging.statistics import worst
from lsa_lab.store import results

A4 = "A4 (2408.04532)"
NEEDED = f"modelled on {A4}, heads needed"
ON_LASSO = f"modelled on {A4}, its comparison with the Lasso"
KINDS = {  # of rows with more heads than one
    FIRST: dict(
        where="in the first layer",
        short="in layer 1",
        whose="Many heads in layer 1 and one in each later layer",
        looked="",
        lasso="With d heads in layer 1 a model comes near the Lasso",
    ),
    FULL: dict(
        where="in every layer",
        short="in every layer",
        whose="Many heads in every layer",
        looked="over seeds, on common prompts; three seeds on four other samples had .90 to .94",
        lasso="With d heads in every layer it does",
    ),
}


def numbers(dataset) -> "Risks":
    return Risks(dataset)


class Risks:
    """The risks of a result by the heads of its models, and ratios of them."""

    def __init__(self, dataset):
        self.dataset, self.config = dataset, results.config_of(dataset)
        self.place = list(self.config.shots).index(self.config.judged)
        self.d = counts(self.config)[FULL][1]
        self.lengths = restored(self.config.models[0][1]).task.lengths

    @cached_property
    def names(self) -> dict[tuple[str, int], str]:
        """The model of each kind and number of heads."""
        return {kind_of(restored(spec)): name for name, spec in self.config.models}

    def risks_with(self, kind: str, heads: int) -> np.ndarray:  # [S, shots]
        name = self.names[SINGLE if heads == 1 else kind, heads]
        return self.dataset[f"risk, {name}"].values

    def around_d(self, kind: str) -> list[np.ndarray]:  # three [S]
        """The risks with the numbers of heads next below d, d and next above."""
        numbers = counts(self.config)[kind]
        return paired(*(self.risks_with(kind, heads)[:, self.place] for heads in numbers))

    def kink(self, kind: str) -> np.ndarray:  # [S]
        fewer, d, more = counts(self.config)[kind]
        low, middle, high = self.around_d(kind)
        below, above = np.log(low / middle), np.log(middle / high)
        return below / np.log(d / fewer) - above / np.log(more / d)

    def first_over_full(self) -> np.ndarray:  # [S]
        risks = (self.risks_with(kind, self.d)[:, self.place] for kind in (FIRST, FULL))
        return np.divide(*paired(*risks))

    def over_rule(self, kind: str, rule: str) -> np.ndarray:  # [S, shots]
        """The risks with d heads over those of a rule."""
        risks = self.risks_with(kind, self.d)
        finite = risks[np.isfinite(risks).all(1)]
        return finite / self.dataset.rule_risk.sel(rule=rule).values

    def over_ridge(self, kind: str, longer: bool = False) -> np.ndarray:  # [S]
        """The same at the n of the training, or at those beyond, where it is most."""
        shots = np.array(self.config.shots)
        kept = shots > max(self.lengths) if longer else np.isin(shots, self.lengths)
        return worst(self.over_rule(kind, RIDGE)[:, kept], np.mean)

    def falls(self) -> np.ndarray:  # [S]
        """The loss in the last sixth of the training over that in the sixth before."""
        losses = self.dataset[f"loss, {self.names[FULL, self.d]}"].values
        sixth = max(losses.shape[-1] // 6, 1)
        ratios = losses[:, -sixth:].mean(1) / losses[:, -2 * sixth : -sixth].mean(1)
        return ratios[np.isfinite(ratios)]


def paired(*rows) -> list[np.ndarray]:
    """Rows [S] at the seeds that all have and that none diverged in."""
    count = min(map(len, rows))
    both = np.isfinite([row[:count] for row in rows]).all(0)
    return [row[:count][both] for row in rows]


def statements(config) -> tuple[Statement, ...]:
    seeds = min(restored(spec).training.seeds for _, spec in config.models)
    row = dict(statistic="ratio", over=f"{seeds} seeds")
    return (*_about_heads(config, row), *_about_rules(config, row))


def _about_heads(config, row):
    at = f"at n = {config.judged}"

    def words(kind):
        fewer, d, more = counts(config)[kind]
        return KINDS[kind] | dict(fewer=fewer, d=d, more=more)

    yield Statement(
        "up_to_d",
        f"{A4}, figure 1b, in our setting",
        "As many heads as covariates do better {where} than {fewer}",
        f"the risk with {{d}} heads over that with {{fewer}} {at}",
        at_most=0.9,
        label="{d} heads {short} / {fewer}",
        sample=lambda r, kind: np.divide(*r.around_d(kind)[1::-1]),
        cells=grid("up_to_d_first up_to_d_full", kind=KINDS),
        words=words,
        message="As many heads as covariates do better than fewer, in the first layer and "
        "in every layer",
        **row,
    )
    yield Statement(
        "beyond_d",
        NEEDED,
        "More heads than covariates gain nothing {where}",
        f"the risk with {{more}} heads over that with {{d}} {at}",
        margin=0.1,
        note="{looked}",
        label="{more} heads {short} / {d}",
        sample=lambda r, kind: np.divide(*r.around_d(kind)[:0:-1]),
        cells=grid("beyond_d_first beyond_d_full", kind=KINDS),
        words=words,
        message="More heads than covariates gain nothing, in the first layer and in every layer",
        **row,
    )
    yield Statement(
        "kink",
        NEEDED,
        "A head more gains more below d than above {where}",
        "log risk saved from {fewer} to {d} heads less that from {d} to {more}, each over the log "
        f"of the ratio of heads, {at}",
        at_least=0.0,
        label="{short}",
        sample=lambda r, kind: r.kink(kind),
        cells=grid("kink_first kink_full", kind=KINDS),
        words=words,
        message="A head more gains more below d than above, in the first layer and in every layer",
        **row | {"statistic": "mean"},
    )
    yield Statement(
        "first_suffices",
        f"{A4}, its mechanism, our reading, in our setting",
        "One head in each later layer is enough",
        f"the risk with d heads in the first layer alone over that with d in all {at}",
        at_most=1.1,
        label=f"{counts(config)[FULL][1]} in layer 1 / in every layer",
        sample=Risks.first_over_full,
        **row,
    )


def _about_rules(config, row):
    at, d = f"at n = {config.judged}", counts(config)[FULL][1]
    lengths = restored(config.models[0][1]).task.lengths
    listed = ", ".join(str(n) for n in config.shots if n in lengths)
    yield Statement(
        "ridge",
        f"{A4}, abstract, in our setting",
        "{whose} beat ridge at every n of the training",
        f"risk over ridge's, at the n of {listed} where it is most,",
        at_most=1.0,
        label=f"{d} {{short}} / ridge",
        sample=lambda r, kind: r.over_ridge(kind),
        cells=grid("first_ridge full_ridge", kind=KINDS),
        words=lambda kind: KINDS[kind],
        message="Many heads, in layer 1 alone and in every layer, beat ridge at every n of the "
        "training",
        **row,
    )
    yield Statement(
        "lasso",
        ON_LASSO,
        "{lasso}",
        f"risk over that of the Lasso {at}",
        at_most=1.25,
        label=f"{d} {{short}} / Lasso",
        sample=lambda r, kind: r.over_rule(kind, LASSO)[:, r.place],
        cells=grid("first_lasso full_lasso", kind=KINDS),
        words=lambda kind: KINDS[kind],
        message="With d heads, in layer 1 alone and in every layer, a model comes near the Lasso",
        **row,
    )
    yield Statement(
        "full_bayes",
        ON_LASSO,
        "It comes near the sparse Bayes rule",
        f"risk over that of the {SPARSE_BAYES} {at}",
        at_most=1.5,
        label=f"{d} in every layer / sparse Bayes",
        sample=lambda r: r.over_rule(FULL, SPARSE_BAYES)[:, r.place],
        **row,
    )
    yield Statement(
        "longer",
        f"modelled on {A4}, figure 1b",
        "With d heads in every layer a model beats ridge on prompts longer than in training, too",
        f"risk over ridge's, at the n above {max(lengths)} where it is most,",
        at_most=1.0,
        label="the same, longer prompts",
        sample=lambda r: r.over_ridge(FULL, longer=True),
        **row,
    )
    yield Statement(
        "level",
        "a check of this experiment",
        "The loss of the model with d heads in every layer has stopped falling",
        "the loss in the last sixth of the training over that in the sixth before",
        at_least=0.98,
        label="loss, last sixth / before",
        sample=Risks.falls,
        **row,
    )
