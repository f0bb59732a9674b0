"""What every rule loses at every place of the panels, on common prompts."""

import math
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jax import Array

from experiments.heads import sparse_rules
from experiments.heads.rule_names import SPARSE_BAYES
from experiments.heads.sparse_risk.config import LAWS, PLAIN, RULES, Config
from lsa_lab import estimators
from lsa_lab.prompts import Prompt
from lsa_lab.store import parts
from lsa_lab.tasks.linear import LinearTask
from lsa_lab.theory.risk import rotation_invariant_bound


class Place(NamedTuple):
    """The task of one point in a figure; E |w|² = 1."""

    n: int
    d: int
    s: int
    noise_var: float
    signal: str = "flat"

    @property
    def condensed(self) -> LinearTask:
        """The task, with its noise, of the e = d + 1 rows that stand for n demonstrations."""
        e = self.d + 1
        noise_std = math.sqrt(self.noise_var * e / self.n)
        given = dict(sparsity=self.s, weight_std=self.s**-0.5, signal=self.signal)
        return LinearTask(e, self.d, noise_std=noise_std, **given)


def mean_losses(config, place: Place, rng, bayes) -> np.ndarray:  # [rules, R]
    """|ŵ - w|² of PLAIN and of the rules in ``bayes``, their parameters chosen on other prompts."""
    counts = (config.runs * config.prompts, config.tuning)
    judged, tuning = [draw(rng, place, count) for count in counts]
    unit = math.sqrt(2 * place.noise_var * math.log(max(place.d, 2)) / place.n)
    given = unit * np.array(sparse_rules.MULTIPLES), place.noise_var * place.d / place.n
    each = np.array(losses(judged, tuning, *given, doublings=config.doublings))
    if place.n <= place.d + 1:  # the mean risk of least squares is infinite, or it is not unique
        each[0] = np.nan
    rest = [_distance(_weights(rule, judged[0], place.condensed), judged[1]) for rule in bayes]
    return np.stack([*each, *rest]).reshape(-1, config.runs, config.prompts).mean(2)


_weights = jax.jit(sparse_rules.weights, static_argnums=0)


def draw(rng, place: Place, size: int) -> tuple[Prompt, np.ndarray]:
    """Prompts [B] with e = d + 1 demonstrations that stand for n, and their w [B, d].

    All rules here depend on demonstrations through XᵀX/n, Xᵀy/n and y·y/n alone, and Bartlett's
    factor has the moments of n rows [x, ε] in e, or in n if these are fewer.
    """
    e = place.d + 1
    factor = np.tril(rng.standard_normal((size, e, e)), -1)
    kept = range(min(place.n, e))
    freedom = place.n - np.arange(len(kept))
    factor[:, kept, kept] = np.sqrt(rng.chisquare(freedom, (size, len(kept))))
    factor[:, :, len(kept) :] = 0
    rows = factor.swapaxes(1, 2) * math.sqrt(e / place.n)
    rank = rng.random((size, place.d)).argsort(1)
    if place.signal == "flat":
        values = rng.choice([-1, 1], (size, place.d))
    else:
        values = rng.standard_normal((size, place.d))
    w = np.where(rank < place.s, values, 0) * place.s**-0.5
    y = np.einsum("bnd,bd->bn", rows[..., :-1], w) + math.sqrt(place.noise_var) * rows[..., -1]
    return Prompt(rows[..., :-1], y, np.zeros_like(w), np.zeros(size)), w


@partial(jax.jit, static_argnames="doublings")
def losses(judged: tuple, tuning: tuple, of_lasso, of_ridge, *, doublings: int) -> Array:
    """|ŵ - w|² of PLAIN [rules, B], the Lasso with the best of its penalties."""
    batch, w = judged
    rows = []
    for rule in (sparse_rules.descent_path, sparse_rules.preprocessed_path):
        path = jax.vmap(partial(rule, doublings=doublings))
        steps = jnp.argmin(_distance(path(tuning[0]), tuning[1][:, None]).mean(0))
        rows.append(_distance(path(batch)[:, steps], w))

    def lasso(penalty, prompts):
        of_prompt = partial(estimators.lasso, penalty=penalty)
        return _distance(jax.vmap(of_prompt)(prompts[0]), prompts[1])

    best = jnp.argmin(jax.lax.map(lambda each: lasso(each, tuning).mean(), of_lasso))
    squares, ridged = (
        _distance(jax.vmap(partial(sparse_rules.ridge, penalty=penalty))(batch), w)
        for penalty in (0, of_ridge)
    )
    oracle = _distance(jax.vmap(sparse_rules.oracle_weights)(batch, w), w)
    lassoed = lasso(of_lasso[best], judged)
    return jnp.stack([squares, rows[0], ridged, rows[1], lassoed, oracle])


