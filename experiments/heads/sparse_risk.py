"""Is descent on preprocessed covariates better than ridge, and as good as the Lasso (A4)?

Sparse regression in our setting: x ~ N(0, I), a weight vector with s non-zeros at random places and
E |w|² = 1. Preprocessed descent is gradient descent on r_j x_j, r = Xᵀy/n. Each rule knows the
task: its number of steps or its penalty is the best on other prompts. Excess risk is E |ŵ - w|².
Ridge has the right penalty and is then the best of all rules linear in the labels that treat all
directions alike, plain descent among them (docs/theory, "The rotation-invariant bound").
"""

import itertools
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from lsa_lab import estimators
from lsa_lab.lab import Claim, compute_each, geometric_mean, main, plotting
from lsa_lab.prompts import Prompt

PREPROCESSED, RIDGE, LASSO = RULES = ("preprocessed descent", "ridge", "Lasso")
LAWS = ("Gaussian", "flat")  # of non-zeros: normal, or ± 1/√s
MULTIPLES = tuple(0.05 * 1.5**k for k in range(10))  # of σ √(2 log d / n): the Lasso's penalties
RATES = ("n", "s", "d")  # one grows, the others stay
EXPONENTS = {PREPROCESSED: (-1, 1, 0), RIDGE: (-1, 0, 1)}  # of n, s and d that we expect


@dataclass(frozen=True)
class Config:
    widths: tuple[int, ...] = (12, 48)  # values of d
    per_d: tuple[int, ...] = (1, 2, 4, 16)  # demonstrations for each covariate
    s: int = 3  # non-zeros
    noise_var: float = 0.5  # of a label, whose signal has variance 1
    sparsities: tuple[int, ...] = (1, 2, 4, 8, 12)  # at the first width, which is dense at the end
    sparsities_per_d: int = 3  # demonstrations for each covariate there
    lengths: tuple[int, ...] = (2048, 4096, 8192, 16_384)  # n of the rates; they have flat weights
    rate_d: int = 48  # where n or s grows
    rate_sparsities: tuple[int, ...] = (1, 2, 4, 8)  # at the longest n
    rate_widths: tuple[int, ...] = (12, 24, 48, 96)  # at the longest n
    doublings: int = 12  # of the number of steps, at most
    prompts: int = 64  # of a run
    tuning: int = 256  # other prompts, which choose the number of steps and the Lasso's penalty
    runs: int = 32
    seed: int = 1801


TIERS = {
    "smoke": Config((3,), (1, 4), 1, sparsities=(1, 3), lengths=(64, 128), rate_d=3,
                    rate_sparsities=(1, 2), rate_widths=(3, 6), doublings=3, prompts=8, tuning=8,
                    runs=3, seed=1),
    "quick": Config((12,), sparsities=(1, 4, 12), lengths=(2048, 8192), rate_d=16,
                    rate_sparsities=(1, 4), rate_widths=(16, 32), prompts=32, tuning=64, runs=9,
                    seed=2),
    "full": Config(),
}  # fmt: skip


class Place(NamedTuple):
    """The task of one point in a figure; E |w|² = 1."""

    n: int
    d: int
    s: int
    law: str
    noise_var: float


def draw(rng, place, size):  # -> Prompt [B] of e rows, w [B, d]
    """Draw prompts with the moments of n demonstrations in e = d + 1 rows (Bartlett's factor)."""
    n, d, s, law, noise_var = place
    e = d + 1
    factor = np.tril(rng.standard_normal((size, e, e)), -1)
    kept = np.arange(min(n, e))
    factor[:, kept, kept] = np.sqrt(rng.chisquare(n - kept, (size, len(kept))))
    factor[:, :, len(kept) :] = 0
    rows = factor.swapaxes(1, 2) * (e / n) ** 0.5
    values = rng.choice([-1, 1], (size, d)) if law == "flat" else rng.standard_normal((size, d))
    w = np.where(rng.random((size, d)).argsort(1) < s, values, 0) * s**-0.5
    y = np.einsum("bnd,bd->bn", rows[..., :-1], w) + noise_var**0.5 * rows[..., -1]
    return Prompt(rows[..., :-1], y, np.zeros_like(w), np.zeros(size)), w


def preprocessed_path(prompt, doublings):  # -> [C, d]
    """Return the weights of preprocessed descent after 1, 2, 4, ... steps of size 1/λ_max.

    In the eigenvectors v of RHR, θ_t = Σ_k v_k (v_k·Rr) (1 - (1 - κ_k/κ_max)^t)/κ_k and w = Rθ.
    """
    hessian, r = prompt.x.T @ prompt.x / len(prompt.y), prompt.x.T @ prompt.y / len(prompt.y)
    curvatures, basis = jnp.linalg.eigh(r[:, None] * hessian * r[None])
    curvatures = jnp.maximum(curvatures, 1e-15 * curvatures[-1])
    steps = jnp.asarray(2.0 ** np.arange(doublings + 1), r.dtype)
    fractions = jnp.minimum(curvatures / curvatures[-1], 1)
    gains = -jnp.expm1(steps[:, None] * jnp.log1p(-fractions)[None]) / curvatures[None]
    return (gains * (basis.T @ (r * r))[None]) @ basis.T * r[None]


