"""Risks at other scales and other lengths beside theory, and errors on a real table."""

from experiments.one_layer.covariate_shift.claims import samples
from experiments.one_layer.covariate_shift.config import LEARNERS, SHIFTS, statements
from lsa_lab import results
from lsa_lab.harness import judged_panel, style

BLUE, RED, GREEN = style.COLOURS[:3]  # the trained layer, descent, ridge or the second scale


def plot(dataset):
    figure, axes = style.figure(6.75, 5.4, (2, 2))
    for ax, panel in zip(axes, (scales, lengths, table), strict=False):
        panel(ax, dataset)
        ax.axhline(1.0, color="grey", lw=0.8, ls=":", label="predicting zero")
        ax.legend()
    judged(axes[3], dataset)
    return figure


def scales(ax, dataset):
    config = results.config_of(dataset)
    style.line(ax, dataset.c, dataset.scale_theory, f"theory, m = n = {config.n}")
    style.line(ax, dataset.c, dataset.scale_floor, "theory, m = ∞", style="--")
    risk = dataset.risk.isel(case=slice(len(config.scales)))
    runs = {"trained layer": (risk, BLUE, "o"), "descent": (dataset.descent, RED, "s")}
    for label, (values, color, marker) in runs.items():
        look = {"fmt": marker, "color": color, "capsize": 2}
        style.mean_points(ax, config.scales, values.transpose("run", ...), label, **look)
    ax.set(xlabel="scale c of the covariates", ylabel="risk / tr Λ'")
    style.log_axes(ax, x=True, y=True, ticks=config.scales)
    ax.set_ylim(bottom=float(dataset.descent.min()) / 2)  # the floor has a zero
    ax.set_title("another scale")


def lengths(ax, dataset):
    config = results.config_of(dataset)
    start, count = len(config.scales), len(config.lengths)
    for c, color in zip(SHIFTS, (BLUE, GREEN), strict=True):
        lines = dataset.sel(shift=c)
        style.line(ax, dataset.m, lines.length_theory, None, color)
        ax.axhline(lines.length_floor.item(), color=color, ls="--", lw=0.8)
        risk = dataset.risk.isel(case=slice(start, start + count)).transpose("run", ...)
        look = {"fmt": "o", "color": color, "capsize": 2}
        style.mean_points(ax, config.lengths, risk, f"trained layer, c = {c:g}", **look)
        start += count
    ax.set(xlabel="demonstrations m at the test", ylabel="risk / tr Λ'")
    style.log_axes(ax, x=True, y=True, ticks=config.lengths)
    ax.set_title("more demonstrations")


def table(ax, dataset):
    errors = dataset.table_error.astype(float).transpose("group", "table_length", "learner")
    for learner, color, marker in zip(LEARNERS, (BLUE, RED, GREEN), style.MARKERS, strict=False):
        look = {"fmt": f"{marker}-", "color": color, "capsize": 2}
        style.mean_points(ax, errors.table_length, errors.sel(learner=learner), learner, **look)
    ax.set(xlabel="demonstrations m at the test", ylabel="squared error / variance")
    style.log_axes(ax, x=True, ticks=dataset.table_length.values)
    ax.set_title("a real table")


def judged(ax, dataset):
    labels = {
        "theory": "risk / theory's",
        "floor": "risk less zero's, c = 3",
        "table": "table: less mean's",
        "table_descent": "less descent's",
    }
    rows = statements(results.config_of(dataset))
    judged_panel.rows(ax, rows, samples(dataset), labels, (-0.2, 1.2))
    ax.set_title("what is judged")


def caption(dataset) -> str:
    config = results.config_of(dataset)
    missing = style.missing(dataset.risk) + style.missing(dataset.descent)
    loss = float(dataset.risk.isel(case=-1).mean() / dataset.zero.mean())
    table = dataset.table_error.astype(float).mean("group").sel(table_length=config.n)
    trained, descent = (table.sel(learner=name).item() for name in LEARNERS[:2])
    return (
        f"It keeps its training's step: at scale {SHIFTS[-1]:g} its risk is {loss:.2f} times that "
        f"of predicting zero, and on a real table its error is {trained:.2g} times the variance "
        f"(n = {config.n}). The former is with {config.lengths[-1]} demonstrations; on the table "
        f"descent with each prompt's own step has {descent:.2g}. One layer trained on N(0, I) "
        f"covariates with n = {config.n}. a, b: d = {config.d}; lines are theory, dashes its floor "
        f"with unlimited demonstrations ({dataset.length_floor[-1].item():.2g} at "
        f"c = {SHIFTS[-1]:g}); "
        f"points are means of {config.runs} runs with 95 % intervals; {missing} left out as not "
        f"finite. That descent is unmoved by the scale is a theorem "
        f'(docs/theory, "Symmetries of predictions"). '
        f"c: diabetes table, means with 95 % intervals over {config.table_groups} "
        f"disjoint groups of patients. d: {judged_panel.KEY}. "
        f"Descent: {config.descent_steps} steps of each prompt's own 1/λ_max."
    )
