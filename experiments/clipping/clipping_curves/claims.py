"""What `clipping_curves` judges, layer by layer."""

from functools import cached_property, partial

import numpy as np

from experiments.clipping.clipped_models import (
    CUT,
    DROPPED,
    PARTS,
    fresh_prompts,
    gains_by_others,
    spec_of,
)
from lsa_lab.judging.statements import Statement, grid, having
from lsa_lab.store import results

FIGURE_1 = "A2 (2406.03768), figure 1, in our setting"
FIGURE_2 = "A2 (2406.03768), figure 2, our reading, in our setting"
LAST = "last"
SHALLOW = dict(layers=(1, 2), parts=("attention",))  # A2's figure 2; no layer's MLP degrades


class Clipped:
    """A result's risks clipped and unclipped, of answers that are cut."""

    def __init__(self, dataset):
        self.dataset, self.config = dataset, results.config_of(dataset)
        self.spec = spec_of(self.config)
        self.n = max(self.spec.task.lengths)
        # Predicting 0 has this risk: d weights and covariates of variance 1.
        self.unclipped = dataset.unclipped / self.spec.task.d
        self.clipped = self.unclipped + dataset.change / self.spec.task.d
        self.shots = {"few": able(self.unclipped, self.config.able), "trained": self.n}

    @cached_property
    def change(self):  # (run, shots, layer, part, rate)
        """Changes over the risk of the same run unclipped, at as many shots."""
        return self.dataset.change / self.dataset.unclipped

    @cached_property
    def rise(self):  # (run, shots, layer, part)
        """What drastic rates add to the risk, over that of predicting 0; no rate drops all."""
        return self.drastic(self.dataset.change / self.spec.task.d)

    @cached_property
    def factors(self):  # (run, shots, layer, part)
        """Geometric means of what drastic rates multiply the risk by."""
        return np.exp(self.drastic(np.log1p(self.change)))

    def drastic(self, values):
        return values.sel(rate=slice(self.config.high, DROPPED - 1e-9)).mean("rate")

    def place(self, values, part, layer, shots="trained"):  # [R]
        own = values.sel(shots=self.shots[shots], part=part)
        return (own.isel(layer=-1) if layer == LAST else own.sel(layer=layer)).values

    def sharp(self, part, layer):  # [R]
        """The risk with a layer clipped the most, over that of predicting 0, which is a guess: no
        model is worse than one."""
        clipped = self.clipped.sel(rate=max(self.config.rates))
        return np.minimum(self.place(clipped, part, layer), 1)


numbers = Clipped


def able(unclipped, most) -> int:
    """The fewest shots at which unclipped models do the task: their risk is a share of that of
    predicting 0; of shots that are all too few the most."""
    within = unclipped.shots[(unclipped.mean("run") <= most).values]
    return int(within.min() if len(within) else unclipped.shots.max())


def layer_cells(config, ids, layers=(1, 2, 3, LAST), parts=tuple(PARTS)):
    """The cells of some parts and of those layers that the models have."""
    depth = spec_of(config).architecture.depth
    have = [layer for layer in layers if layer == LAST or layer < depth]
    return having(grid(ids, part=parts, layer=layers), layer=have)


