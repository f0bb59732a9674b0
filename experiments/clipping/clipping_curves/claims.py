"""What `clipping_curves` judges."""

from functools import cached_property

import numpy as np

from experiments.clipping.clipping_curves.config import DROPPED
from experiments.clipping.layer_ends import shallow_and_deep
from experiments.clipping.transformers import OWN_PROMPTS, PARTS, fresh, spec_of
from lsa_lab.judging.statements import Statement, grid
from lsa_lab.judging.statistics import mean_interval
from lsa_lab.store import results

FIGURE_1 = "A2 (2406.03768), figure 1, in our setting"
FIGURE_2 = "A2 (2406.03768), figure 2, our reading, in our setting"
PLACES = {"attention": "attention", "MLP": "MLPs"}
# What keeps a mean from being decided, by the 36 runs of the paper tier.
STEEP = {"MLP": "; half of the runs lose 5 % or less, one of twenty a third and more"}
RARE = {"few": "; one run of three gains, up to half of its risk, and the others lose a little"}


def numbers(dataset) -> "Clipped":
    return Clipped(dataset)


class Clipped:
    """A result's changes of the risk, and those after clipping its first and its last layers."""

    def __init__(self, dataset):
        self.dataset, self.config = dataset, results.config_of(dataset)
        self.spec = spec_of(self.config)
        self.n = max(self.spec.task.lengths)
        shots = {"few": int(dataset.shots.min()), "trained": self.n}
        self.shots = shots | {"many": int(dataset.shots.max())}

    @cached_property
    def change(self):  # (run, shots, layer, part, rate)
        """Changes over the risk of the same run unclipped, at as many shots."""
        return self.dataset.change / self.dataset.unclipped

    @cached_property
    def logs(self):
        return np.log10(1 + self.change)

    @cached_property
    def rises(self):
        """Changes as shares of the risk of predicting 0."""
        return self.dataset.change / self.spec.task.d

    def ends(self, values, **place):  # -> two of (run, ...): first layers, last layers
        """Averaged over the drastic rates; dropping is not among them. One layer at a time."""
        drastic = values.sel(rate=slice(self.config.high, DROPPED - 1e-9)).mean("rate")
        return [end.sel(**place) for end in shallow_and_deep(drastic, self.config.ends)]

    def guess(self, part):  # [R]
        """The risk with the first layers clipped the most, over that of predicting 0."""
        clipped = (self.dataset.change + self.dataset.unclipped) / self.spec.task.d
        clipped = clipped.sel(rate=max(self.config.rates), shots=self.n, part=part)
        return shallow_and_deep(clipped, self.config.ends)[0].values

    def first(self, values, part, shots):  # [R]
        return self.ends(values, part=part, shots=self.shots[shots])[0].values

    def last(self, values, part):  # [R]
        return self.ends(values, part=part, shots=self.n)[1].values


def gains_by_others(changes):  # (run, layer, part, rate) -> [R]
    """The change of each run by that edit which is best, on average, for all the other runs."""
    table = changes.transpose("run", ...).values.reshape(changes.sizes["run"], -1)
    others = table.sum(0, keepdims=True) - table
    return table[np.arange(len(table)), others.argmin(1)]


def sides(changes):  # (run, ...) -> (...): -1, 0 or 1
    """The side of zero on which the interval over runs lies as a whole."""
    table = changes.transpose("run", ...).values
    intervals = map(mean_interval, table.reshape(len(table), -1).T)
    signs = [np.sign(low) * (np.sign(low) == np.sign(high)) for low, high in intervals]
    return changes.isel(run=0, drop=True).copy(data=np.reshape(signs, table.shape[1:]))


