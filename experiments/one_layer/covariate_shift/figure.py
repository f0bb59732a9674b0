"""Risks at other lengths and other scales beside theory, and errors on a real table."""

from experiments.one_layer.covariate_shift import claims
from experiments.one_layer.covariate_shift.config import LEARNERS, SHIFTS
from lsa_lab.harness.draw import judged_panel, style
from lsa_lab.harness.draw.marks import direct_label, end_labels
from lsa_lab.judging.claims import evidence
from lsa_lab.judging.statistics import level
from lsa_lab.store import results

TRAINED, DESCENT, RIDGE = (style.METHOD[name] for name in ("linear", "descent", "ridge"))
RISK = "risk / that of predicting zero"


def plot(dataset):
    figure, axes = style.stacked(6.75, (2.7, 2.5), ((1, 1), (1, 1)))
    for ax, panel in zip(axes, (lengths, table, scales, plot_judged), strict=True):
        panel(ax, dataset)
    return figure


def lengths(ax, dataset):
    config = results.config_of(dataset)
    start, count, ends = len(config.scales), len(config.lengths), {}
    style.log_axes(ax, x=True, y=True, ticks=config.lengths)
    for c in SHIFTS:
        lines = dataset.sel(shift=c)
        style.line(ax, dataset.m, lines.length_theory)
        ax.axhline(lines.length_floor.item(), color=style.BLACK, ls="--", lw=0.8)
        risk = dataset.risk.isel(case=slice(start, start + count)).transpose("run", ...)
        style.mean_points(ax, config.lengths, risk, ls="", capsize=2, **TRAINED)
        name = f"scale {c:g}: {loss(dataset):.2f}" if c == SHIFTS[-1] else f"scale {c:g}"
        ends[name] = risk[:, -1].mean().item()
        start += count
    guess_line(ax, "zero", config.lengths[-1], (-2, -2))
    ax.set(xlabel="demonstrations m at the test", ylabel=RISK, title="more demonstrations")
    end_labels(ax, ends, [TRAINED["color"]] * len(ends))


def table(ax, dataset):
    config = results.config_of(dataset)
    errors = dataset.table_error.astype(float).transpose("group", "table_length", "learner")
    ends = {}
    for learner, look in zip(LEARNERS, (TRAINED, DESCENT, RIDGE), strict=False):
        runs = errors.sel(learner=learner)
        style.mean_points(ax, errors.table_length, runs, capsize=2, **look)
        ends[learner] = runs[:, -1].mean().item()
    here = errors.sel(learner=LEARNERS[0], table_length=config.n).mean().item()
    direct_label(ax, config.n, here, f"{here:.2g}", TRAINED["color"], (4, 4))
    guess_line(ax, "the mean", errors.table_length[0].item())
    style.log_axes(ax, x=True, ticks=dataset.table_length.values)
    ax.set(xlabel="demonstrations m at the test", ylabel="squared error / variance")
    ax.set(title="a real table", ylim=(0, None))
    end_labels(ax, ends, [look["color"] for look in (TRAINED, DESCENT, RIDGE)])


def scales(ax, dataset):
    config = results.config_of(dataset)
    style.line(ax, dataset.c, dataset.scale_theory)
    style.line(ax, dataset.c, dataset.scale_floor, style="--")
    risk = dataset.risk.isel(case=slice(len(config.scales)))
    ends = {}
    for name, values, look in (("trained", risk, TRAINED), ("descent", dataset.descent, DESCENT)):
        runs = values.transpose("run", ...)
        style.mean_points(ax, config.scales, runs, ls="", capsize=2, **look)
        ends[f"{name}, m = {config.n}"] = runs[:, -1].mean().item()
    ends["theory, m = ∞"] = dataset.scale_floor[-1].item()
    style.log_axes(ax, x=True, y=True, ticks=config.scales)
    guess_line(ax, "zero", config.scales[0])
    ax.set(xlabel="scale of the covariates", ylabel=RISK, title="another scale")
    ax.set_ylim(bottom=float(dataset.descent.min()) / 2)  # the floor has a zero
    end_labels(ax, ends, [TRAINED["color"], DESCENT["color"], style.BLACK])


def guess_line(ax, what, x, place=(1, 2)):
    ax.axhline(1.0, color="grey", lw=0.8, ls=":")
    direct_label(ax, x, 1.0, f"predicting {what}", "dimgrey", place)


def loss(dataset) -> float:
    """The risk at the last scale and length over that of predicting zero on the same prompts."""
    return float(dataset.risk.isel(case=-1).mean() / dataset.zero.mean())


def plot_judged(ax, dataset):
    judged_panel.rows(ax, *evidence(claims, dataset), (-0.2, 1.2))
    ax.set(xlabel="ratio, or difference", title="what is judged")


def caption(dataset) -> str:
    config = results.config_of(dataset)
    missing = style.missing(dataset.risk) + style.missing(dataset.descent)
    table = claims.numbers(dataset).table.mean("group")
    trained, descent = (table.sel(learner=name).item() for name in LEARNERS[:2])
    return (
        f"It keeps its training's step: at scale {SHIFTS[-1]:g} its risk is {loss(dataset):.2f} "
        f"times that of predicting zero. On a real table its error is {trained:.2g} times the "
        f"variance (n = {config.n}). The former is with {config.lengths[-1]} demonstrations; on "
        f"the table descent with each prompt's own step has {descent:.2g}. One layer trained on "
        f"N(0, I) covariates with n = {config.n}. a, c: lines are theory, dashes its floor with "
        f"unlimited demonstrations ({dataset.length_floor[-1].item():.2g} at scale "
        f"{SHIFTS[-1]:g}); points are means of {config.runs} runs with {level()} intervals; "
        f"{missing} left out as not finite. "
        f"b: diabetes table, means with {level()} intervals over {config.table_groups} disjoint "
        f"groups of patients. That descent ({config.descent_steps} steps of each prompt's own "
        "1/λ_max) is unmoved by the scale is a theorem "
        '(docs/theory, "Symmetries of predictions"). '
        f"d: {judged_panel.KEY}. d = {config.d}."
    )