def _distance(estimates: Array, truth: Array) -> Array:  # [..., d] -> [...]
    return ((estimates - truth) ** 2).sum(-1)


def compute(config: Config, *, progress=None, checkpoints=None):
    whole = measured(config, orders(config), RULES)
    for panel, (axes, places) in orders(config).items():
        own = [rotation_invariant_bound(place.n, place.d, place.noise_var) for place in places]
        whole[f"{panel}_bound"] = (tuple(axes), np.reshape(own, [*map(len, axes.values())]))
    rates = measured(config.rates, rate_orders(config.rates))
    return parts.join(whole, rates=rates, duel=measured(config.duel, duels(config.duel)))


def orders(config: Config) -> dict[str, tuple[dict, list[Place]]]:
    """{panel: ({axis: values}, the place of each of its points)}"""
    usual = dict(n=config.n, d=config.d, s=config.s, noise_var=config.loud, signal=LAWS[0])

    def vary(key, values, **own):
        return [Place(**usual | own | {key: value}) for value in values]

    laws = [*vary("signal", LAWS), *vary("s", [config.d])]
    return {
        "by_n": ({"n": config.lengths}, vary("n", config.lengths, noise_var=config.noise_var)),
        "by_noise": ({"noise_var": config.noise_vars}, vary("noise_var", config.noise_vars)),
        "by_s": ({"s": config.sparsities}, vary("s", config.sparsities)),
        "by_law": ({"law": ("Gaussian", "Flat", "dense")}, laws),
    }


def rate_orders(config) -> dict[str, tuple[dict, list[Place]]]:
    """The same of the rates: along each panel one number grows."""
    d, s, noise_var, longest = config.d, config.s, config.noise_var, config.lengths[-1]
    axes = {"n": config.lengths, "s": config.sparsities, "d": config.widths}

    def panel(axis, n):
        still = {"n": n, "d": d, "s": s, "noise_var": noise_var}
        return {axis: axes[axis]}, [Place(**still | {axis: value}) for value in axes[axis]]

    return {
        **{f"by_{axis}": panel(axis, longest) for axis in axes},
        **{f"short_by_{axis}": panel(axis, config.middle) for axis in ("s", "d")},
    }


def duels(config) -> dict[str, tuple[dict, list[Place]]]:
    """The same of the duel with the Lasso."""
    axes = {"law": LAWS, "width": config.widths, "per_d": config.per_d}
    places = [
        Place(ratio * d, d, config.s, config.noise_var, law)
        for law in LAWS
        for d in config.widths
        for ratio in config.per_d
    ]
    return {"risk": (axes, places)}


def measured(config, panels: dict, rules: tuple[str, ...] = PLAIN):
    """The Dataset of mean losses of every rule in every run, each place with prompts of its own."""
    everywhere = dict.fromkeys(place for _, places in panels.values() for place in places)
    rows = {}
    for i, place in enumerate(everywhere):
        few = math.comb(place.d, place.s) <= getattr(config, "supports", 0)
        bayes = [rule for rule in rules[len(PLAIN) :] if few or rule != SPARSE_BAYES]
        risks = mean_losses(config, place, np.random.default_rng([config.seed, i]), bayes)
        rows[place] = np.full((len(rules), config.runs), np.nan)  # of a rule that is not to be had
        rows[place][: len(risks)] = risks
    variables, coordinates = {}, {"rule": list(rules)}
    for panel, (axes, places) in panels.items():
        risks = np.stack([rows[place] for place in places])
        risks = risks.reshape(*map(len, axes.values()), *risks.shape[1:])
        variables[panel] = (*axes, "rule", "run"), risks
        coordinates |= {axis: list(values) for axis, values in axes.items()}
    return xr.Dataset(variables, coordinates)