def statements(config) -> tuple[Statement, ...]:
    n = max(spec_of(config).task.lengths)
    high = f"a geometric mean over rates from {config.high:g} to {max(config.rates):g},"
    less = f"at few shots less that at {n}, averaged over rates >= {config.high:g},"
    few = f"few: the fewest with {config.able:g} of the risk of predicting 0 or less"
    looked = partial(Statement, redrawn=fresh_prompts(config))
    row = partial(looked, revision=f"by layer; it was an average of two; {CUT}")
    return (
        row(
            "deep_bears_more",
            FIGURE_1,
            "The {part} of layer {layer} of our models tolerates less clipping than that of the "
            "last layer",
            f"the risk with it clipped over that with the last layer clipped, {high}",
            "ratio",
            at_least=1.0,
            sample=lambda c, part, layer: (
                c.place(c.factors, part, layer) / c.place(c.factors, part, LAST)
            ),
            cells=layer_cells(
                config,
                "attention_deep_bears_more attention_2_bears_less attention_3_bears_less",
                (1, 2, 3),
                ("attention",),
            ),
            message="Attention in an earlier layer of our models tolerates less clipping than in "
            "the last one",
        ),
        row(
            "deep_is_flat",
            FIGURE_1,
            "The {part} of layer {layer} of our models can be reduced drastically without much "
            "degradation",
            f"the risk clipped over unclipped, {high}",
            "ratio",
            at_most=1.1,
            note="in the logs of A2's public code accuracy changes by +.003 in the last layers",
            sample=lambda c, part, layer: c.place(c.factors, part, layer),
            cells=layer_cells(
                config,
                "attention_1_is_flat attention_2_is_flat attention_3_is_flat "
                "attention_deep_is_flat mlp_1_is_flat mlp_2_is_flat mlp_3_is_flat mlp_deep_is_flat",
            ),
            message="A layer of our models can be reduced drastically without much degradation",
        ),
        row(
            "shallow_collapses",
            FIGURE_1,
            "Clipping the {part} of layer {layer} sharply leaves our models guessing",
            f"the risk with it clipped at {max(config.rates):g} over that of predicting 0, which "
            "is a guess, and 1 where it is more,",
            at_least=0.9,
            sample=lambda c, part, layer: c.sharp(part, layer),
            cells=layer_cells(
                config,
                "attention_shallow_collapses attention_2_collapses attention_3_collapses "
                "attention_last_collapses mlp_shallow_collapses mlp_2_collapses mlp_3_collapses "
                "mlp_last_collapses",
            ),
            message="Clipping a layer sharply leaves our models guessing",
        ),
        row(
            "few_shots_collapse_less",
            FIGURE_2,
            "With fewer shots, clipping the {part} of layer {layer} multiplies the risk by less",
            f"the factor at few shots over that at {n}, {high}",
            "ratio",
            at_most=1.0,
            note=few,
            sample=lambda c, part, layer: (
                c.place(c.factors, part, layer, "few") / c.place(c.factors, part, layer)
            ),
            cells=layer_cells(
                config,
                "attention_few_shots_collapse_less attention_2_few_shots_collapse_less",
                **SHALLOW,
            ),
            message="With fewer shots, clipping the attention of a shallow layer multiplies the "
            "risk by less",
        ),
        row(
            "few_shots_rise_less",
            FIGURE_2,
            "With fewer shots, clipping the {part} of layer {layer} adds less to the risk",
            f"(risk clipped - unclipped) / risk of predicting 0 {less}",
            at_most=0.0,
            note=few,
            sample=lambda c, part, layer: (
                c.place(c.rise, part, layer, "few") - c.place(c.rise, part, layer)
            ),
            cells=layer_cells(
                config,
                "attention_few_shots_rise_less attention_2_few_shots_rise_less",
                **SHALLOW,
            ),
            message="With fewer shots, clipping the attention of a shallow layer adds less to the "
            "risk",
        ),
        looked(
            "helps",
            "A2 (2406.03768), figures 1 and 2, in our setting",
            "At {number} clipping one part of one layer improves our models",
            "the change of the risk, relative, by the edit that is best for the other runs",
            at_most=-0.01,
            note=f"no edit is chosen by the run that is judged; {few}",
            sample=lambda c, shots: gains_by_others(c.change.sel(shots=c.shots[shots])),
            cells=grid("helps_few helps_trained", shots=("few", "trained")),
            words=lambda shots: dict(number="few shots" if shots == "few" else f"{n} shots"),
            revision=CUT,
        ),
        looked(
            "as_good_as_ridge",
            "A2 (2406.03768), figure 5(a), in our setting",
            f"At {n} shots our models predict about as well as ridge regression",
            "the risk over that of ridge regression on the same prompts",
            "ratio",
            at_most=1.1,
            note="ridge at its best penalty; A2 speaks of least squares",
            revision="added to say how far from trained the models are",
            sample=lambda c: (c.dataset.unclipped / c.dataset.ridge).sel(shots=c.n).values,
        ),
    )
