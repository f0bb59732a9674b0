"""Is what a demonstration gives the product of its relevance and its novelty, or their sum?"""

import jax
import numpy as np

from experiments import style
from experiments.configs.flow_factors import TIERS, Config
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
    centres = best.centre.mean("run").values
    shown = None
    for ax, quantity in zip(axes, QUANTITIES, strict=False):
        grid = best.grid.sel(quantity=quantity).mean("run").values
        shown = _draw_map(ax, grid, centres, settings)
        ax.set_title(quantity)
    drawn.colorbar(shown, ax=axes[2], label="root of the mean, relative")
    x = np.arange(len(QUANTITIES))
    for i, form in enumerate(FORMS):
        for j, scale in enumerate(SCALES):
            place, there = x + 0.2 * i + 0.08 * j - 0.14, best.r2.sel(form=form, scale=scale)
            color, marker = style.COLOURS[i], style.MARKERS[2 * i + j]
            style.band(axes[3], place, there.transpose("run", "quantity"), None, color, marker)
            axes[3].plot([], [], marker, color=color, label=f"{form}, {scale}")
    axes[3].set_xticks(x, QUANTITIES)
    axes[3].set(ylabel="R² over the cells", ylim=(None, 1.02))
    axes[3].set_title("any f(s)·g(r) or f(s) + g(r)")
    axes[3].legend(loc="lower center")
    x = np.arange(len(PREDICTORS))
    style.band(axes[4], x, best.correlation.transpose("run", "predictor"))
    axes[4].axhline(settings.predicts, color="grey", lw=0.8, ls="--")
    names = [name.replace(" + ", "\n+ ") for name in PREDICTORS]
    axes[4].set_xticks(x, names, rotation=30, ha="right", rotation_mode="anchor")
    axes[4].set(ylabel="rank correlation", ylim=(0, None))
    axes[4].set_title("what predicts the reduction")
    x = np.arange(len(KINDS))
    for i, name in enumerate(best["measure"].values):
        there = best.of_kind.sel(measure=name).transpose("run", "kind")
        style.band(axes[5], x + 0.1 * i, there, name, style.COLOURS[i], style.MARKERS[i])
    names = [f"{kind}\n{zeros}" for kind, zeros in zip(KINDS, ZEROS, strict=True)]
    axes[5].set_xticks(x, names)
    axes[5].set(ylabel="median, relative to neither")
    axes[5].set_title("irrelevant or learned")
    axes[5].legend()
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


def claims(dataset):
    settings = results.settings(dataset)
    best = dataset.sel(step=STEPS[0])
    ahead = (best.r2.sel(form="product") - best.r2.sel(form="sum")).transpose(..., "run")
    vanishing = best.of_kind.sel(kind=["irrelevant", "learned"])
    correlation = {name: best.correlation.sel(predictor=name).values for name in PREDICTORS}
    advantage = "mean R² over the cells of the best f(s)g(r) less that of the best f(s) + g(r)"
    rounding = f"relative to the median one, <= {settings.exact:g}"
    most = "mean over runs of the largest"
    paper, own = "A1 (2508.00385)", "derived here"
    table = (  # name, source, statement, criterion, samples, bounds
        (
            "equation_2",
            own,
            "Where weights write to the label alone, the flow to the answer is all of Eq. 2",
            f"{most} difference of the norms, {rounding}",
            best.not_equation_2.values,
            {"at_most": settings.exact},
        ),
        (
            "contribution",
            own,
            "What one demonstration adds to the answer is its relevance times its novelty",
            f"{most} |c - s r|, {rounding}",
            best.not_product.values,
            {"at_most": settings.exact},
        ),
        (
            "either_or_contribution",
            own,
            "A demonstration that is irrelevant or learned contributes nothing",
            f"mean over runs of the larger of their two median contributions, {rounding}",
            vanishing.sel(measure="contribution").max("kind").values,
            {"at_most": settings.exact},
        ),
        (
            "either_or_flow",
            f"{paper}, on Eq. 2",
            "From a demonstration that is irrelevant or learned no gradient flows",
            f"mean over runs of the smaller of their two median flows, {rounding}",
            vanishing.sel(measure="flow").min("kind").values,
            {"at_most": settings.exact},
        ),
        (
            "flow_is_a_sum",
            own,
            "The flow is a sum of relevance and novelty rather than their product",
            f"{advantage}, of squared flows <= 0",
            ahead.sel(quantity="flow", scale="squares").values,
            {"at_most": 0},
        ),
        (
            "reduction_is_a_product",
            f"{paper}, its open question on the conflict of factors",
            "What a demonstration takes off the error is a product rather than a sum",
            f"{advantage}, of error reductions, as they are or as roots, whichever is less, >= 0",
            min(ahead.sel(quantity="error reduction").values, key=np.mean),
            {"at_least": 0},
        ),
        (
            "flow_predicts",
            paper,
            "The size of a demonstration's flow predicts what it takes off the error",
            f"mean rank correlation >= {settings.predicts}",
            correlation["flow"],
            {"at_least": settings.predicts},
        ),
        (
            "contribution_predicts",
            own,
            "The size of its contribution predicts what it takes off the error",
            f"mean rank correlation >= {settings.predicts}",
            correlation["contribution"],
            {"at_least": settings.predicts},
        ),
        (
            "contribution_or_flow",
            own,
            "The contribution predicts the error reduction better than the flow does",
            "mean rank correlation of the contribution less that of the flow >= 0",
            correlation["contribution"] - correlation["flow"],
            {"at_least": 0},
        ),
        (
            "helps",
            f"{paper}, read literally",
            "A demonstration that is relevant and new lowers the error",
            f"mean share of those with s r ≠ 0 that do >= {settings.helps}",
            best.helps.values,
            {"at_least": settings.helps},
        ),
        (
            "unit_step",
            own,
            "One unit step overshoots: it raises the error",
            "mean error reduction with η = 1, relative to the error without demonstrations, <= 0",
            dataset.gain.sel(step="1").values,
            {"at_most": 0},
        ),
    )
    return [
        about_the_mean(f"flow_factors.{name}", *texts, samples, **bounds)
        for name, *texts, samples, bounds in table
    ]
