"""What `many_shot_flow` judges.

The null of what depth does is the Bayes rule's flows on the same prompts: a model that answers as
it does has its flows in the end, whatever they were in its first layer.
"""

from functools import partial

from experiments.flow.many_shot_flow.config import ALONE, KINDS, LEARNERS, NAMES
from lsa_lab.judging.statements import Statement, grid
from lsa_lab.store import parts

GROWTH = 1.1  # a ratio over another of at least this is amplification
CLEAR = 0.1  # a change of a log ratio of at least this is amplification
ALIKE = 0.9  # a correlation of log flows from which on two rules listen to the same demonstrations
PAPER, OWN = "A1 (2508.00385)", "derived here"
THIRD = f"{PAPER}, open question on many demonstrations"
DEPTH = f"{PAPER}, figures on depth, our reading, in our setting"
LARGER = "the median log ratio, the flow that is larger after one layer on top,"
SPREAD = "the median |log ratio| of two flows, over pairs and prompts,"
STACKS = {
    "descent": "descent",
    "short steps": "descent with short steps",
    "linear, untrained": "untrained linear attention",
    "linear": "briefly trained linear attention",
    "softmax, untrained": "untrained softmax attention",
    "softmax": "briefly trained softmax attention",
}
TRAINED = (ALONE, *NAMES)
POST_HOC = "added after a look: the null of all rows on growth with depth in trained models"


def growth(flows):  # -> the same without layers
    """A measure at the last layer over that at the first."""
    return flows.isel(layer=-1) / flows.isel(layer=0)


class Flows:
    """A result's flows among unrelated demonstrations, after all layers with duplicates, and beside
    those of the Bayes rule."""

    def __init__(self, dataset):
        self.null, dataset = parts.part(dataset, "null"), dataset.transpose("run", ...)
        self.spread = dataset.spread.sel(correlation=0)
        self.duplicated = dataset.isel(layer=-1, correlation=-1)

    def depth(self, kind):  # -> [R]
        return growth(self.spread).sel(kind=kind).values

    def compare_bayes(self, name, which):  # -> [R], or None: a smaller tier lacks some models
        """The last layer's disparity over the Bayes rule's, its lead less the Bayes rule's, or the
        correlation of its log flows with the Bayes rule's."""
        stage = "own" if which in KINDS else "trained"
        if which not in self.null[stage].values:
            return None
        values = self.null[f"{stage}_{name}"].sel({stage: which})
        *_, ours, last = values.transpose(..., f"{stage}_run").values
        return {"disparity": ours / last, "lead": ours - last, "agreement": last}[name]


numbers = Flows


def statements(config) -> tuple[Statement, ...]:
    return (*_depth_statements(config), *_null_statements(config), *_duplicate_statements(config))


def _words(kind) -> dict[str, str]:
    return dict(
        where=STACKS[kind], revision="added, with this stack" if kind == "short steps" else ""
    )


def _depth_statements(config):
    least = "Two flows of many end no more unequal than those of least squares in"
    end = f"{SPREAD} at the last layer over that"
    median = partial(Statement, statistic="median", words=_words)
    return (
        median(
            "depth",
            f"{PAPER}, Theorem 1 and open question on many demonstrations",
            "Depth amplifies the disparity of many demonstrations in {where}",
            f"{end} at the first, n = {config.most},",
            at_least=GROWTH,
            note="what least squares do is in ends_at_least_squares",
            revision="{revision}",
            redrawn=f"{config.runs} fresh runs, 8 before",
            sample=Flows.depth,
            cells=grid(
                "depth_descent depth_short_steps depth_linear_untrained depth_linear "
                "depth_softmax_untrained depth_softmax",
                kind=KINDS,
            ),
            message="Depth amplifies the disparity of many demonstrations in descent and in "
            "attention, trained or not",
        ),
        median(
            "ends_at_least_squares",
            THIRD,
            f"{least} {{where}}",
            f"{end} of least squares on the same prompts, n = {config.most},",
            at_most=GROWTH,
            revision=POST_HOC,
            redrawn=f"{config.null.own_prompts} fresh prompts of each run",
            sample=lambda r, kind: r.compare_bayes("disparity", kind),
            cells=grid(
                "descent_ends_at_least_squares short_steps_ends_at_least_squares "
                "linear_untrained_ends_at_least_squares linear_ends_at_least_squares "
                "softmax_untrained_ends_at_least_squares softmax_ends_at_least_squares",
                kind=KINDS,
            ),
            message=f"{least} descent and in attention, trained or not",
        ),
    )


