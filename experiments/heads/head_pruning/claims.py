"""What `head_pruning` judges: effective heads, and risks of models with heads taken away.

Bounds on N are older than its first run, but for one seed of some models, looked at before with
other programs. After first runs numbers of prompts were lowered, for time. Then it was seen that
heads as wide as a token can be mixed, which changes no prediction (docs/theory, "Heads are not
unique"), after N_1 of one model had been moved from 1.1 to 4.0: what was judged of their importance
is judged of narrow keys and of softmax, and of mixed heads the best that any mixing can keep. Risks
are at one n since then. The null of importances was added after a look at N_1.
"""

from functools import partial
from itertools import combinations

import numpy as np

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
from experiments.heads.rule_names import seeds_of, select_case
from lsa_lab.judging.statements import Statement, grid, having
from lsa_lab.store import parts

A4 = "A4 (2408.04532), abstract, in our setting"
MODELLED = "modelled on A4 (2408.04532), abstract"
OVER_FULL = "the risk over that of the full model"
UNCHANGED = 1.1  # at most this ratio of risks is none to speak of
ONE_LATER = 1.5  # N_l of a later layer: at most this is one
OWN = ("narrow keys", "softmax")  # models whose heads cannot be mixed


def ratios(dataset, case: str, treatment: str, over: str = FULL) -> np.ndarray:  # [R]
    """A treatment's risk over another's; runs without either are left out."""
    risk = select_case(dataset.risk, case)
    quotient = (risk.sel(treatment=treatment) / risk.sel(treatment=over)).values
    return quotient[np.isfinite(quotient)]


def geometric_mean(quotients) -> float:
    return float(np.exp(np.log(quotients).mean()))


def rises(dataset, model: str) -> np.ndarray:  # [R, L, h]
    """How much the risk rises without each head, in the runs of a model that did not diverge."""
    rise = parts.part(dataset, "importance").rise.sel(model=model)
    values = rise.dropna("layer", how="all").transpose("run", "layer", "head").values
    return values[np.isfinite(values).all((1, 2))]


def first_share(dataset, model: str):  # [R], None if all runs diverged
    """N_1 / h."""
    rise = rises(dataset, model)
    return count_of(rise)[:, 0] / rise.shape[2] if len(rise) else None


def later_count(dataset, model: str):  # [R], None if all runs diverged
    """N_l of the later layer where it is most on average."""
    later = count_of(rises(dataset, model))[:, 1:]
    return later[:, later.mean(0).argmax()] if len(later) else None


def exchanged_ratio(dataset, model: str, unit: str):  # [R], None if no run has such layers
    """N_1 over its mean when layers are exchanged, or single heads, of which any h may then be the
    first layer's; in runs in which heads of all layers matter."""
    rise = rises(dataset, model)
    rise = rise[count_of(rise).all(1)]
    if not len(rise):
        return None
    if unit == "layers":
        null = count_of(rise).mean(1)
    else:
        picked = list(combinations(range(rise[0].size), rise.shape[2]))
        null = count_of(rise.reshape(len(rise), -1)[:, picked]).mean(1)
    return count_of(rise)[:, 0] / null


def count_of(rise: np.ndarray) -> np.ndarray:  # [..., h] -> [...]
    """exp(entropy) of rises as shares of their sum; a rise below 0 counts as none."""
    rise = np.maximum(rise, 0)
    share = rise / np.maximum(rise.sum(-1, keepdims=True), np.finfo(float).tiny)
    entropy = -(share * np.log(np.where(share > 0, share, 1))).sum(-1)
    return np.where(share.any(-1), np.exp(entropy), 0)


def statements(config) -> tuple[Statement, ...]:
    mixed, own = mixable_and_own(config.models)
    families = (*_about_importance(own), *_about_one_head(mixed, own), _about_other_heads(own))
    return tuple(family for family in families if family.cells)  # a tier may lack models


