"""What `condition_numbers` judges: where they are large, what they say about clipping, and who
spreads disturbances."""

from functools import partial

import numpy as np

from experiments.clipping.clipped_models import shallow_and_deep, spec_of
from experiments.clipping.condition_numbers.config import MODULES
from lsa_lab.judging.statements import Statement, grid
from lsa_lab.judging.statistics import spearman
from lsa_lab.store import parts, results

CELLS = ("layer", "module")
HARMED = ("W_v", "W_o")  # the matrices that carry the harm of clipping


class Conditions:
    """Logarithms of condition numbers and of stable ranks, after training and before."""

    def __init__(self, dataset):
        self.disturbed = parts.part(dataset, "disturbed")
        self.ends = results.config_of(dataset).ends
        self.final, self.first = dataset.isel(steps=-1), dataset.isel(steps=0)
        self.after, self.before = (np.log10(each.condition) for each in (self.final, self.first))

    def tilt(self, logs):  # [R]
        """Deep layers less shallow ones."""
        shallow, deep = shallow_and_deep(logs, self.ends)
        return (deep - shallow).mean("module").values

    def last_less_others(self):  # [R]
        others = self.after.isel(layer=slice(-1)).mean("layer")
        return (self.after.isel(layer=-1) - others).mean("module").values

    def spread(self, kind):  # [R, M]
        return rank_correlations(self.disturbed.condition, self.disturbed.move.sel(kind=kind))

    def depth_correlation(self, modules=tuple(MODULES)):  # [R]
        return self.correlation(self.final.layer.broadcast_like(self.final.ratio), modules)

    def correlation(self, measure, modules=tuple(MODULES)):  # [R]
        """That of a measure with the harm by clipping, averaged over matrices."""
        places = dict(module=list(modules))
        return rank_correlations(measure.sel(places), self.final.ratio.sel(places)).mean(-1)


numbers = Conditions


def rank_correlations(left, right):  # (run, layer, module) twice -> [R, M]
    """Spearman's over the layers of a run."""
    over_layers = np.vectorize(spearman, signature="(l),(l)->()", otypes=[float])
    tables = (values.transpose("run", "module", "layer").values for values in (left, right))
    return over_layers(*tables)


def removed_share(disturbed):  # (run, layer, module)
    """log10 of what a disturbed input does to answers, each matrix clipped over whole."""
    return np.log10(disturbed.clipped / disturbed.move.sel(kind="input"))


