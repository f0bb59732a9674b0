"""What `norms_and_updates` judges: ratios of risks and sizes with norms over without, pair by pair,
and slopes of sizes over the number of shots."""

from functools import partial

import numpy as np

from experiments.descent.norms_and_updates.config import NORMS
from experiments.descent.specs import spec_of
from lsa_lab.judging.statements import Statement
from lsa_lab.judging.statistics import best_elsewhere
from lsa_lab.store import parts

# A size by its stack and name: what its growth would say, and a note.
GROWING = {
    ("linear", "update"): (
        "The updates |G_t| of a trained linear stack grow",
        "divided by n, as our layers are; of the first layer a theorem says how it falls",
    ),
    ("softmax", "update"): (
        "The updates |ΔW| of trained softmax attention grow",
        "in the feature space of A.2, keys as trained: keys 4 times and queries 1/4 times as large "
        "are the same function, and the slope is then .7 ± .7; balanced it is -.44 ± .11",
    ),
    ("softmax", "written"): ("What a softmax layer adds to the query, |ΔW φ|, grows", ""),
    ("linear", "paper"): (
        "Without the division by n, as in A2, the updates n |G_t| of a trained linear stack grow",
        "of the weights trained with it",
    ),
    ("softmax", "paper"): (
        "Without the normaliser, as A2's linear layers have none, the updates Z |ΔW| of trained "
        "softmax attention grow",
        "keys as trained: with keys 1/8 to 8 times as large, and queries 8 to 1/8 times, the same "
        "function, the slope is .35 to 6.8; balanced .59 ± .07",
    ),
    ("softmax", "change"): ("What clipping W_V changes of |ΔW φ| grows", ""),
    ("softmax", "relative change"): (
        "What clipping W_V changes of |ΔW φ|, as a share of it, grows",
        "",
    ),
}
LITERAL = (("linear", "update"), ("softmax", "update"), ("softmax", "change"))


def norm_ratios(values) -> np.ndarray:  # (norm, run) -> [R]
    return (values.sel(norm="with") / values.sel(norm="without")).values


def shrunk_ratios(dataset, norm: str = "without", what: str = "shrunk") -> np.ndarray:  # [R, S]
    """Risks on noisier labels with all writes shrunk, or "answers" alone, over those with none."""
    risks = dataset[what].sel(norm=norm)
    ratios = risks.isel(shrinkage=slice(1, None)) / risks.isel(shrinkage=0)
    return ratios.transpose("run", "shrinkage").values


def best_of_the_others(ratios) -> np.ndarray:  # [R, S] -> [R]
    """Each run's ratio at the place with the least mean logarithm over the other runs."""
    return np.exp(-best_elsewhere(-np.log(ratios)))


def ratio_to_ridge(dataset):  # (norm, run, step)
    """Excess risks over that of ridge regression with the best penalty, on the same prompts."""
    return dataset.risk / dataset.ridge


def slope(dataset, stack, size) -> np.ndarray:  # [R]
    """d log size / d log n from half to twice the shots of training, the mean over layers."""
    shots = parts.part(dataset, "by_shots")
    sizes = shots["size"].sel(kind=size) if stack == "softmax" else shots.linear
    layer, divided = ("layer", 0) if stack == "softmax" else ("linear_layer", size == "paper")
    logs = np.log(sizes).mean(layer)
    return ((logs.sel(factor=2.0) - logs.sel(factor=0.5)) / np.log(4)).values + divided


def statements(config) -> tuple[Statement, ...]:
    return (*about_norms(config), about_shots(config.by_shots))


