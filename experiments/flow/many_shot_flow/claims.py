"""What `many_shot_flow` judges.

The null of what depth does is the Bayes rule's flows on the same prompts: a model that answers as
it does has its flows in the end, whatever they were in its first layer.
"""

from functools import partial

from experiments.flow.many_shot_flow.config import ALONE, KINDS, LEARNERS, NAMES
from lsa_lab.judging.statements import Statement, grid
from lsa_lab.store import parts

GROWTH = 1.1  # a ratio over another of at least this is amplification
PAPER, OWN = "A1 (2508.00385)", "derived here"
THIRD = f"{PAPER}, open question on many demonstrations"
SPREAD = "the median |log ratio| of two flows, over pairs and prompts,"
ADDED = "added: the null of all rows on growth with depth in trained models"


class Flows:
    """A result's flows among unrelated demonstrations, after all layers with duplicates, and beside
    those of the Bayes rule."""

    def __init__(self, dataset):
        self.null, dataset = parts.part(dataset, "null"), dataset.transpose("run", ...)
        self.spread = dataset.spread.sel(correlation=0)
        self.duplicated = dataset.isel(layer=-1, correlation=-1)

    def depth(self, kind):  # -> [R]
        """The disparity at the last layer over that at the first."""
        spread = self.spread.sel(kind=kind)
        return (spread.isel(layer=-1) / spread.isel(layer=0)).values

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
    return (*_stack_statements(config), *_null_statements(config))


def _stack_statements(config):
    place = f"at c = {config.correlations[-1]:g}, n = {config.count},"
    median = partial(
        Statement,
        statistic="median",
        revision="{revision}",
        redrawn=f"{config.runs} fresh runs, 8 before",
        words=lambda kind: dict(revision="added" if kind == "short steps" else ""),
    )
    return (
        median(
            "depth",
            f"{PAPER}, Theorem 1 and open question on many demonstrations",
            "Depth amplifies the disparity of many demonstrations in a stack of the kind {kind}",
            f"{SPREAD} at the last layer over that at the first, n = {config.most},",
            at_least=GROWTH,
            note="linear and softmax are trained briefly; what least squares do is in "
            "ends_at_least_squares",
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
            "Two flows of many end no more unequal than those of least squares in a stack of the "
            "kind {kind}",
            f"{SPREAD} at the last layer over that of least squares on the same prompts, "
            f"n = {config.most},",
            at_most=GROWTH,
            revision=ADDED,
            redrawn=f"{config.null.own_prompts} fresh prompts of each run",
            sample=lambda r, kind: r.compare_bayes("disparity", kind),
            cells=grid(
                "descent_ends_at_least_squares short_steps_ends_at_least_squares "
                "linear_untrained_ends_at_least_squares linear_ends_at_least_squares "
                "softmax_untrained_ends_at_least_squares softmax_ends_at_least_squares",
                kind=KINDS,
            ),
            message="Two flows of many end no more unequal than those of least squares in descent "
            "and in attention, trained or not",
        ),
        median(
            "explained_away",
            OWN,
            "The flow of a demonstration is lower beside its near-duplicate in a stack of the kind "
            "{kind}",
            "the median over prompts of the log ratio to the flow beside an unrelated one, "
            f"{place}",
            at_most=0,
            note="linear and softmax are trained briefly",
            sample=lambda r, kind: r.duplicated.away.sel(kind=kind).values,
            cells=grid(
                "explained_away_descent explained_away_short_steps explained_away_linear "
                "explained_away_softmax",
                kind=LEARNERS,
            ),
            message="The flow of a demonstration is lower beside its near-duplicate in all that "
            "learns",
        ),
        median(
            "redundancy",
            THIRD,
            "Where all have near-duplicates, flow per demonstration is lower in a stack of the "
            "kind {kind}",
            f"the median over prompts of the log ratio to the mean flow without, {place}",
            at_most=0,
            note="linear and softmax are trained briefly",
            sample=lambda r, kind: r.duplicated.redundancy.sel(kind=kind).values,
            cells=grid(
                "redundancy_descent redundancy_short_steps redundancy_linear redundancy_softmax",
                kind=LEARNERS,
            ),
            message="Where all have near-duplicates, flow per demonstration is lower in all that "
            "learns",
        ),
    )


def _null_statements(config):
    near = partial(
        Statement,
        source=f"{PAPER}, figures on depth, our reading, in our setting",
        statistic="median",
        revision=ADDED,
        redrawn=f"{config.null.prompts} fresh prompts of each of nine committed models",
    )
    return (
        near(
            "ends_at_bayes",
            says="In {model} near ridge regression two flows end as unequal as the Bayes rule's",
            measured=f"{SPREAD} at the last layer over that of the Bayes rule on the same prompts,",
            at_least=1 / GROWTH,
            at_most=GROWTH,
            note="alone: prompts of one demonstration, which are not like those in training",
            sample=lambda r, model: r.compare_bayes("disparity", model),
            cells=grid(
                "linear_alone_ends_at_bayes linear_ends_at_bayes softmax_ends_at_bayes "
                "transformer_ends_at_bayes",
                model=(ALONE, *NAMES),
            ),
            message="In models near ridge regression two flows end as unequal as the Bayes rule's",
        ),
        near(
            "lead_ends_at_bayes",
            says="In {model} near ridge regression the lead of the demonstration ahead after one "
            "layer ends as wide as the Bayes rule has it",
            measured="the median log ratio, the flow that is larger after one layer on top, at the "
            "last layer less that of the Bayes rule on the same prompts,",
            margin=0.1,
            sample=lambda r, model: r.compare_bayes("lead", model),
            cells=grid(
                "linear_lead_ends_at_bayes softmax_lead_ends_at_bayes "
                "transformer_lead_ends_at_bayes",
                model=NAMES,
            ),
            message="In models near ridge regression the lead of the demonstration ahead after one "
            "layer ends as wide as the Bayes rule has it",
        ),
        near(
            "listens_as_bayes",
            says="In {model} near ridge regression the last layer listens to the demonstrations "
            "that the Bayes rule does",
            measured="the mean over prompts of the correlation of the last layer's log flows with "
            "those of the Bayes rule",
            at_least=0.9,
            sample=lambda r, model: r.compare_bayes("agreement", model),
            cells=grid(
                "linear_listens_as_bayes softmax_listens_as_bayes transformer_listens_as_bayes",
                model=NAMES,
            ),
            message="In models near ridge regression the last layer listens to the demonstrations "
            "that the Bayes rule does",
        ),
    )