def measure_distance(estimates, truth):  # [..., d] -> [...]
    return ((estimates - truth) ** 2).sum(-1)


@partial(jax.jit, static_argnames="doublings")
def measure_losses(judged, tuning, penalties, ridge_penalty, doublings):  # -> [rules, B]
    """Return |ŵ - w|² of RULES; what is free is the best on the mean over the tuning prompts."""
    batch, w = judged
    path = jax.vmap(partial(preprocessed_path, doublings=doublings))
    steps = jnp.argmin(measure_distance(path(tuning[0]), tuning[1][:, None]).mean(0))

    def lasso(penalty, prompts):
        weights = jax.vmap(partial(estimators.lasso, penalty=penalty))(prompts[0])
        return measure_distance(weights, prompts[1])

    best = jnp.argmin(jax.lax.map(lambda penalty: lasso(penalty, tuning).mean(), penalties))
    ridge = jax.vmap(partial(estimators.ridge, penalty=ridge_penalty))(batch)
    descent = measure_distance(path(batch)[:, steps], w)
    return jnp.stack([descent, measure_distance(ridge, w), lasso(penalties[best], judged)])


def measure_place(config, places, i):  # -> [R, rules]
    place, rng = places[i], np.random.default_rng([config.seed, i])
    judged = draw(rng, place, config.runs * config.prompts)
    tuning = draw(rng, place, config.tuning)
    unit = (2 * place.noise_var * np.log(max(place.d, 2)) / place.n) ** 0.5
    penalties = unit * np.array(MULTIPLES), place.noise_var * place.d / place.n
    losses = np.asarray(measure_losses(judged, tuning, *penalties, doublings=config.doublings))
    return losses.reshape(len(RULES), config.runs, config.prompts).mean(2).T


def list_places(config):  # -> {panel: ({axis: values}, [Place])}
    """Return the axes of each panel and the places of its points."""
    d, noise = config.widths[0], config.noise_var
    grid = {"law": LAWS, "d": config.widths, "per_d": config.per_d}
    cells = itertools.product(*grid.values())
    dense = Place(config.sparsities_per_d * d, d, config.s, LAWS[0], noise)
    panels = {
        "grid": (grid, [Place(per_d * d, d, config.s, law, noise) for law, d, per_d in cells]),
        "by_s": ({"s": config.sparsities}, [dense._replace(s=s) for s in config.sparsities]),
    }
    still = Place(config.lengths[-1], config.rate_d, config.s, LAWS[1], noise)
    growing = (config.lengths, config.rate_sparsities, config.rate_widths)
    for axis, values in zip(RATES, growing, strict=True):
        row = [still._replace(**{axis: value}) for value in values]
        panels[f"rate_{axis}"] = {f"long_{axis}": values}, row
    return panels


def compute(config, models):
    panels = list_places(config)
    places = list(dict.fromkeys(place for _, row in panels.values() for place in row))
    rows = compute_each("places", range(len(places)), partial(measure_place, config, places))
    risks, data, coordinates = dict(zip(places, rows, strict=True)), {}, {"rule": list(RULES)}
    for panel, (axes, row) in panels.items():
        values = np.stack([risks[place] for place in row])
        data[panel] = ((*axes, "run", "rule"), values.reshape(*map(len, axes.values()), -1, 3))
        coordinates |= {axis: list(values) for axis, values in axes.items()}
    return xr.Dataset(data, coordinates)


def select_ratio(result, panel, rule, **place):  # -> DataArray (run, ...), or None
    """Return the risk of preprocessed descent over that of a rule, run by run."""
    if any(value not in result[axis] for axis, value in place.items()):
        return None
    risk = result[panel].sel(place)
    return (risk.sel(rule=PREPROCESSED) / risk.sel(rule=rule)).transpose("run", ...)


def ratio_at(result, rule, law, d, per_d):  # -> [R]
    ratio = select_ratio(result, "grid", rule, law=law, d=d, per_d=per_d)
    return None if ratio is None else ratio.values


def mean_ratio(result, rule, laws):  # -> [R]
    """Return the geometric mean over the settings with these laws of non-zeros."""
    logs = np.log(select_ratio(result, "grid", rule).sel(law=list(laws)))
    return np.exp(logs.mean(("law", "d", "per_d"))).values


def ratio_by_s(result, s):  # -> [R]
    ratio = select_ratio(result, "by_s", RIDGE, s=s)
    return None if ratio is None else ratio.values


def excess_slope(result, rule, axis):  # -> [R]
    """Return each run's slope of log risk over log n, s or d, less the expected exponent."""
    risk = result[f"rate_{axis}"].sel(rule=rule).transpose(f"long_{axis}", "run")
    slopes = np.polyfit(np.log(risk[f"long_{axis}"].values), np.log(risk.values), 1)[0]
    return slopes - EXPONENTS[rule][RATES.index(axis)]