def _about_one_head(mixed: dict, own: dict):
    """One head in each later layer, over the full model."""
    specs, ratio = mixed | own, partial(Statement, statistic="ratio")

    def cells(ids: str, *names: str, among=specs) -> dict:
        over = seeds_of(specs[name] for name in names if name in among)
        return dict(cells=having(grid(ids, model=names), model=among), over=over)

    best = dict(
        measured=f"{OVER_FULL}, the heads being chosen and mixed on other prompts,",
        note="an upper bound, by search, on the least over all mixings",
        sample=lambda d, model: ratios(d, model, MIXED),
    )
    yield ratio(
        "pruned",
        A4,
        "Where heads cannot be mixed, all but the most important one of each later layer can be "
        "removed without retraining",
        OVER_FULL,
        at_most=UNCHANGED,
        sample=lambda d, model: ratios(d, model, PRUNED),
        **cells("narrow softmax", *OWN),
    )
    yield ratio(
        "best_mixed",
        MODELLED,
        "One head in each later layer, the best of all that mixing the heads of the layer can "
        "give, costs nothing without retraining",
        at_most=UNCHANGED,
        revision="before, the most important head as trained was judged, which mixing changes; "
        "long training was added",
        **cells(
            "best_mixed_depth_3 best_mixed_depth_5 best_mixed_long_training",
            "depth 3",
            "depth 5",
            "long training",
        ),
        **best,
    )
    yield ratio(
        "dense",
        "derived here",
        "Control: on the dense task, which needs no preprocessing, such kept heads cost little",
        unjudged=f"the bound of {UNCHANGED:g} lies in the interval of five seeds",
        **cells("best_mixed_dense", "dense"),
        **best,
    )
    yield ratio(
        "trained",
        "A4 (2408.04532), abstract, our reading, in our setting",
        "A model trained with one head in each later layer is as good as the full one",
        OVER_FULL,
        at_most=UNCHANGED,
        revision="{added}",
        sample=lambda d, model: ratios(d, model, TRAINED),
        **cells(
            "trained_depth_3 trained_depth_5 trained_narrow_keys",
            "depth 3",
            "depth 5",
            "narrow keys",
            among=[m for m in specs if "first" in specs[m].architecture.places],
        ),
        words=lambda model: dict(added="added" if model in OWN else ""),
    )


def _about_other_heads(own: dict):
    """What else may be kept, in place of the most important head of each later layer."""
    return Statement(
        "other_heads",
        MODELLED,
        "To keep {kept} costs more than to keep the top head of each later layer",
        "the risk over that of the pruned model",
        "ratio",
        at_least=1.0,
        over=seeds_of(own.values()),
        revision="before, it was judged of heads that can be mixed",
        sample=lambda d, model, kept: ratios(d, model, kept, PRUNED),
        cells=having(
            grid(
                "first_layer_narrow_keys random_heads_narrow_keys at_random_narrow_keys "
                "first_layer_softmax random_heads_softmax at_random_softmax",
                model=OWN,
                kept=(FIRST, OTHERS, ANY),
            ),
            model=own,
        ),
        message="To keep only the top head of the first layer, other heads of the later layers, or "
        "as many at random costs more than to keep the top head of each later layer",
    )


def _about_importance(own: dict):
    """Heads that are their layers' own, taken away one at a time."""
    row = partial(Statement, source=A4, over=seeds_of(own.values()))
    yield row(
        "first",
        says="Where heads cannot be mixed, all heads of the first layer matter",
        measured="N_1 / h",
        unjudged="its bound of .75 was arbitrary; first_exchanged has the null",
        revision="it was judged, at .75 or more",
        sample=first_share,
        cells=having(grid("first.narrow_keys_full first.softmax_full", model=OWN), model=own),
    )
    yield row(
        "first_exchanged",
        says="More heads of the first layer matter than if importances were exchanged between "
        "layers",
        measured="N_1 over its mean when {unit} are exchanged",
        statistic="ratio",
        at_least=1.0,
        note="a null: whole layers in all orders, or any h heads of the model",
        revision="added, for N_1 / h alone has no null",
        sample=exchanged_ratio,
        cells=having(
            grid(
                "layers_narrow_keys heads_narrow_keys layers_softmax heads_softmax",
                model=OWN,
                unit=("layers", "heads"),
            ),
            model=own,
        ),
    )
    yield row(
        "later",
        says="Where heads cannot be mixed, one head of each later layer is enough",
        measured="N_l in the later layer with the most effective heads on average",
        at_most=ONE_LATER,
        sample=later_count,
        cells=having(grid("later.narrow_keys_full later.softmax_full", model=OWN), model=own),
    )
