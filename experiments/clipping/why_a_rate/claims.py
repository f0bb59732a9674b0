"""What `why_a_rate` judges: gains of searched edits in each condition, and rules for a rate."""

from functools import partial

import numpy as np

from experiments.clipping.clipped_models import CUT, WORTHWHILE, fresh_prompts
from experiments.clipping.why_a_rate.config import CONDITIONS, RIVALS
from experiments.clipping.why_a_rate.rate_rules import (
    MODULES,
    PREDICTORS,
    best_rates,
    rank_correlations,
    repeats,
)
from lsa_lab.judging.statements import Statement, grid
from lsa_lab.store import results

PAPER = "A2 (2406.03768)"
OTHERS = tuple(name for name in CONDITIONS if name != "matched")
CELLS = ("layer", "module")
NOISE = f"modelled on {PAPER}, section 3.4 and appendix B.4"
SOURCES = {  # where A2 speaks of these prompts and models
    "matched": f"{PAPER}, section 3.4, in our setting",
    "under-trained": f"{PAPER}, section 3.4 and appendix C.4, in our setting",
    "noisy": NOISE,
    "shifted": NOISE,
}
KINDS = {  # what each condition is
    "matched": "prompts as in training",
    "under-trained": "under-trained models",
    "noisy": "noisier labels than in training",
    "shifted": "longer covariates than in training",
}
CORRELATION = "Spearman's correlation over layers and modules, averaged over conditions,"


class Searched:
    """Gains by searched edits, and risks after those edits, their rivals and rules for a rank."""

    def __init__(self, dataset):
        self.dataset = dataset
        self.test = dataset.change.sel(prompts="test")
        self.dropped = self.test.isel(rate=-1).sel(module="layer")  # whole layers

    def gain(self, search, condition):  # [R]
        return self.dataset.gain.sel(search=search, condition=condition).values

    def other_ranks(self):  # [R]
        """The share of matrices with another best rank than matched, less the share that differ
        between two sets of prompts of one condition."""
        ranks, second = (
            self.dataset.kept.isel(rate=best_rates(self.dataset, prompts))
            for prompts in ("validation", "test")
        )
        by_luck = (ranks != second).mean(CELLS)
        differs = (ranks != ranks.sel(condition="matched", drop=True)).mean(CELLS)
        beyond = differs - (by_luck + by_luck.sel(condition="matched", drop=True)) / 2
        return beyond.sel(condition=list(OTHERS)).mean("condition").values

    def drop_over_clip(self):  # [R]
        clipped = self.test.isel(rate=best_rates(self.dataset, modules=tuple(MODULES)))
        spared = np.log1p(self.dropped) - np.log1p(clipped.sel(module="layer"))
        return spared.mean(("condition", "layer")).values

    def rival_over_clip(self, rival):  # [R]
        rates = list(results.config_of(self.dataset).rival_rates)
        same = self.test.sel(rate=rates).rename(rate="rival_rate")
        difference = np.log1p(self.dataset.rival.sel(way=rival)) - np.log1p(same)
        return difference.mean(("condition", *CELLS, "rival_rate")).values

    def correlation(self, predictor):  # [R]
        return rank_correlations(self.dataset).mean(0)[:, PREDICTORS.index(predictor)]


numbers = Searched