def statements(config) -> tuple[Statement, ...]:
    n, few = max(spec_of(config).task.lengths), min(config.shots)
    first, last = f"the first {config.ends} layers", f"the last {config.ends} layers"
    high = f"averaged over rates >= {config.high:g}"
    less = f"less that at {n}, {first}, one at a time, {high},"
    looked = dict(revision=OWN_PROMPTS, redrawn=fresh(config))
    shots = {"few": few, "trained": n, "many": max(config.shots)}

    def of_part(part):
        return dict(place=PLACES[part], steep=STEEP.get(part, ""))

    return (
        Statement(
            "deep_bears_more",
            FIGURE_1,
            "In the {place} of our models shallow layers tolerate less clipping than deep ones",
            f"log10 of the risk with {first} clipped over that with {last} clipped, one at a time, "
            f"{high},",
            at_least=0.0,
            label="{part}: first / last layers",
            sample=lambda c, part: c.first(c.logs, part, "trained") - c.last(c.logs, part),
            cells=grid("attention_deep_bears_more mlp_deep_bears_more", part=PARTS),
            words=of_part,
            **looked,
        ),
        Statement(
            "deep_is_flat",
            FIGURE_1,
            "In the {place} of our models deep layers can be reduced drastically without much "
            "degradation",
            f"the change of the risk, relative, of {last}, one at a time, {high},",
            at_most=0.1,
            note="in the logs of A2's public code accuracy changes by +.003{steep}",
            label="{part}: rise, last layers",
            sample=lambda c, part: c.last(c.change, part),
            cells=grid("attention_deep_is_flat mlp_deep_is_flat", part=PARTS),
            words=of_part,
            **looked,
        ),
        Statement(
            "shallow_collapses",
            FIGURE_1,
            "Clipping the {place} of a shallow layer sharply leaves our models guessing",
            f"the risk with {first} clipped at {max(config.rates):g}, one at a time, over that of "
            "predicting 0,",
            at_least=0.9,
            label="{part}: first clipped / predicting 0",
            sample=lambda c, part: c.guess(part),
            cells=grid("attention_shallow_collapses mlp_shallow_collapses", part=PARTS),
            words=of_part,
            **looked | {"revision": "added"},
        ),
        Statement(
            "few_shots_collapse_less",
            FIGURE_2,
            "With fewer shots, clipping shallow {place} multiplies the risk by less",
            f"log10(risk clipped / unclipped) at {few} shots {less}",
            at_most=0.0,
            note="unclipped risks at few shots are nearer to the ceiling, that of predicting 0",
            label=f"{{part}}: few / {n} shots",
            sample=lambda c, part: c.first(c.logs, part, "few") - c.first(c.logs, part, "trained"),
            cells=grid("attention_few_shots_collapse_less mlp_few_shots_collapse_less", part=PARTS),
            words=of_part,
            **looked | {"revision": f"it was the rise of the risk; {OWN_PROMPTS}"},
        ),
        Statement(
            "few_shots_rise_less",
            FIGURE_2,
            "With fewer shots, clipping shallow {place} adds less to the risk",
            f"(risk clipped - unclipped) / risk of predicting 0 at {few} shots {less}",
            at_most=0.0,
            label=f"{{part}}: rise, few less {n} shots",
            sample=lambda c, part: (
                c.first(c.rises, part, "few") - c.first(c.rises, part, "trained")
            ),
            cells=grid("attention_few_shots_rise_less mlp_few_shots_rise_less", part=PARTS),
            words=of_part,
            **looked | {"revision": f"the first reading, under a name of its own; {OWN_PROMPTS}"},
        ),
        Statement(
            "helps",
            "A2 (2406.03768), figures 1 and 2, in our setting",
            "At {number} shots clipping one part of one layer improves our models",
            "the change of the risk, relative, by the edit that is best for the other runs",
            at_most=-0.01,
            note="leaving out the run that is judged, no edit is chosen by its own result{rare}",
            label="best edit, {number} shots",
            sample=lambda c, shots: gains_by_others(c.change.sel(shots=c.shots[shots])),
            cells=grid("helps_few helps_trained helps_many", shots=("few", "trained", "many")),
            words=lambda shots, number=shots: dict(number=number[shots], rare=RARE.get(shots, "")),
            **looked,
        ),
        Statement(
            "as_good_as_ridge",
            "A2 (2406.03768), figure 5(a), in our setting",
            f"At {n} shots our models predict about as well as ridge regression",
            "the risk over that of ridge regression on the same prompts",
            "ratio",
            at_most=1.1,
            note="ridge at its best penalty; A2 speaks of least squares",
            revision="added, to say how far from trained the models are",
            redrawn=fresh(config),
            sample=lambda c: (c.dataset.unclipped / c.dataset.ridge).sel(shots=c.n).values,
        ),
    )
