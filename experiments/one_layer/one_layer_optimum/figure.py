"""Risks of trained layers on the closed form, and their excess; risks at other lengths and scales
and on a real table."""

import itertools

from experiments.one_layer.one_layer_optimum import claims
from experiments.one_layer.one_layer_optimum.config import LEARNERS, SHIFTS, TASKS
from lsa_lab.harness.draw import style
from lsa_lab.harness.draw.marks import direct_label, end_labels
from lsa_lab.judging.claims import evidence
from lsa_lab.store import parts, results

TRAINED, DESCENT, RIDGE = (style.METHOD[name] for name in ("linear", "descent", "ridge"))
RISK = "risk / that of predicting zero"
COLOURS = style.COLOURS[3:]  # of tasks: with these markers no method has them


def plot(dataset):
    from matplotlib.ticker import LogLocator

    config = results.config_of(dataset)
    main, (figure, axes) = parts.part(dataset), style.figure(6.75, 2.9, (1, 2))
    colors = zip(TASKS, COLOURS, strict=True)
    markers = zip(config.heads, style.MARKERS, strict=False)
    cells = list(itertools.product(colors, markers))
    for i, ((task, color), (heads, marker)) in enumerate(cells):
        runs = main.sel(task=task, heads=heads).transpose("run", "length", "n")
        length = dataset.length.values
        beside = length * 1.1 ** (i - (len(cells) - 1) / 2)  # not on top of each other
        if heads == config.heads[0]:
            style.line(axes[0], dataset.n, runs.theory, task, color)
        look = {"fmt": marker, "color": color, "capsize": 2}
        # Marks of one head lie below those of several, and are seen through them.
        look |= {} if heads == config.heads[0] else {"mfc": "none", "ms": 6}
        style.mean_points(axes[0], length, runs.risk, **look)
        style.mean_points(axes[1], beside, 100 * runs.excess, **look)
    (bound,) = (100 * each.at_most for each in claims.statements(config) if each.id == "risk")
    axes[1].axhline(bound, color="grey", lw=0.8, ls="--")
    direct_label(axes[1], config.lengths[-1], bound, "bound", "dimgrey", (-2, -2))
    axes[1].set_ylim(bottom=min(0, *axes[1].get_ylim()))
    for heads, marker in zip(config.heads, style.MARKERS, strict=False):
        face = "grey" if heads == config.heads[0] else "none"
        look = {"color": "grey", "mfc": face, "label": f"{heads} head" + "s" * (heads > 1)}
        axes[0].plot([], [], marker, **look)
    for ax, name in zip(axes, ("risk", "excess over the optimum, %"), strict=True):
        style.log_axes(ax, x=True, y=ax is axes[0], ticks=dataset.length.values)
        ax.set(xlabel="demonstrations n", ylabel=name)
    axes[0].set_title("Trained layers reach the optimum")
    axes[1].set_title("Their excess is below the bound")
    axes[0].yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes[0].yaxis.set_major_formatter("{x:g}")
    axes[0].legend()
    return figure


def appendix(dataset):
    """Other lengths and scales than in training, and a real table."""
    figure, axes = style.stacked(6.75, (2.6, 2.3), ((1, 1), (1,)), first="c")
    for ax, panel in zip(axes, (lengths, scales, table), strict=True):
        panel(ax, parts.part(dataset, "shift"))
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
        ends[f"scale {c:g}"] = risk[:, -1].mean().item()
        start += count
    guess_line(ax, "zero", config.lengths[-1], (-2, -2))
    ax.set(xlabel="demonstrations m at the test", ylabel=RISK, title="More demonstrations help")
    end_labels(ax, ends, [TRAINED["color"]] * len(ends))


def table(ax, dataset):
    errors = dataset.table_error.astype(float).transpose("group", "table_length", "learner")
    ends = {}
    for learner, look in zip(LEARNERS, (TRAINED, DESCENT, RIDGE), strict=False):
        runs = errors.sel(learner=learner)
        style.mean_points(ax, errors.table_length, runs, capsize=2, **look)
        ends[learner] = runs[:, -1].mean().item()
    guess_line(ax, "the mean", errors.table_length[0].item())
    style.log_axes(ax, x=True, ticks=dataset.table_length.values)
    ax.set(xlabel="demonstrations m at the test", ylabel="squared error / variance")
    ax.set(title="On a real table the trained layer errs most", ylim=(0, None))
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
    ax.set(xlabel="scale of the covariates", ylabel=RISK, title="Only descent keeps its risk")
    ax.set_ylim(bottom=float(dataset.descent.min()) / 2)  # the floor has a zero
    end_labels(ax, ends, [TRAINED["color"], DESCENT["color"], style.BLACK])


def guess_line(ax, what, x, place=(1, 2)):
    ax.axhline(1.0, color="grey", lw=0.8, ls=":")
    direct_label(ax, x, 1.0, f"predicting {what}", "dimgrey", place)


def caption(dataset) -> str:
    _, samples = evidence(claims, dataset)
    shift, table = parts.part(dataset, "shift"), claims.table_errors(dataset).mean("group")
    trained, descent = (table.sel(learner=name).item() for name in LEARNERS[:2])
    loss = float(shift.risk.isel(case=-1).mean() / shift.zero.mean())
    return (
        f"On average over runs a trained layer's risk is {100 * samples['risk'].mean():.2g} % "
        "above theory's optimum at the worst task and length. Lines are closed forms, and the "
        f"dashed one is the bound. Where the covariance is {SHIFTS[-1]:g} times that of "
        f"training (appendix) the layer has {loss:.2f} times the risk of predicting 0. On "
        f"the diabetes table its error is {trained:.2g} times the variance; descent with each "
        f"prompt's own step has {descent:.2g}."
    )
