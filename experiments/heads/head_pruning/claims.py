"""What `head_pruning` judges: risks of models with heads taken away, and what greed leaves.

After its first run numbers of prompts were lowered, for time. Then it was seen that heads as wide
as a token can be mixed: what was judged of their importance is judged of narrow keys and of
softmax, and of mixed heads the best that any mixing can keep. Risks are at one n since then.
"""

import numpy as np

from experiments.heads.cases import select_case
from experiments.heads.head_pruning.config import (
    ANY,
    BEST,
    FIRST,
    FULL,
    MIXED,
    OTHERS,
    PRUNED,
    TRAINED,
    all_are_tried,
)
from experiments.heads.kinds import mixable_and_own
from lsa_lab.judging.statements import Statement, grid, having
from lsa_lab.store import results

A4 = "A4 (2408.04532), abstract, in our setting"
READING = "A4 (2408.04532), abstract, our reading, in our setting"
MODELLED = "modelled on A4 (2408.04532), abstract"
HERE = "derived here"

UNCHANGED = 1.1  # at most this ratio of risks is none to speak of
OVER_FULL = "the risk over that of the full model"
WAS = "it was heads that can be mixed"
LOOKED = "added after a look at these runs"
MIXING = "it was the most important head as trained, which mixing changes"
OWN = ("narrow keys", "softmax")  # models whose heads cannot be mixed
CONTROLS = {  # what is kept instead: in the sentence, in the figure
    FIRST: (
        "to keep only the top head of the first layer costs more than pruning the later layers",
        "top of layer 1",
    ),
    OTHERS: (
        "to keep other heads of the later layers than the top ones costs more",
        "random later",
    ),
    ANY: ("to remove as many heads at random costs more", "random"),
}


def own_names(dataset) -> list[str]:
    """The models whose heads cannot be mixed."""
    return [name for name, _ in mixable_and_own(results.config_of(dataset).models)[1]]


def ratios(dataset, case: str, treatment: str, over: str = FULL) -> np.ndarray:  # [R]
    """A treatment's risk over another's; runs without either are left out."""
    risk = select_case(dataset.risk, case)
    quotient = (risk.sel(treatment=treatment) / risk.sel(treatment=over)).values
    return quotient[np.isfinite(quotient)]


def geometric_mean(quotients) -> float:
    return float(np.exp(np.log(quotients).mean()))


def refitted(dataset, case: str):  # DataArray [run, heads]
    """Risks with each number of fitted heads in every later layer over those of the full model."""
    risks = select_case(dataset.refitted, case).dropna("heads", how="all")
    return (risks / risks.isel(heads=-1)).transpose("run", "heads")


def left_by_greed(dataset, case: str) -> tuple[np.ndarray, np.ndarray]:  # [R] twice
    """The share of layer 1's heads, and the mean number in later layers, that are left before the
    risk exceeds ``UNCHANGED`` times that of the full model."""
    risk = select_case(dataset.greedy, case).sortby("kept", ascending=False)
    risk = risk.transpose("run", "kept")
    left = select_case(dataset.left, case).sel(kept=risk.kept)
    left = left.transpose("run", "kept", "layer").values
    over = (risk / risk.isel(kept=0)).values > UNCHANGED
    last = np.where(over.any(1), over.argmax(1), over.shape[1]) - 1
    at_the_end = left[np.arange(len(last)), last]
    return at_the_end[:, 0] / left[0, 0, 0], at_the_end[:, 1:].mean(1)


def agreement(dataset, cases) -> float:
    """The share of later layers in which importance and Shapley's value have the same top head."""
    same = []
    for case in cases:
        tops = [
            select_case(scores, case).sel(layer=slice(2, None)).argmax("head").values
            for scores in (dataset.importance, dataset.shapley)
        ]
        same.append((tops[0] == tops[1]).ravel())
    return float(np.concatenate(same).mean())


def statements(config) -> tuple[Statement, ...]:
    mixed, own = (dict(models) for models in mixable_and_own(config.models))
    families = (*_about_one_head(config, mixed, own), *_about_other_heads(own))
    greed = _about_greed(max(spec.training.seeds for spec in own.values()))
    return (*(family for family in families if family.cells), *greed)


