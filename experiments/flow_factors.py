"""Is what a demonstration gives the product of its relevance and its novelty, or their sum?"""

import jax
import numpy as np

from experiments import style
from experiments.configs.flow_factors import CLAIMS, TIERS, Config
from experiments.parts.one_shot import KINDS, PREDICTORS, ZEROS, best_step, draw, measured, summary
from lsa_lab import results
from lsa_lab.claims import about_the_mean

__all__ = ["TIERS", "Config", "claims", "compute", "plot"]

STEPS = ("best for the law", "1/|x|²", "1")  # the first is the model of the claims
QUANTITIES = ("contribution", "flow", "error reduction")
FORMS = ("product", "sum")
SCALES = ("squares", "sizes")  # of the quantities: c², |J|² and the reduction, or their roots


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    @jax.jit
    def measure(*each):
        one = lambda these: measured(*these)  # noqa: E731
        return jax.lax.map(one, each, batch_size=min(config.draws, 2000))

    of_runs = []
    for run in range(config.runs):
        prompt, prior = draw(config, run)
        square = (prompt.x[:, 0] ** 2).sum(1)
        own = 1 / np.where(square > 0, square, 1)  # without covariates no step does anything
        steps = (np.full_like(own, best_step(config)), own, np.ones_like(own))
        found = [jax.tree.map(np.asarray, measure(prompt, prior, step)) for step in steps]
        of_runs.append([summary(one, config.classes) for one in found])
    names = {
        "grid": ("quantity", "relevance", "novelty"),
        "centre": ("factor", "decile"),
        "r2": ("scale", "quantity", "form"),
        "correlation": ("predictor",),
        "of_kind": ("measure", "kind"),
        "share": ("kind",),
    }
    scalars = dict.fromkeys(("helps", "gain", "not_product", "not_equation_2"), ())
    return xr.Dataset(
        {
            name: (
                ("run", "step", *axes),
                np.array([[one[name] for one in row] for row in of_runs]),
            )
            for name, axes in (names | scalars).items()
        },
        {
            "step": list(STEPS),
            "quantity": list(QUANTITIES),
            "factor": ["relevance", "novelty"],
            "scale": list(SCALES),
            "form": list(FORMS),
            "predictor": list(PREDICTORS),
            "measure": ["flow", "contribution"],
            "kind": list(KINDS),
        },
    )


def plot(dataset):
    settings = results.settings(dataset)
    drawn, axes = style.figure(9.0, 6.0, (2, 3))
    best = dataset.sel(step=STEPS[0])
    _draw_maps(drawn, axes[:3], best, settings)
    _draw_forms(axes[3], best)
    _draw_predictors(axes[4], best, settings)
    _draw_kinds(axes[5], best)
    r2 = best.r2.sel(quantity="error reduction", scale="squares").median("run")
    gains = dataset.gain.median("run")
    kept = best.of_kind.sel(measure="flow").median("run").values
    step = best_step(settings)
    style.caption(
        drawn,
        f"What a demonstration contributes is the product s r (red: hyperbolas). Its flow, the "
        f"norm of Eq. 2's Jacobian, is nearly a sum (dashed: Eq. 2 without its cross term): "
        f"{kept[1]:.0%} is left where the demonstration is irrelevant, {kept[2]:.0%} where it is "
        f"learned. The error reduction follows the product (R² {float(r2.sel(form='product')):.2f},"
        f" sum {float(r2.sel(form='sum')):.2f}), but is a mean of gains and losses: "
        f"{1 - float(best.helps.median()):.0%} of the demonstrations raise the error. (a-d): "
        f"deciles of s and r that are not zero, {settings.draws} draws a run. One step of "
        f"{step:.2f} takes {float(gains[0]):.1%} off the error (theory {step / settings.d:.1%}), "
        f"of 1/|x|² {float(gains[1]):.1%}, a unit step {float(gains[2]):.1%}. d = {settings.d}, "
        f"{settings.known} "
        f"coordinates known. Median of {settings.runs} runs and the middle 80 % of them.",
    )
    return drawn


def _draw_maps(drawn, axes, best, settings):
    centres = best.centre.mean("run").values
    shown = None
    for ax, quantity in zip(axes, QUANTITIES, strict=True):
        grid = best.grid.sel(quantity=quantity).mean("run").values
        shown = _draw_map(ax, grid, centres, settings)
        ax.set_title(quantity)
    drawn.colorbar(shown, ax=axes[-1], label="root of the mean, relative")


