"""What `why_a_rate` judges: gains, rivals and regrets of searched rates."""

from experiments.clipping.transformers import OWN_PROMPTS, fresh
from experiments.clipping.why_a_rate.config import CONDITIONS, RIVALS
from experiments.clipping.why_a_rate.rate_rules import PREDICTORS, repeats
from experiments.clipping.why_a_rate.searched_risks import Searched
from lsa_lab.judging.statements import Statement, grid

PAPER = "A2 (2406.03768)"
KINDS = {  # of prompts and models, where A2 speaks of them, and what keeps a mean undecided
    "matched": ("prompts as in training", f"{PAPER}, section 3.4, in our setting", ""),
    "under-trained": (
        "under-trained models",
        f"{PAPER}, section 3.4 and appendix C.4, in our setting",
        "; with 36 runs the gain is the bound itself",
    ),
    "noisy": (
        "noisier labels than in training",
        f"modelled on {PAPER}, section 3.4 and appendix B.4",
        "; in one run of 36 the chosen edit doubles the risk, and the mean follows it",
    ),
    "shifted": (
        "longer covariates than in training",
        f"modelled on {PAPER}, section 3.4 and appendix B.4",
        "",
    ),
}
ONE_SEARCH = (
    "in one run of 36 the search itself loses, on longer covariates, and the mean follows it"
)
CORRELATION = "Spearman's correlation over layers and modules, averaged over conditions,"
REGRET = (
    "(its risk - risk at the searched rank) / risk unclipped, on test prompts, averaged over "
    "conditions, layers and modules,"
)


def numbers(dataset) -> Searched:
    return Searched(dataset)


def statements(config) -> tuple[Statement, ...]:
    fresh_runs = dict(redrawn=f"{fresh(config)}, with more prompts")
    return (*_gains(config, fresh_runs), *_other_edits(fresh_runs), *_rules(fresh_runs))


def _gains(config, fresh_runs):
    gain = "the test gain of the layer, module and rate that validation chose"
    searched = f"Clipping searched with {config.prompts} prompts lowers our models' risk"

    def words(condition):
        return dict(zip(("kind", "paper", "why_open"), KINDS[condition], strict=True))

    return (
        Statement(
            "gain",
            "{paper}",
            f"{searched}: {{kind}}",
            gain,
            at_least=0.01,
            note="with more prompts a search is fairer: clipping_search{why_open}",
            revision=OWN_PROMPTS,
            label="{condition}",
            sample=lambda s, condition: s.gain.sel(condition=condition).values,
            cells=grid(
                "gain_matched gain_under_trained gain_noisy gain_shifted", condition=CONDITIONS
            ),
            words=words,
            message=f"{searched} on prompts as in training, in under-trained models, with noisier "
            "labels and with longer covariates",
            **fresh_runs,
        ),
        Statement(
            "single_module",
            f"{PAPER}, appendix B.3, in our setting",
            "Clipping W_K alone, at its best layer and rate, gains nothing to speak of",
            f"{gain}, of W_K alone, averaged over conditions,",
            at_most=0.01,
            note="A2's W_K of one layer: +0, +0 and +.01 of score",
            revision="averaged over conditions; it was the one where it is largest, which would "
            "leave it undecided in these runs too",
            label="W_K alone",
            sample=lambda s: s.single.mean("condition").values,
            **fresh_runs,
        ),
        Statement(
            "same_rate",
            f"modelled on {PAPER}, appendix B.5",
            "The edit that is best for matched prompts costs and gains next to nothing elsewhere",
            "its test loss as a share of the risk, averaged over the other conditions,",
            margin=0.01,
            note="A2: elsewhere it can either improve or deteriorate; in one run of 36 it raises "
            "the risk by more than half, and the mean follows it",
            revision="a margin; it was at most 0",
            label="loss by the edit\nof matched",
            sample=lambda s: s.matched_loss(),
            **fresh_runs,
        ),
        Statement(
            "rate_varies",
            f"{PAPER}, appendix B.4, in our setting",
            "The best rate changes with the noise of model and prompts, not by luck alone",
            "the share of matrices with another best rank than matched, less the share that differ "
            "between two sets of prompts of one condition, averaged over the other conditions,",
            at_least=0.1,
            note="with 36 runs the share is the bound itself",
            label="share of other\nbest ranks",
            sample=lambda s: s.other_ranks(),
            **fresh_runs,
        ),
    )