def _null_statements(config):
    end = "at the last layer"
    fresh = f"{config.null.prompts} fresh prompts of each of nine committed models"
    median = partial(Statement, statistic="median", revision=POST_HOC, redrawn=fresh)
    near = "trained to the risk of ridge"

    def family(id, says, measured, ids, models, **rest):
        return median(
            id,
            DEPTH,
            f"In {{model}} that is {near}, {says}",
            measured,
            cells=grid(ids, model=models),
            message=f"In models that are {near}, {says}",
            **rest,
        )

    ahead = "the lead of the demonstration ahead after one layer"
    return (
        family(
            "ends_at_bayes",
            "two flows end as unequal as the Bayes rule's, not more",
            f"{SPREAD} {end} over that of the Bayes rule on the same prompts,",
            "linear_alone_ends_at_bayes linear_ends_at_bayes softmax_ends_at_bayes "
            "transformer_ends_at_bayes",
            TRAINED,
            at_least=1 / GROWTH,
            at_most=GROWTH,
            note="alone: prompts of one demonstration, which are not like those in training",
            sample=lambda r, model: r.compare_bayes("disparity", model),
        ),
        family(
            "lead_ends_at_bayes",
            f"{ahead} ends as wide as the Bayes rule has it",
            f"{LARGER} {end} less that of the Bayes rule on the same prompts,",
            "linear_lead_ends_at_bayes softmax_lead_ends_at_bayes transformer_lead_ends_at_bayes",
            NAMES,
            margin=CLEAR,
            sample=lambda r, model: r.compare_bayes("lead", model),
        ),
        family(
            "listens_as_bayes",
            "the last layer listens to the demonstrations that the Bayes rule does",
            "the mean over prompts of the correlation of the last layer's log flows with those of "
            "the Bayes rule",
            "linear_listens_as_bayes softmax_listens_as_bayes transformer_listens_as_bayes",
            NAMES,
            at_least=ALIKE,
            sample=lambda r, model: r.compare_bayes("agreement", model),
        ),
    )


def _duplicate_statements(config):
    place = f"at c = {config.correlations[-1]:g}, n = {config.count},"
    log_ratio = "the median over prompts of the log ratio to the"
    learners = "in all that learns"
    lower = partial(
        Statement,
        statistic="median",
        at_most=0,
        revision="{revision}",
        redrawn=f"{config.runs} fresh runs, 8 before",
        words=_words,
    )
    return (
        lower(
            "explained_away",
            OWN,
            "The flow of a demonstration is lower beside its near-duplicate in {where}",
            f"{log_ratio} flow beside an unrelated one, {place}",
            sample=lambda r, kind: r.duplicated.away.sel(kind=kind).values,
            cells=grid(
                "explained_away_descent explained_away_short_steps explained_away_linear "
                "explained_away_softmax",
                kind=LEARNERS,
            ),
            message=f"The flow of a demonstration is lower beside its near-duplicate {learners}",
        ),
        lower(
            "redundancy",
            THIRD,
            "Where all have near-duplicates, flow per demonstration is lower in {where}",
            f"{log_ratio} mean flow without, {place}",
            sample=lambda r, kind: r.duplicated.redundancy.sel(kind=kind).values,
            cells=grid(
                "redundancy_descent redundancy_short_steps redundancy_linear redundancy_softmax",
                kind=LEARNERS,
            ),
            message=f"Where all have near-duplicates, flow per demonstration is lower {learners}",
        ),
    )