def about_norms(config) -> tuple[Statement, ...]:
    seeds = spec_of(config, NORMS["without"]).training.seeds
    remark = "A2 (2406.03768), Remark 4, our reading, in our setting"
    fresh = dict(over=f"{seeds} pairs of seeds", redrawn=f"{seeds} fresh pairs, 9 before")
    ratio = partial(Statement, statistic="ratio", **fresh)
    return (
        ratio(
            "helps",
            remark,
            "A norm before each layer lowers the risk of softmax attention, trained alike",
            "the excess risk after the training, with norms over without,",
            at_most=0.95,
            note="A2 says that its theory could elucidate the utility of normalisation; by one "
            "recipe, and in regression, which needs the size of a token",
            sample=lambda d: norm_ratios(d.risk.isel(step=-1)),
        ),
        ratio(
            "smaller_updates",
            remark,
            "A norm before each layer makes the updates of the trained layers smaller",
            "the size of all updates beside the query's token h, (Σ_l |ΔW_l|² / |h_l|²)^½, with "
            "norms over without,",
            at_most=0.9,
            note="in the feature space of A.2, medians over prompts; keys and queries balanced: of "
            "all keys that leave a head's function alone those of mean zero over prompts whose "
            "second moments are those of the queries; what a layer reads is its input after the "
            "norm; another basis of the stream that is no rotation moves the number",
            revision="it was |ΔW| itself, and 2.7, which changes with the units of the stream; "
            "then |ΔW| / |h|, .61 and .92, with keys and queries as the training happened to leave "
            "them: keys c times and queries 1/c times as large are the same function, and moved "
            "the ratio from .3 to 31, its verdict with it",
            sample=lambda d: norm_ratios(np.sqrt((d["update"] ** 2).sum("layer"))),
        ),
        ratio(
            "shrinking_helps_noisy",
            remark,
            "Without norms, smaller updates lower the risk on labels noisier than in training",
            f"the excess risk on prompts with {config.noisier:g} times the noise of training, all "
            "writes shrunk by the factor that is best for the other pairs of "
            f"{', '.join(f'{s:g}' for s in config.shrinkages)}, over that without,",
            at_most=0.99,
            note="what a norm is said to help by, done to models that have none",
            revision="it was judged on prompts as in training, and 1.00: there a trained model is "
            "stationary, also against shrinking, and no gain could be seen, whatever is true",
            sample=lambda d: best_of_the_others(shrunk_ratios(d)),
        ),
        ratio(
            "shrinking_beats_answers",
            "derived here",
            "Shrunk writes lower that risk more than shrunk answers alone do",
            "the same risk with all writes shrunk over that with the answers alone, each by the "
            "factor that is best for the other pairs,",
            at_most=1.0,
            revision="added to these runs: a rival that changes no layer",
            redrawn="",
            sample=lambda d: (
                best_of_the_others(shrunk_ratios(d))
                / best_of_the_others(shrunk_ratios(d, what="answers"))
            ),
        ),
    )


def about_shots(config) -> Statement:
    def words(stack, size):
        subject, note = GROWING[stack, size]
        reading = "" if (stack, size) in LITERAL else "our reading, "
        source = f"A2 (2406.03768), Remark 6 (ii), {reading}in our setting"
        return dict(source=source, subject=subject, note=note)

    return Statement(
        "grows",
        "{source}",
        "{subject} with the number of demonstrations",
        "the slope over log n of the log of its size, the median over prompts and geometric mean "
        "over layers, from half to twice the shots of training,",
        at_least=0.0,
        note="{note}",
        revision="it was the root mean square over prompts, averaged over layers, which at few "
        "shots a rare prompt decides, and was once not finite",
        redrawn="fresh prompts",
        sample=slope,
        cells={
            "linear_grows": dict(stack="linear", size="update"),
            "linear_grows_as_in_the_paper": dict(stack="linear", size="paper"),
            "softmax_grows": dict(stack="softmax", size="update"),
            "softmax_grows_as_in_the_paper": dict(stack="softmax", size="paper"),
            "written_grows": dict(stack="softmax", size="written"),
            "more_sensitive": dict(stack="softmax", size="change"),
            "relatively_more_sensitive": dict(stack="softmax", size="relative change"),
        },
        words=words,
        message="Updates of trained layers, what they write and what clipping W_V at rate "
        f"{config.rate:g} changes of it, medians over prompts, grow with the number of "
        "demonstrations",
    )
