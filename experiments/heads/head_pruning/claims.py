"""What `head_pruning` judges: effective heads, what mixing makes of their number, and risks of
models with heads taken away.

Bounds on N are older than its first run, but for one seed of some models, looked at before with
other programs. After first runs numbers of prompts were lowered, for time. Then it was seen that
heads as wide as a token can be mixed, after N_1 of one model had been moved from 1.1 to 4.0: what
was judged of their importance is judged of narrow keys and of softmax, how far mixing moves N came,
and of mixed heads the best that any mixing can keep is judged. Risks are at one n since then.
"""

import numpy as np

from experiments.heads.cases import select_case
from experiments.heads.head_pruning.config import (
    ANY,
    FIRST,
    FULL,
    MIXED,
    OTHERS,
    PRUNED,
    TRAINED,
    mixable_and_own,
)
from lsa_lab.judging.statements import Statement, grid, having
from lsa_lab.store import parts, results

A4 = "A4 (2408.04532), abstract, in our setting"
READING = "A4 (2408.04532), abstract, our reading, in our setting"
MODELLED = "modelled on A4 (2408.04532), abstract"
HERE = "derived here"

UNCHANGED = 1.1  # at most this ratio of risks is none to speak of
ALL_MATTER = 0.75  # N_1 over the number of heads h: at least this is all of them
ONE_LATER = 1.5  # N_l of a later layer: at most this is one
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
    return list(mixable_and_own(results.config_of(dataset).models)[1])


def ratios(dataset, case: str, treatment: str, over: str = FULL) -> np.ndarray:  # [R]
    """A treatment's risk over another's; runs without either are left out."""
    risk = select_case(dataset.risk, case)
    quotient = (risk.sel(treatment=treatment) / risk.sel(treatment=over)).values
    return quotient[np.isfinite(quotient)]


def geometric_mean(quotients) -> float:
    return float(np.exp(np.log(quotients).mean()))


def effective_heads(dataset, name: str) -> np.ndarray:  # [R, L]
    """N_l of the runs of a model that did not diverge."""
    count = parts.part(dataset, "importance").effective.sel(model=name)
    return finite(count.dropna("layer", how="all").transpose("run", "layer").values)


def most_heads(dataset, name: str) -> int:
    """h, the heads of a layer of a model."""
    return dict(results.config_of(dataset).models)[name].architecture.heads


def first_share(dataset, model: str):  # [R], None if all runs diverged
    """N_1 / h."""
    count = effective_heads(dataset, model)
    return count[:, 0] / most_heads(dataset, model) if len(count) else None


def later_count(dataset, model: str):  # [R], None if all runs diverged
    """N_l of the later layer where it is most on average."""
    later = effective_heads(dataset, model)[:, 1:]
    return later[:, later.mean(0).argmax()] if len(later) else None


def over_mixings(dataset, name: str) -> np.ndarray:  # [R, L, ENDS]
    values = parts.part(dataset, "importance").over_mixings.sel(merged=name)
    values = values.transpose("mixed_run", "mixed_layer", "end").values
    return finite(values[:, np.isfinite(values).any((0, 2))])


def covered(dataset, model: str, layer: str) -> np.ndarray:  # [R]
    """The share of [1, h] that N_l covers over mixings: of layer 1, or of the later layer of which
    mixing covers least."""
    values = over_mixings(dataset, model)
    shares = (values[..., 2] - values[..., 0]) / (most_heads(dataset, model) - 1)
    later = shares[:, 1:]
    return shares[:, 0] if layer == "first" else later[:, later.mean(0).argmin()]


def finite(values):  # [R, ...] -> the runs that are finite
    return values[np.isfinite(values).all(tuple(range(1, values.ndim)))]


def statements(config) -> tuple[Statement, ...]:
    mixed, own = mixable_and_own(config.models)
    families = (*_about_importance(own), *_about_mixing(config.importance, mixed))
    families = (*families, *_about_one_head(config, mixed, own), *_about_other_heads(own))
    return tuple(family for family in families if family.cells)


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


def _about_importance(own: dict):
    """Heads that are their layers' own, taken away one at a time."""
    row = dict(
        over="{seeds} seeds",
        note="what each layer computes determines these heads, among those near them",
        words=lambda model: dict(
            heads=" ".join(map(str, own[model].architecture.rows[-1])),
            seeds=own[model].training.seeds,
        ),
    )
    yield Statement(
        "first",
        A4,
        "All heads of the first layer matter: {model}: {heads}",
        "N_1 / h",
        at_least=ALL_MATTER,
        label="$N_1/h$, {model}",
        sample=first_share,
        cells=having(grid("first.narrow_keys_full first.softmax_full", model=OWN), model=own),
        message="Where heads cannot be mixed, all heads of the first layer matter",
        **row,
    )
    yield Statement(
        "later",
        A4,
        "One head of each later layer is enough: {model}: {heads}",
        "N_l in the later layer with the most effective heads on average",
        at_most=ONE_LATER,
        sample=later_count,
        cells=having(grid("later.narrow_keys_full later.softmax_full", model=OWN), model=own),
        message="Where heads cannot be mixed, one head of each later layer is enough",
        **row,
    )


def _about_mixing(config, mixed: dict):
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
    yield Statement(
        "mixing",
        HERE,
        "{begin}: {model}",
        "(largest - least N_l)/(h - 1) over mixings of the layer's heads, {place}",
        at_least=0.5,
        over="{seeds} seeds",
        note=f"mixings of condition {config.condition:g} or less, chosen on other prompts; a lower "
        "bound, by search",
        revision="added after mixing had moved N_1 of one model from 1.1 to 4.0",
        label="range of {short}, {model}",
        sample=covered,
        cells=having(
            grid(
                "mixing_first.depth_3_full mixing_first.depth_5_full "
                "mixing_later.depth_3_full mixing_later.depth_5_full",
                layer=words,
                model=("depth 3", "depth 5"),
            ),
            model=mixed,
        ),
        words=lambda model, layer: words[layer] | dict(seeds=mixed[model].training.seeds),
        message="By mixing alone, which changes no prediction, the number of effective heads of "
        "the first layer and of each later one covers more than half of its range [1, h]",
    )