def statements(config) -> tuple[Statement, ...]:
    disturbed, harmed = config.disturbed, " and ".join(HARMED)
    ends = f"last {config.ends} layers less first {config.ends}"
    later = {
        "deep": dict(says="deep layers have larger condition numbers than shallow ones", less=ends),
        "last": dict(
            says="the last layer has a larger condition number than the others",
            less="last layer less the mean of the others",
        ),
    }
    tolerance = f"and of what clipping at rate {config.rate:g} multiplies the risk by,"
    correlation = "Spearman's correlation over layers, averaged over modules, of the"
    move = "how far answers move, in mean square,"
    measures = {
        "condition number": lambda c: c.correlation(c.after, HARMED),
        "depth": lambda c: c.depth_correlation(HARMED),
    }
    runs = f"{spec_of(config).training.seeds} runs at 1.1 times the risk of least squares"
    row = partial(Statement, redrawn=f"{runs}, noise 0.5; 12 at 12 times, noise 0.1, before")
    tells = partial(row, revision="each run has its own prompts; they were shared")
    return (
        row(
            "later_is_larger",
            "A2 (2406.03768), figure 3, in our setting",
            "In our models {says}",
            "log10 of the condition number, {less}, averaged over modules,",
            at_least=0.0,
            sample=lambda c, layers: c.tilt(c.after) if layers == "deep" else c.last_less_others(),
            cells=grid("deep_is_larger last_is_largest", layers=later),
            words=lambda layers: later[layers],
            message="Deep layers of our models, and the last one, have larger condition numbers "
            "than the layers before",
        ),
        row(
            "random_is_level",
            "derived here",
            "Random weights are as well conditioned deep as shallow, within a factor 2",
            f"log10 of the condition number before training, {ends}, averaged over modules,",
            margin=0.3,
            note="a control: before training layers are alike but for luck",
            sample=lambda c: c.tilt(c.before),
        ),
        row(
            "training_tilts",
            "derived here",
            "It is training that makes deep layers worse conditioned",
            f"log10 of the condition number, {ends}, averaged over modules, after training less "
            "before",
            at_least=0.0,
            note="to be read beside deep_is_larger: what lies before training is luck",
            sample=lambda c: c.tilt(c.after) - c.tilt(c.before),
        ),
        tells(
            "condition_tells",
            "A2 (2406.03768), section 3.4, our reading, in our setting",
            "In our models the layer with the larger condition number tolerates clipping better",
            f"{correlation} condition number {tolerance}",
            at_most=0.0,
            note="A2: it may serve as a reference for which layer to prune",
            sample=lambda c: c.correlation(c.after),
        ),
        Statement(
            "condition_beats_depth",
            "derived here",
            "Its condition number tells better than its depth alone which layer tolerates clipping",
            f"{correlation} condition number {tolerance} less that of depth,",
            at_most=0.0,
            note="the null of condition_tells; depth has one sign for W_q and W_k and the other "
            "for W_v and W_o, so that its mean over matrices says little: see harm_by",
            revision="added",
            sample=lambda c: c.correlation(c.after) - c.depth_correlation(),
        ),
        Statement(
            "condition_beats_depth_harm",
            "derived here",
            "For the two matrices that carry the harm the condition number tells better than depth",
            f"that correlation averaged over {harmed} alone, less that of depth,",
            at_most=0.0,
            note=f"clipping {harmed} multiplies the risk the most",
            revision="added after a look at all six matrices",
            sample=lambda c: measures["condition number"](c) - measures["depth"](c),
        ),
        Statement(
            "harm_by",
            "derived here",
            "For the two matrices that carry the harm the {measure} tells which layer tolerates "
            "clipping",
            f"Spearman's correlation over layers, averaged over {harmed}, of the {{measure}} "
            f"{tolerance}",
            unjudged="the two sides of condition_beats_depth_harm",
            revision="added",
            sample=lambda c, measure: measures[measure](c),
            cells=grid("harm_by_condition harm_by_depth", measure=measures),
        ),
        tells(
            "stable_rank_tells",
            "derived here",
            "In our models the layer with the smaller stable rank tolerates clipping better",
            f"{correlation} stable rank {tolerance}",
            at_least=0.0,
            sample=lambda c: c.correlation(c.final.stable_rank),
        ),
        Statement(
            "input_spreads",
            "A2 (2406.03768), Case 1, our reading, in our setting",
            "The worse conditioned a matrix, the more a disturbance of what it reads moves answers",
            "Spearman's correlation over layers, averaged over modules, of condition number and "
            f"of {move} when its input is disturbed by {disturbed.level:g},",
            at_least=0.0,
            note="Case 1 itself speaks of solving a system, which no layer does; of disturbed "
            "weights matrices differ in sign",
            sample=lambda c: c.spread("input").mean(-1),
        ),
        Statement(
            "clipping_removes",
            "A2 (2406.03768), section 3.4, our reading, in our setting",
            "A clipped matrix spreads less of a disturbance of what it reads than the whole one",
            f"log10 of {move} with the matrix clipped at rate {disturbed.rate:g} over with it "
            "whole, averaged over layers and modules,",
            at_most=0.0,
            note="a clipped matrix is smaller too: size_explains",
            sample=lambda c: removed_share(c.disturbed).mean(CELLS).values,
        ),
        Statement(
            "size_explains",
            "derived here",
            "Clipping takes away as much of a disturbance as of the matrix",
            f"log10 of {move} with the matrix clipped over with it whole, less log10 of the ratio "
            "of |W|_F², averaged over layers and modules,",
            margin=0.01,
            note="the null of clipping_removes: on average over directions both fall alike "
            '(docs/theory, "Solving and applying an ill-conditioned matrix")',
            revision="a margin; it was at least 0",
            sample=lambda c: (
                (removed_share(c.disturbed) - np.log10(c.disturbed["share"])).mean(CELLS).values
            ),
        ),
    )
