"""What `head_importance` judges: effective heads, and what mixing makes of their number.

Bounds on N are older than its first run, but for one seed of some models, looked at before with
other programs. After it prompts went from 2048 to 1024, for time, and `first_of_median` was added.
Then it was seen that heads of linear attention as wide as a token can be mixed: rows about their
importance went, and how far mixing moves it came, after N_1 of one model had been moved from 1.1
to 4.0.
"""

import numpy as np

from experiments.heads.head_importance.head_counts import (
    DEAD,
    agreement,
    covered,
    first_count,
    later_count,
    later_count_that_matters,
    over_ridge,
    own_models,
)
from experiments.heads.kinds import mixable_and_own
from lsa_lab.judging.statements import Statement, grid, having

A4 = "A4 (2408.04532), abstract, in our setting"
HERE = "derived here"
THEIR_OWN = "what each layer computes determines these heads, among those near them"
RESTRICTED = "models whose heads can be mixed are left out"
LATER = "N_l in the later layer with the most effective heads on average"
COVER = "(largest - least N_l)/(h - 1) over mixings of the layer's heads"

OWN = ("narrow keys", "softmax")  # models whose heads cannot be mixed
MIXABLE = ("depth 3", "depth 5")
ALL_MATTER = 0.75  # N_1 over the number of heads h: at least this is all of them
ONE_LATER = 1.5  # N_l of a later layer: at most this is one


def statements(config) -> tuple[Statement, ...]:
    mixable, own = (dict(models) for models in mixable_and_own(config.models))
    families = (*_about_own_heads(own), _about_mixing(config, mixable))
    seeds = max(spec.training.seeds for spec in own.values())
    return (*(family for family in families if family.cells), *_about_all(f"{seeds} seeds"))


def _cells(ids: str, own: dict) -> dict:
    return having(grid(ids, model=OWN), model=own)


def _about_own_heads(own: dict):
    """Models whose heads are their layers' own."""

    def words(model):
        heads = " ".join(map(str, own[model].architecture.rows[-1]))
        return dict(heads=heads, seeds=own[model].training.seeds)

    row = dict(over="{seeds} seeds", words=words)
    yield Statement(
        "first",
        A4,
        "All heads of the first layer matter: {model}: {heads}",
        "N_1 / h",
        at_least=ALL_MATTER,
        note=THEIR_OWN,
        label="$N_1/h$, {model}",
        sample=lambda d, model: first_count(d, model),
        cells=_cells("first.narrow_keys_full first.softmax_full", own),
        message="Where heads cannot be mixed, all heads of the first layer matter",
        **row,
    )
    yield Statement(
        "first_of_median",
        HERE,
        "All heads of the first layer matter to the median prompt: {model}: {heads}",
        "N_1 / h, importance being the rise of the median squared error,",
        at_least=ALL_MATTER,
        note=THEIR_OWN,
        revision="added after a look at these runs, in which prompts that explode without a head "
        "ruled the mean",
        label="$N_1/h$ for the median prompt, {model}",
        sample=lambda d, model: first_count(d, model, "effective_of_median"),
        cells=_cells("first_of_median.narrow_keys_full first_of_median.softmax_full", own),
        message="Where heads cannot be mixed, all heads of the first layer matter to the median "
        "prompt",
        **row,
    )
    yield Statement(
        "later",
        A4,
        "One head of each later layer is enough: {model}: {heads}",
        LATER,
        at_most=ONE_LATER,
        note=THEIR_OWN,
        sample=lambda d, model: later_count(d, model),
        cells=_cells("later.narrow_keys_full later.softmax_full", own),
        message="Where heads cannot be mixed, one head of each later layer is enough",
        **row,
    )
    yield Statement(
        "later_that_matter",
        A4,
        "One head of each later layer that matters is enough: {model}: {heads}",
        f"{LATER}, among those whose rises sum to {DEAD:g} of the first layer's or more on "
        "average,",
        at_most=ONE_LATER,
        note=f"not judged if there is none; {THEIR_OWN}",
        revision="layers without such rises counted as 0 heads",
        sample=lambda d, model: later_count_that_matters(d, model),
        cells=_cells("later_that_matter.narrow_keys_full later_that_matter.softmax_full", own),
        message="Where heads cannot be mixed, one head of each later layer that matters is enough",
        **row,
    )


def _about_mixing(config, mixable: dict) -> Statement:
    """Models whose heads can be mixed, which changes no prediction."""
    words = {
        "first": dict(
            begin="By mixing alone, which changes no prediction, N_1 of a trained model covers "
            "more than half of its range [1, h]",
            place="l = 1",
            short="$N_1$ over mixings",
        ),
        "later": dict(
            begin="So does N_l of each later layer",
            place="at the later layer where it is least",
            short="a later $N_l$",
        ),
    }
    return Statement(
        "mixing",
        HERE,
        "{begin}: {model}",
        f"{COVER}, {{place}}",
        at_least=0.5,
        over="{seeds} seeds",
        note=f"mixings of condition {config.condition:g} or less, chosen on other prompts; a lower "
        "bound, by search",
        revision="added after mixing had moved N_1 of one model from 1.1 to 4.0",
        label="range of {short}, {model}",
        sample=lambda d, model, layer: covered(d, model)[layer == "later"],
        cells=having(
            grid(
                "mixing_first.depth_3_full mixing_first.depth_5_full "
                "mixing_later.depth_3_full mixing_later.depth_5_full",
                layer=words,
                model=MIXABLE,
            ),
            model=mixable,
        ),
        words=lambda model, layer: words[layer] | dict(seeds=mixable[model].training.seeds),
        message="By mixing alone, which changes no prediction, the number of effective heads of "
        "the first layer and of each later one covers more than half of its range [1, h]",
    )


def _about_all(seeds: str):
    """These models beside each other."""
    yield Statement(
        "found",
        A4,
        "The models have found an algorithm that knows of sparsity: they beat ridge",
        "the risk over ridge's on the same prompts, for the worst of the models judged here,",
        at_most=1.0,
        over=seeds,
        revision=RESTRICTED,
        label="risk / ridge's, worst model",
        sample=lambda d: max((over_ridge(model) for model in own_models(d)), key=np.mean),
    )
    yield Statement(
        "ablations",
        HERE,
        "Zero, mean and resample ablation rank the heads of a layer alike",
        "the rank correlation with zero ablation over the heads of a layer, averaged over layers, "
        "for the model and the other ablation that agree least,",
        at_least=0.8,
        over=seeds,
        revision=f"it was one model, of depth 3; {RESTRICTED}",
        label="rank correlation of ablations",
        sample=lambda d: min((r for m in own_models(d) for r in agreement(m)[1:3]), key=np.mean),
    )