def _draw_map(ax, grid, centres, settings):
    """Colours are roots of cell means, over the largest; lines are products and sums."""
    x, y = centres
    roots = np.sign(grid) * np.sqrt(np.abs(grid))
    levels = np.linspace(0, 1, 11)
    shown = ax.contourf(x, y, roots.T / roots.max(), levels, cmap="YlGnBu")
    ax.set_facecolor("lightgrey")  # below 0
    s = np.linspace(0, x[-1], 200)
    a, b = 1 + settings.known, best_step(settings) ** 2  # E|P|² and E|Kq|²
    for share in (0.1, 0.3, 0.6):
        ax.plot(s[1:], share * x[-1] * y[-1] / s[1:], color=style.COLOURS[1])
        level = share * (a * x[-1] ** 2 + b * y[-1] ** 2)
        inside = s[a * s**2 <= level]
        ax.plot(inside, np.sqrt((level - a * inside**2) / b), "--", color=style.BLACK)
    ax.set(xlim=(x[0], x[-1]), ylim=(y[0], y[-1]), xlabel="relevance |s|", ylabel="novelty |r|")
    return shown


def _draw_forms(ax, best):
    x = np.arange(len(QUANTITIES))
    for i, form in enumerate(FORMS):
        for j, scale in enumerate(SCALES):
            place, there = x + 0.2 * i + 0.08 * j - 0.14, best.r2.sel(form=form, scale=scale)
            color, marker = style.COLOURS[i], style.MARKERS[2 * i + j]
            style.band(ax, place, there.transpose("run", "quantity"), None, color, marker)
            ax.plot([], [], marker, color=color, label=f"{form}, {scale}")
    ax.set_xticks(x, QUANTITIES)
    ax.set(ylabel="R² over the cells", ylim=(None, 1.02))
    ax.set_title("any f(s)·g(r) or f(s) + g(r)")
    ax.legend(loc="lower center")


def _draw_predictors(ax, best, settings):
    x = np.arange(len(PREDICTORS))
    style.band(ax, x, best.correlation.transpose("run", "predictor"))
    ax.axhline(settings.predicts, color="grey", lw=0.8, ls="--")
    names = [name.replace(" + ", "\n+ ") for name in PREDICTORS]
    ax.set_xticks(x, names, rotation=30, ha="right", rotation_mode="anchor")
    ax.set(ylabel="rank correlation", ylim=(0, None))
    ax.set_title("what predicts the reduction")


def _draw_kinds(ax, best):
    x = np.arange(len(KINDS))
    for i, name in enumerate(best["measure"].values):
        there = best.of_kind.sel(measure=name).transpose("run", "kind")
        style.band(ax, x + 0.1 * i, there, name, style.COLOURS[i], style.MARKERS[i])
    names = [f"{kind}\n{zeros}" for kind, zeros in zip(KINDS, ZEROS, strict=True)]
    ax.set_xticks(x, names)
    ax.set(ylabel="median, relative to neither")
    ax.set_title("irrelevant or learned")
    ax.legend()


def claims(dataset):
    settings = results.settings(dataset)
    best = dataset.sel(step=STEPS[0])
    ahead = (best.r2.sel(form="product") - best.r2.sel(form="sum")).transpose(..., "run")
    vanishing = best.of_kind.sel(kind=["irrelevant", "learned"])
    correlation = {name: best.correlation.sel(predictor=name).values for name in PREDICTORS}
    samples = {
        "equation_2": best.not_equation_2.values,
        "contribution": best.not_product.values,
        "either_or_contribution": vanishing.sel(measure="contribution").max("kind").values,
        "either_or_flow": vanishing.sel(measure="flow").min("kind").values,
        "flow_is_a_sum": ahead.sel(quantity="flow", scale="squares").values,
        "reduction_is_a_product": min(ahead.sel(quantity="error reduction").values, key=np.mean),
        "flow_predicts": correlation["flow"],
        "contribution_predicts": correlation["contribution"],
        "contribution_or_flow": correlation["contribution"] - correlation["flow"],
        "helps": best.helps.values,
        "unit_step": dataset.gain.sel(step="1").values,
    }
    made = []
    for name, (source, statement, averaged, bound, criterion) in CLAIMS.items():
        value = getattr(settings, criterion) if isinstance(criterion, str) else criterion
        sign = {"at_most": "<=", "at_least": ">="}[bound]
        said = (source, statement, f"mean {averaged} {sign} {value}", samples[name])
        made.append(about_the_mean(f"flow_factors.{name}", *said, **{bound: value}))
    return made
