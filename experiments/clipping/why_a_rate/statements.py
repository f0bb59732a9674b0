"""What `why_a_rate` judges, by the criteria in its Config; fixed before its first run."""

from experiments.clipping.why_a_rate.rate_rules import PREDICTORS
from lsa_lab.claims import Statement

CONDITIONS = {
    "matched": "trained models, prompts as in training",
    "under-trained": "under-trained models",
    "noisy": "trained models, noisier labels than in training",
    "shifted": "trained models, longer covariates than in training",
}
APPENDIX = "A2 (2406.03768), appendix"
REGRET = (
    "(its risk - risk at the searched rank) / risk unclipped, on test prompts, averaged over "
    "conditions, layers and modules,"
)


def statements(config) -> tuple[Statement, ...]:
    return (*_about_gains(config), *_about_other_edits(config), *_about_rules(config))


def _about_gains(config):
    gain = "the test gain of the layer, module and rate that validation chose"
    note = "prompts of its own for each run since a first one"
    listed = [
        Statement(
            f"gain_{name.replace('-', '_')}",
            f"{APPENDIX} B.4",
            f"Searched clipping lowers the risk: {words}",
            gain,
            at_least=config.worthwhile,
            note=note,
        )
        for name, words in CONDITIONS.items()
    ]
    single_module = Statement(
        "single_module",
        f"{APPENDIX} B.3",
        "Clipping W_K alone, at its best layer and rate, gains nothing to speak of",
        f"{gain}, of W_K alone, in the condition where it is largest,",
        at_most=config.worthwhile,
        note=note,
    )
    rate_varies = Statement(
        "rate_varies",
        f"{APPENDIX} B.4 and B.5",
        "The best rate changes with the noise of model and prompts, not by luck alone",
        "the share of matrices with another best rank than matched, less the share that differ "
        "between two sets of prompts of one condition, averaged over the other conditions,",
        at_least=config.varies,
    )
    same_rate = Statement(
        "same_rate",
        f"{APPENDIX} B.5",
        "The edit that is best for matched prompts costs nothing in the other conditions",
        "its test loss, averaged over these,",
        at_most=0.0,
    )
    return (*listed, single_module, rate_varies, same_rate)


def _about_other_edits(config):
    rival = "log(risk with it / risk clipped), averaged over conditions, layers, modules and ranks,"
    return (
        Statement(
            "dropping_is_harmless",
            f"{APPENDIX} B.6",
            "Dropping a layer neither harms nor improves",
            "the median over layers of |risk without it / risk - 1|, averaged over conditions,",
            at_most=config.harmless,
        ),
        Statement(
            "clip_or_drop",
            f"{APPENDIX} B.6",
            "Clipping at the searched rate predicts better than dropping",
            "log(risk dropped / risk clipped), averaged over conditions, layers and modules,",
            at_least=0.0,
        ),
        Statement(
            "clip_or_prune",
            "A2 (2406.03768), Remark 6",
            "Clipping harms no more than pruning by magnitude to equally many numbers",
            rival,
            at_least=0.0,
        ),
        Statement(
            "clip_or_project",
            "derived here",
            "Clipping harms no more than a random projection to the same rank",
            rival,
            at_least=0.0,
        ),
        Statement(
            "no_search_regret",
            "derived here",
            "The whole matrix does as well as the searched rank, matrix by matrix",
            REGRET,
            at_most=config.regret,
            note="added after a first run",
        ),
    )


def _about_rules(config):
    source, listed = "derived here; A2's open question on the search", []
    for name in PREDICTORS:
        key = name.replace(" ", "_")
        ranks = Statement(
            f"{key}_ranks",
            source,
            f"The spectrum's {name} orders matrices by their best rank",
            "Spearman's correlation over layers and modules, averaged over conditions,",
            at_least=config.rank_correlation,
        )
        regret = Statement(
            f"{key}_regret",
            source,
            f"The rank that the spectrum's {name} predicts does as well as the searched one",
            REGRET,
            at_most=config.regret,
        )
        listed += [ranks, regret]
    return listed