def _about_one_head(config, mixed: dict, own: dict):
    """One head in each later layer, over the full model; a tier may lack models of a family."""
    specs, dense = mixed | own, "Control: on the dense task, which needs no preprocessing, "
    family = dict(statistic="ratio", over="{seeds} seeds", at_most=UNCHANGED)

    def words(model):
        title, seeds = f"{model.capitalize()}: ", specs[model].training.seeds
        return dict(title=title, seeds=seeds, looked="" if model in mixed else LOOKED)

    def mixed_words(model):
        looked = LOOKED if model == "long training" else MIXING
        title, source = (dense, HERE) if model == "dense" else (words(model)["title"], MODELLED)
        return words(model) | dict(looked=looked, title=title, source=source)

    yield Statement(
        "pruned",
        A4,
        "{title}all heads but the most important one of each later layer can be removed",
        OVER_FULL,
        label="{model}: most important",
        sample=lambda d, model: ratios(d, model, PRUNED),
        cells=having(grid("narrow softmax", model=OWN), model=own),
        words=words,
        message="Where heads cannot be mixed, all but the most important one of each later layer "
        "can be removed",
        **family,
    )
    tried = [m for m, spec in own.items() if all_are_tried(config, spec.architecture.rows[-1])]
    yield Statement(
        "best",
        HERE,
        "{title}with the best choice of one head for each later layer, whatever its importance, "
        "nothing is lost",
        f"{OVER_FULL}, the choice being the best of all on other prompts,",
        revision=LOOKED,
        label="{model}: best choice",
        sample=lambda d, model: ratios(d, model, BEST),
        cells=having(grid("best_narrow_keys best_softmax", model=OWN), model=tried),
        words=words,
        message="Where heads cannot be mixed, nothing is lost with the best choice of one for each "
        "later layer",
        **family,
    )
    yield Statement(
        "best_mixed",
        "{source}",
        "{title}one head in each later layer, the best of all that mixing the heads of the layer "
        "can give, costs nothing",
        f"{OVER_FULL}, the heads being chosen and mixed on other prompts,",
        note="an upper bound, by search, on the least over all mixings",
        revision="{looked}",
        label="{model}: best mixed",
        sample=lambda d, model: ratios(d, model, MIXED),
        cells=having(
            grid(
                "best_mixed_depth_3 best_mixed_depth_5 best_mixed_long_training best_mixed_dense",
                model=("depth 3", "depth 5", "long training", "dense"),
            ),
            model=mixed,
        ),
        words=mixed_words,
        message="One head in each later layer, the best of all that mixing the heads of the layer "
        "can give, costs nothing",
        **family,
    )
    yield Statement(
        "trained",
        READING,
        "{title}a model trained with one head in each later layer is as good as the full one",
        OVER_FULL,
        revision="{looked}",
        label="{model}: trained so",
        sample=lambda d, model: ratios(d, model, TRAINED),
        cells=having(
            grid(
                "trained_depth_3 trained_depth_5 trained_narrow_keys",
                model=("depth 3", "depth 5", "narrow keys"),
            ),
            model=[m for m in specs if "first" in specs[m].architecture.places],
        ),
        words=words,
        message="A model trained with one head in each later layer is as good as the full one",
        **family,
    )


def _about_other_heads(own: dict):
    """What else may be kept, in place of the most important head of each later layer."""

    def words(model, kept):
        says, short = CONTROLS[kept]
        seeds = own[model].training.seeds
        return dict(title=model.capitalize(), says=says, short=short, seeds=seeds)

    yield Statement(
        "other_heads",
        MODELLED,
        "{title}: {says}",
        "the risk over that of the pruned model",
        "ratio",
        at_least=1.0,
        over="{seeds} seeds",
        revision=f"narrow keys and softmax apart, since a look at these runs; {WAS}",
        label="{model}: {short}",
        sample=lambda d, model, kept: ratios(d, model, kept, PRUNED),
        cells=having(
            grid(
                "first_layer_narrow_keys random_heads_narrow_keys at_random_narrow_keys "
                "first_layer_softmax random_heads_softmax at_random_softmax",
                model=OWN,
                kept=CONTROLS,
            ),
            model=own,
        ),
        words=words,
        message="To keep only the top head of the first layer, other heads of the later layers, or "
        "as many at random costs more than to keep the top head of each later layer",
    )


def _about_greed(seeds: int):
    end = "left when one more removal would make the risk more than"
    row = dict(over=f"{seeds} seeds", revision=f"narrow keys and softmax; {WAS}")
    yield Statement(
        "greedy_first",
        MODELLED,
        "Greedy pruning, free to choose any layer, keeps the heads of the first one",
        f"the share of layer 1's heads that are {end} {UNCHANGED:g} of the full model's, for the "
        "worst model,",
        at_least=0.75,
        label="layer 1, share of heads",
        sample=lambda d: min((left_by_greed(d, m)[0] for m in own_names(d)), key=np.mean),
        **row,
    )
    yield Statement(
        "greedy_later",
        MODELLED,
        "Greedy pruning, free to choose any layer, leaves one head in each later one",
        "the heads of a later layer that are left then, averaged over these, for the worst model,",
        at_most=1.5,
        label="later layers, heads",
        sample=lambda d: max((left_by_greed(d, m)[1] for m in own_names(d)), key=np.mean),
        **row,
    )