def _other_edits(fresh_runs):
    rivals = {
        "prune": dict(
            paper=f"modelled on {PAPER}, Remark 6",
            words="pruning by magnitude to equally many numbers",
            note="A2 names that pruning, and compares nothing with it",
            label="pruned",
        ),
        "project": dict(
            paper="derived here",
            words="a random projection to the same rank",
            note="",
            label="projected",
        ),
    }
    return (
        Statement(
            "dropping_is_harmless",
            f"{PAPER}, appendix B.6, in our setting",
            "Dropping a layer of our models neither harms nor improves",
            "the median over layers of |risk without it / risk - 1|, averaged over conditions,",
            at_most=0.05,
            label="|change| by\nlayer dropped",
            sample=lambda s: s.harm_by_drop(),
            **fresh_runs,
        ),
        Statement(
            "clip_or_drop",
            f"{PAPER}, appendix B.6, in our setting",
            "Clipping a layer at the searched rate predicts better than dropping it",
            "log(risk dropped / risk clipped), averaged over conditions and layers,",
            at_least=0.0,
            note="the search may choose not to cut",
            revision="whole layers, of which B.6 speaks; it was single matrices too",
            label="log, layer dropped",
            sample=lambda s: s.drop_over_clip(),
            **fresh_runs,
        ),
        Statement(
            "clip_or_rival",
            "{paper}",
            "Clipping harms no more than {words}",
            "log(risk with it / risk clipped), averaged over conditions, layers, modules and "
            "ranks,",
            at_least=0.0,
            note="{note}",
            label="log, {label}",
            sample=lambda s, rival: s.rival_over_clip(rival),
            cells=grid("clip_or_prune clip_or_project", rival=RIVALS),
            words=lambda rival: rivals[rival],
            message="Clipping harms no more than pruning or a random projection",
            **fresh_runs,
        ),
    )


def _rules(fresh_runs):
    rules = f"{PAPER}, section 4 (iii), open question"
    return (
        Statement(
            "no_search_regret",
            "derived here",
            "Without any cut the risk is at most 1 % above that at the searched ranks, matrix by "
            "matrix",
            REGRET,
            at_most=0.01,
            note=ONE_SEARCH,
            revision="added",
            label="not cut",
            sample=lambda s: s.regrets["none"],
            **fresh_runs,
        ),
        Statement(
            "search_repeats",
            "derived here",
            "A second search, with other prompts, orders matrices alike by their best rank",
            CORRELATION,
            at_least=0.5,
            note="no rule can be expected to agree better with a search than another search does",
            revision="added",
            label="a second search",
            sample=lambda s: repeats(s.dataset).mean(0),
            **fresh_runs,
        ),
        Statement(
            "ranks",
            rules,
            "The spectrum's {predictor} orders matrices by their best rank",
            CORRELATION,
            at_least=0.5,
            note="to be read beside search_repeats",
            label="{predictor}",
            sample=lambda s, predictor: s.correlations[predictor],
            cells=grid(
                "gap_ranks stable_rank_ranks participation_ranks energy_ranks",
                predictor=PREDICTORS,
            ),
            message="A spectrum orders matrices by their best rank, by its gap, its stable rank, "
            "its participation or its energy",
            **fresh_runs,
        ),
        Statement(
            "regret",
            rules,
            "The rank that the spectrum's {predictor} predicts does as well as the searched one",
            REGRET,
            at_most=0.01,
            note="to be read beside no_search_regret{why_open}",
            label="{predictor}",
            sample=lambda s, predictor: s.regrets[predictor],
            cells=grid(
                "gap_regret stable_rank_regret participation_regret energy_regret",
                predictor=PREDICTORS,
            ),
            words=lambda predictor: dict(why_open=f"; {ONE_SEARCH}" * (predictor == "energy")),
            message="The rank that a spectrum predicts, by its gap, its stable rank, its "
            "participation or its energy, does as well as the searched one",
            **fresh_runs,
        ),
    )
