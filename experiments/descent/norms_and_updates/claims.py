"""What `norms_and_updates` judges: ratios of risks and sizes with norms over without, pair by
pair."""

from functools import partial

import numpy as np

from experiments.descent.norms_and_updates.config import NORMS
from experiments.descent.specs import spec_of
from lsa_lab.judging.statements import Statement
from lsa_lab.judging.statistics import best_elsewhere


def over_without(values) -> np.ndarray:  # (norm, run) -> [R]
    return (values.sel(norm="with") / values.sel(norm="without")).values


def shrunk_ratios(dataset, norm: str = "without", what: str = "shrunk") -> np.ndarray:  # [R, S]
    """Risks on noisier labels with all writes shrunk, or "answers" alone, over those with none."""
    risks = dataset[what].sel(norm=norm)
    ratios = risks.isel(shrinkage=slice(1, None)) / risks.isel(shrinkage=0)
    return ratios.transpose("run", "shrinkage").values


def best_of_the_others(ratios) -> np.ndarray:  # [R, S] -> [R]
    """Each run's ratio at the place with the least mean logarithm over the other runs."""
    return np.exp(-best_elsewhere(-np.log(ratios)))


def over_ridge(dataset):  # (norm, run, step)
    """Excess risks over that of ridge regression with the best penalty, on the same prompts."""
    return dataset.risk / dataset.ridge


def statements(config) -> tuple[Statement, ...]:
    seeds = spec_of(config, NORMS["without"]).training.seeds
    remark = "A2 (2406.03768), Remark 4, our reading, in our setting"
    fresh = dict(over=f"{seeds} pairs of seeds", redrawn=f"{seeds} fresh pairs, 9 before")
    ratio = partial(Statement, statistic="ratio", **fresh)
    over = "with norms over without"
    return (
        ratio(
            "helps",
            remark,
            "A norm before each layer lowers the risk of softmax attention, trained alike",
            f"the excess risk after the training, {over},",
            at_most=0.95,
            note="A2 says that its theory could elucidate the utility of normalisation; by one "
            "recipe, and in regression, which needs the size of a token",
            label="risk",
            sample=lambda d: over_without(d.risk.isel(step=-1)),
        ),
        ratio(
            "smaller_updates",
            remark,
            "It makes the updates of the trained layers smaller",
            f"(Σ_l |ΔW_l|² / |h_l|²)^½ at the query h, in the feature space of A.2, {over}, keys "
            "and queries balanced: of all keys that leave a head's function alone those of mean "
            "zero over prompts whose second moments are those of the queries,",
            at_most=0.9,
            note="medians over prompts; what a layer reads is its input after the norm; in the "
            "basis of the stream as trained: another basis that is no rotation moves the number",
            revision="it was |ΔW| itself, and 2.7, which changes with the units of the stream; "
            "then |ΔW| / |h|, .61 and .92, with keys and queries as the training happened to leave "
            "them: keys c times and queries 1/c times as large are the same function, and moved "
            "the ratio from .3 to 31, its verdict with it",
            label="|ΔW| / |h|",
            sample=lambda d: over_without(np.sqrt((d["update"] ** 2).sum("layer"))),
        ),
        ratio(
            "smaller_writes",
            "derived here",
            "It makes smaller what layers write, beside the token that they write to",
            f"|ΔW φ| / |h| at the query, geometric mean over layers, {over},",
            at_most=0.9,
            note="which no change of keys and queries moves, unless the function changes",
            label="|ΔW φ| / |h|",
            sample=lambda d: over_without(np.exp(np.log(d.written).mean("layer"))),
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
            label="noisy risk, writes shrunk",
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
            label="that / answers shrunk",
            sample=lambda d: (
                best_of_the_others(shrunk_ratios(d))
                / best_of_the_others(shrunk_ratios(d, what="answers"))
            ),
        ),
        ratio(
            "trains_faster",
            "derived here",
            "It lowers the risk after a fifth of the training",
            f"the excess risk there, {over},",
            at_most=0.95,
            note="what else a norm may help: the training",
            label="risk after a fifth",
            sample=lambda d: over_without(d.risk.isel(step=1)),
        ),
    )