FULL = TIERS["full"]
PLACES = {"law": LAWS, "d": FULL.widths, "per_d": FULL.per_d}
AT = "With {law} non-zeros, d = {d} and n = {per_d} d,"
OVER = "the risk of preprocessed descent over that of"
PAIRED = "none: the ratio is paired, and 1 without a difference"
ON_RIDGE, ON_LASSO = (f"A4, Risk, against {rival}" for rival in ("descent and ridge", "the Lasso"))
ratio = partial(Claim, statistic="ratio", null=PAIRED)
rate = partial(Claim, quantity="the slope of log risk over log {axis}, less its expected exponent",
               at_least=-0.1, at_most=0.1, over={"axis": RATES}, simultaneous=True,
               null="none: the other rule has other exponents")  # fmt: skip
CLAIMS = (
    ratio("over_ridge", ON_RIDGE, "With Gaussian non-zeros preprocessed descent has a lower risk "
          "than ridge regression", f"{OVER} ridge, the geometric mean over d and n",
          partial(mean_ratio, rule=RIDGE, laws=LAWS[:1]), at_most=1.0),
    ratio("over_ridge_at", ON_RIDGE, f"{AT} preprocessed descent has a lower risk than ridge "
          "regression", f"{OVER} ridge", partial(ratio_at, rule=RIDGE), at_most=1.0, over=PLACES),
    ratio("by_sparsity", ON_RIDGE, f"With s = {{s}} Gaussian non-zeros of {FULL.widths[0]} "
          "preprocessed descent has a lower risk than ridge regression", f"{OVER} ridge",
          ratio_by_s, at_most=1.0, over={"s": FULL.sparsities[:-1]}, null="dense"),
    ratio("dense", "derived here", "Without zeros preprocessed descent has a higher risk than "
          "ridge regression", f"{OVER} ridge, which is then the Bayes rule",
          partial(ratio_by_s, s=FULL.sparsities[-1]), at_least=1.0),
    ratio("over_lasso", ON_LASSO, "Over all settings preprocessed descent has a risk within 25 % "
          "of the Lasso's", f"{OVER} the Lasso, the geometric mean over laws, d and n",
          partial(mean_ratio, rule=LASSO, laws=LAWS), at_least=0.8, at_most=1.25),
    ratio("over_lasso_at", ON_LASSO, f"{AT} preprocessed descent has a risk within 25 % of the "
          "Lasso's", f"{OVER} the Lasso", partial(ratio_at, rule=LASSO), at_least=0.8,
          at_most=1.25, over=PLACES),
    rate("preprocessed_rate", ON_RIDGE, "For long prompts the risk of preprocessed descent goes "
         "like s/n and does not depend on d: the exponent of {axis}",
         sample=partial(excess_slope, rule=PREPROCESSED)),
    rate("ridge_rate", ON_RIDGE, "For long prompts the risk of ridge regression goes like d/n and "
         "does not depend on s: the exponent of {axis}", sample=partial(excess_slope, rule=RIDGE)),
)  # fmt: skip

COLOURS = {"Gaussian": plotting.SKY, "flat": plotting.ORANGE}


def plot(result, config):  # -> Figure, caption
    figure, (left, right) = plotting.figure(6.75, 2.7, (1, 2), sharey=True)
    for ax, rule, name in ((left, RIDGE, "ridge regression"), (right, LASSO, "the Lasso")):
        shapes = zip(config.widths, "os", ("-", "--"), strict=False)
        for law, (d, marker, style) in itertools.product(LAWS, shapes):
            runs = select_ratio(result, "grid", rule, law=law, d=d)
            look = dict(color=COLOURS[law], marker=marker, ls=style, lw=0.9)
            plotting.mean_points(ax, config.per_d, runs, f"{law}, d = {d}", "ratio", **look)
        ax.axhline(1, color=plotting.BLACK, lw=0.8)
        y_ticks = (0.05, 0.1, 0.2, 0.5, 1, 2)
        plotting.log_axes(ax, x=True, y=True, ticks=config.per_d, y_ticks=y_ticks)
        ax.set(xlabel="n / d", title=f"Over {name}")
    left.set_ylabel("risk of preprocessed descent / rule's")
    right.axhspan(0.8, 1.25, color=plotting.GREY, alpha=0.2, lw=0)
    left.legend(loc="lower left")
    best = geometric_mean(mean_ratio(result, RIDGE, LAWS[:1]))
    ends = []
    for rule in (RIDGE, LASSO):
        means = np.exp(np.log(select_ratio(result, "grid", rule)).mean("run"))
        ends += [float(means.min()), float(means.max())]
    return figure, (
        f"With Gaussian non-zeros preprocessed descent has {best:.3g} times ridge's risk. Over "
        f"all settings it has {ends[0]:.2g} to {ends[1]:.3g} times ridge's risk, and {ends[2]:.2g} "
        f"to {ends[3]:.3g} times the Lasso's. Points are geometric means of runs; the band in b is "
        "25 % around 1."
    )


if __name__ == "__main__":
    main(__file__)
