"""What `many_shot_flow` judges."""

from experiments.flow.many_shot_flow.config import KINDS, LEARNERS
from lsa_lab.judging.statements import Statement, grid
from lsa_lab.judging.statistics import worst, worst_elsewhere
from lsa_lab.store import results

GROWTH = 1.1  # a ratio over another of at least this is amplification
PAPER, OWN = "A1 (2508.00385)", "derived here"
THIRD = f"{PAPER}, open question on many demonstrations"
SPREAD = "the median |log ratio| of two flows, over pairs and prompts,"
NAMES = {
    "descent": "descent",
    "short steps": "descent with short steps",
    "linear, untrained": "untrained linear attention",
    "linear": "trained linear attention",
    "softmax, untrained": "untrained softmax attention",
    "softmax": "trained softmax attention",
}
BRIEFLY = "trained briefly: the caption says how much of the error it leaves"


def growth(flows):  # -> the same without layers
    """A measure at the last layer over that at the first."""
    return flows.isel(layer=-1) / flows.isel(layer=0)


def numbers(dataset) -> "Flows":
    return Flows(dataset)


class Flows:
    """A result's flows among unrelated demonstrations, and after all layers with duplicates."""

    def __init__(self, dataset):
        dataset = dataset.transpose("run", ...)
        self.config, unrelated = results.config_of(dataset), dataset.sel(correlation=0)
        self.most, self.last = unrelated.isel(count=-1), unrelated.isel(layer=-1)
        self.duplicated = dataset.isel(layer=-1, correlation=-1)

    def depth(self, kind):  # -> [R]
        return growth(self.most.spread).sel(kind=kind).values

    def turning(self):  # -> [R]
        descent = self.most.sel(kind="descent")
        return (growth(descent.from_first) / growth(descent.from_last)).values

    def share(self):  # -> [R]
        shares = self.last.top_share.transpose("run", "kind", "count").values
        return worst((shares[..., 1:] / shares[..., :-1]).max(-1))

    def number(self, kind):  # -> [R]
        few = self.last.spread.sel(count=self.config.counts[1])
        return (self.most.spread.isel(layer=-1) / few).sel(kind=kind).values

    def gap(self):  # -> [R]
        apart = self.duplicated.duplicates - self.duplicated.others
        return worst_elsewhere(apart.sel(kind=list(LEARNERS)).transpose("run", "kind"))


def _words(kind) -> dict[str, str]:
    return dict(
        where=NAMES[kind],
        note=BRIEFLY if kind in ("linear", "softmax") else "",
        revision="added, with this stack" if kind == "short steps" else "",
    )


def statements(config) -> tuple[Statement, ...]:
    return (*_ratio_statements(config), *_duplicate_statements(config))


def _ratio_statements(config):
    few, many, fresh = config.counts[1], config.counts[-1], f"{config.runs} fresh runs, 8 before"
    of_kind = dict(note="{note}", revision="{revision}", redrawn=fresh, words=_words)
    return (
        Statement(
            "depth",
            f"{PAPER}, Theorem 1 and open question on many demonstrations",
            "Depth amplifies the disparity of many demonstrations in {where}",
            f"{SPREAD} at the last layer over that at the first, n = {many},",
            "median",
            at_least=GROWTH,
            label="depth: {kind}",
            sample=Flows.depth,
            cells=grid(
                "depth_descent depth_short_steps depth_linear_untrained depth_linear "
                "depth_softmax_untrained depth_softmax",
                kind=KINDS,
            ),
            message="Depth amplifies the disparity of many demonstrations in descent and in "
            "attention, trained or not",
            **of_kind,
        ),
        Statement(
            "turned",
            OWN,
            "Which layer turns the pairs decides whether their ratio falls or rises with depth",
            "the change over the layers of descent's log ratios, the larger flow at the first "
            "layer above, over the change with that at the last layer above, "
            f"n = {many},",
            "median",
            at_most=1 / GROWTH,
            note="a median of sizes is the largest of its signs: at most 1, whatever the layers do",
            redrawn=fresh,
            label="turned by first / last layer",
            sample=Flows.turning,
        ),
        Statement(
            "top_share",
            THIRD,
            "The share of the strongest demonstration falls with every further demonstration",
            "the largest ratio of that share to the share among the next fewer, at the worst "
            "stack,",
            "median",
            at_most=1,
            redrawn=fresh,
            label="largest share / among fewer",
            sample=Flows.share,
        ),
        Statement(
            "same_ratio",
            THIRD,
            f"Two demonstrations of {many} are as unequal as two of {few} in {{where}}",
            f"{SPREAD} over that among the fewer,",
            "median",
            at_least=1 / GROWTH,
            at_most=GROWTH,
            label="many / few: {kind}",
            sample=Flows.number,
            cells=grid("same_ratio_linear same_ratio_softmax", kind=("linear", "softmax")),
            message=f"Two demonstrations of {many} are as unequal as two of {few} in trained "
            "attention, linear or softmax",
            **of_kind,
        ),
    )


def _duplicate_statements(config):
    place = f"at c = {config.correlations[-1]:g}, n = {config.count},"
    log_ratio = "the median over prompts of the log ratio to the"
    fresh, learners = f"{config.runs} fresh runs, 8 before", "in all that learns"
    of_kind = dict(statistic="median", at_most=0, note="{note}", revision="{revision}")
    of_kind |= dict(redrawn=fresh, words=_words)
    return (
        Statement(
            "explained_away",
            OWN,
            "The flow of a demonstration is lower beside its near-duplicate in {where}",
            f"{log_ratio} flow beside an unrelated one, {place}",
            label="beside one: {kind}",
            sample=lambda r, kind: r.duplicated.away.sel(kind=kind).values,
            cells=grid(
                "explained_away_descent explained_away_short_steps explained_away_linear "
                "explained_away_softmax",
                kind=LEARNERS,
            ),
            message=f"The flow of a demonstration is lower beside its near-duplicate {learners}",
            **of_kind,
        ),
        Statement(
            "redundancy",
            THIRD,
            "Where all have near-duplicates, flow per demonstration is lower in {where}",
            f"{log_ratio} mean flow without, {place}",
            label="all double: {kind}",
            sample=lambda r, kind: r.duplicated.redundancy.sel(kind=kind).values,
            cells=grid(
                "redundancy_descent redundancy_short_steps redundancy_linear redundancy_softmax",
                kind=LEARNERS,
            ),
            message=f"Where all have near-duplicates, flow per demonstration is lower {learners}",
            **of_kind,
        ),
        Statement(
            "interactions",
            OWN,
            "Two near-duplicates do less together than apart in {where}",
            f"the median over prompts of their interaction, {place}",
            label="together: {kind}",
            sample=lambda r, kind: r.duplicated.duplicates.sel(kind=kind).values,
            cells=grid(
                "interactions_descent interactions_short_steps interactions_linear "
                "interactions_softmax",
                kind=LEARNERS,
            ),
            message=f"Two near-duplicates do less together than apart {learners}",
            **of_kind,
        ),
        Statement(
            "interactions_below_others",
            OWN,
            "Near-duplicates interact more negatively than other pairs of the same prompts",
            "the difference of the medians over prompts for that of the stacks that learn which "
            f"is worst for the other runs, {place}",
            "median",
            at_most=0,
            revision="the worst stack was that of the judged runs",
            redrawn=fresh,
            label="together, less other pairs",
            sample=Flows.gap,
        ),
    )