def statements(config) -> tuple[Statement, ...]:
    row = partial(Statement, redrawn=fresh_prompts(config))
    by_condition = partial(row, revision=f"by condition; it was the mean over them; {CUT}")
    searched = f"Clipping searched with {config.prompts} prompts lowers our models' risk"
    rivals = {
        "prune": dict(
            source=f"modelled on {PAPER}, Remark 6",
            rival_edit="pruning by magnitude to equally many numbers",
            note="A2 names pruning by magnitude, and compares nothing with it",
        ),
        "project": dict(
            source="derived here", rival_edit="a random projection to the same rank", note=""
        ),
    }
    return (
        row(
            "gain",
            "{source}",
            f"{searched}: {{kind}}",
            "the relative gain on test of the layer, module and rate that validation chose,",
            at_least=WORTHWHILE,
            revision=CUT,
            sample=lambda s, condition: s.gain("of all", condition),
            cells=grid(
                "gain_matched gain_under_trained gain_noisy gain_shifted", condition=CONDITIONS
            ),
            words=lambda condition: dict(source=SOURCES[condition], kind=KINDS[condition]),
            message=f"{searched} on prompts as in training, in under-trained models, with noisier "
            "labels and with longer covariates",
        ),
        by_condition(
            "w_k_alone",
            f"{PAPER}, appendix B.3, in our setting",
            "Clipping W_K alone, at its best layer and rate, gains nothing to speak of: {kind}",
            "the relative gain on test of the layer and rate of W_K that validation chose,",
            at_most=WORTHWHILE,
            note="A2's W_K of one layer, on prompts as in training: +0, +0 and +.01 of score",
            sample=lambda s, condition: s.gain("of w_k", condition),
            cells=grid(
                "single_module single_module_under_trained single_module_noisy "
                "single_module_shifted",
                condition=CONDITIONS,
            ),
            words=lambda condition: dict(kind=KINDS[condition]),
            message="Clipping W_K alone, at its best layer and rate, gains nothing to speak of",
        ),
        row(
            "same_rate",
            f"modelled on {PAPER}, appendix B.5",
            "The edit that is best for matched prompts gains nothing elsewhere: {kind}",
            "its gain on test as a share of the risk,",
            at_most=WORTHWHILE,
            note="A2: elsewhere it can either improve or deteriorate",
            revision=f"a gain, by condition; it was the mean over them; {CUT}",
            sample=lambda s, condition: s.gain("of all, matched", condition),
            cells=grid(
                "same_rate_under_trained same_rate_noisy same_rate_shifted", condition=OTHERS
            ),
            words=lambda condition: dict(kind=KINDS[condition]),
            message="The edit that is best for matched prompts gains nothing elsewhere",
        ),
        row(
            "rate_varies",
            f"{PAPER}, appendix B.4, in our setting",
            "The best rate changes with the noise of model and prompts, not by luck alone",
            "the share of matrices with another best rank than matched, less the share that differ "
            "between two sets of prompts of one condition, averaged over the other conditions,",
            at_least=0.0,
            revision=f"its sign is judged; the bound was .1; {CUT}",
            sample=lambda s: s.other_ranks(),
        ),
        by_condition(
            "dropping",
            f"{PAPER}, appendix B.6, in our setting",
            "Dropping a layer of our models neither harms nor improves: {condition}",
            "the median over layers of |risk without it / risk - 1|,",
            at_most=0.05,
            sample=lambda s, condition: (
                abs(s.dropped.sel(condition=condition)).median("layer").values
            ),
            cells=grid(
                "dropping_is_harmless dropping_under_trained dropping_noisy dropping_shifted",
                condition=CONDITIONS,
            ),
            message="Dropping a layer of our models neither harms nor improves",
        ),
        row(
            "clip_or_drop",
            f"{PAPER}, appendix B.6, in our setting",
            "Clipping a layer at the searched rate predicts better than dropping it",
            "log(risk dropped / risk clipped), averaged over conditions and layers,",
            at_least=0.0,
            note="the search may choose not to cut",
            revision=f"whole layers, of which B.6 speaks; it was single matrices too; {CUT}",
            sample=lambda s: s.drop_over_clip(),
        ),
        Statement(
            "leave_or_drop",
            "derived here",
            "Leaving a layer alone predicts better than dropping it",
            "log(risk dropped / risk unclipped), averaged over conditions and layers,",
            unjudged="the null of clip_or_drop: what clipping adds to it is the search's own",
            revision="added",
            sample=lambda s: np.log1p(s.dropped).mean(("condition", "layer")).values,
        ),
        row(
            "clip_or_rival",
            "{source}",
            "Clipping harms no more than {rival_edit}",
            "log(risk after the rival edit / risk clipped), averaged over conditions, layers, "
            "modules and ranks,",
            at_least=0.0,
            note="{note}",
            revision=CUT,
            sample=lambda s, rival: s.rival_over_clip(rival),
            cells=grid("clip_or_prune clip_or_project", rival=RIVALS),
            words=lambda rival: rivals[rival],
            message="Clipping harms no more than pruning by magnitude or a random projection",
        ),
        row(
            "search_repeats",
            "derived here",
            "A second search, with other prompts, orders matrices alike by their best rank",
            CORRELATION,
            at_least=0.5,
            note="no rule can be expected to agree better with a search than another search does",
            revision=f"added; {CUT}",
            sample=lambda s: repeats(s.dataset).mean(0),
        ),
        row(
            "ranks",
            f"{PAPER}, section 4 (iii), open question",
            "The spectrum's {predictor} orders matrices by their best rank",
            CORRELATION,
            at_least=0.5,
            note="to be read beside search_repeats",
            revision=CUT,
            sample=lambda s, predictor: s.correlation(predictor),
            cells=grid(
                "gap_ranks stable_rank_ranks participation_ranks energy_ranks", predictor=PREDICTORS
            ),
            message="A spectrum orders matrices by their best rank, by its gap, its stable rank, "
            "its participation or its energy",
        ),
    )
