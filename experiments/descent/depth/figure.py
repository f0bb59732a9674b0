"""Risks of trained layers beside tuned algorithms, the shapes they learn, and what is judged."""

from experiments.descent.depth.claims import risk_ratios, samples, settled, shape_distances
from experiments.descent.depth.config import COVARIANCES, statements
from lsa_lab import results
from lsa_lab.harness import judged_panel, style

DASHES = {"gradient descent": "-", "preconditioned": "--", "GD++": ":"}
JUDGED = {
    "descent": "risk / tuned GD's",
    "descent_settled": "the same, settled runs",
    "plus_plus": "risk / tuned GD++'s",
    "plus_plus_settled": "the same, settled runs",
    "shapes": "distance to the shape",
    "shapes_settled": "the same, settled runs",
}


def plot(dataset):
    figure, axes = style.figure(6.75, 5.4, (2, 2))
    for ax, name in zip(axes, COVARIANCES, strict=False):
        risks(ax, dataset.sel(covariance=name))
        ax.set_title(f"{name} covariance")
    axes[0].legend()
    shapes(axes[2], dataset)
    judged(axes[3], dataset)
    return figure


def risks(ax, dataset):
    depth = dataset.depth.values
    for algorithm, dash in DASHES.items():
        risk = dataset.algorithm_risk.sel(algorithm=algorithm)
        style.line(ax, depth, risk, label=f"{algorithm}, tuned", style=dash)
    runs = dataset.trained_risk.transpose("run", "depth").values
    at_rest = settled(dataset).transpose("run", "depth").values
    for row, kept in zip(runs, at_rest, strict=True):
        look = {"ls": "", "marker": "o", "color": style.COLOURS[0], "ms": 3}
        ax.plot(depth[kept] + 0.06, row[kept], **look)
        ax.plot(depth[~kept] - 0.06, row[~kept], **look | {"mfc": "white"})
    ax.plot([], [], **look, label="trained, settled")
    ax.plot([], [], **look | {"mfc": "white"}, label="trained, not settled")
    style.log_axes(ax, y=True)
    # A stack that explodes on one rare prompt would press all the others into a line.
    ax.set_ylim(top=3 * float(dataset.algorithm_risk.max()))
    ax.set(xlabel="layers, or steps", ylabel="excess risk", xticks=depth)


def shapes(ax, dataset):
    depth = dataset.depth.values
    for name, marker, aside in zip(COVARIANCES, style.MARKERS, (-0.1, 0.1), strict=False):
        for matrix, color in zip("AB", style.COLOURS, strict=False):
            x = depth + aside + (0.05 if matrix == "B" else -0.05)  # side by side
            distances = shape_distances(dataset).sel(matrix=matrix, covariance=name)
            kept = (
                slice(1, None) if matrix == "B" else slice(None)
            )  # one layer has none to speak of
            runs = distances.transpose("run", "depth").values[:, kept]
            look = dict(label=f"{matrix}, {name}", color=color, fmt=marker, capsize=2)
            style.median_points(ax, x[kept], runs, **look)
    criterion = results.config_of(dataset).distance
    ax.axhline(criterion, color=style.COLOURS[1], lw=0.8, ls="--", label="bound")
    style.log_axes(ax, y=True)
    ax.set(xlabel="layers", ylabel="distance to the predicted shape", xticks=depth)
    ax.set_title("worst learned matrix")
    ax.legend(loc="lower right")


def judged(ax, dataset):
    rows = statements(results.config_of(dataset))
    style.log_axes(ax, x=True)
    judged_panel.rows(ax, rows, samples(dataset), JUDGED, (1e-2, 1e5))
    ax.set_title("what is judged")


def _named(places):
    """Depths and covariances: "1 layer (identity, rotated), 2 layers (identity)"."""
    by_depth = [(int(depth), places.sel(depth=depth)) for depth in places.depth.values]
    return ", ".join(
        f"{depth} layer{'s' * (depth > 1)} ({', '.join(each.covariance.values[each.values])})"
        for depth, each in by_depth
        if each.any()
    )


def _too_few(ratios, at_rest, enough):
    """What the settled stacks say where they are too few to be judged, but half of all."""
    half = (at_rest.mean("run") >= 0.5) & ~enough
    if not half.any():
        return ""
    medians = ratios.where(at_rest).median("run").where(half)
    return f" Not judged, with half settled: {_named(half)}, {float(medians.min()):.2f} times."


def caption(dataset) -> str:
    config, at_rest = results.config_of(dataset), settled(dataset)
    ratios = {name: risk_ratios(dataset, name) for name in ("gradient descent", "GD++")}
    enough = at_rest.sum("run") >= config.settled_runs
    level = {name: each.where(at_rest).median("run").where(enough) for name, each in ratios.items()}
    best, worst = level["GD++"], level["gradient descent"].max()
    counts = "; ".join(
        f"{name} {', '.join(str(int(n)) for n in at_rest.sel(covariance=name).sum('run'))}"
        for name in COVARIANCES
    )
    exploded = int((ratios["gradient descent"].isel(depth=-1) > 100).sum())
    diverged = int(dataset.status.astype(str).str.startswith("diverged").sum())
    return (
        f"Where training has settled, yes: at most {worst:.3f} times the risk of tuned descent, "
        f"and {best.min():.2f} to {best.max():.2f} times that of tuned GD++. That is where "
        f"{config.settled_runs} stacks or more have: {_named(enough)}."
        f"{_too_few(ratios['GD++'], at_rest, enough)} "
        f"Elsewhere our stacks judge nobody: the median ratio to GD++ is "
        f"{ratios['GD++'].median('run').min():.1g} to {ratios['GD++'].median('run').max():.1g}; "
        f"{exploded} of {2 * config.runs} stacks of "
        f"{config.max_depth} layers explode on rare prompts, above the panels; {diverged} of all "
        f"diverged and count with their last weights. Lines: algorithms with tuned steps. Points: "
        f"{config.runs} stacks a place, filled where settled, that is, where a Gauss-Newton step "
        f"fitted on half of the prompts changes the risk on the other half by less than "
        f"{100 * config.settled:g} %; so many at each depth: {counts}. c: medians with 95 % "
        f"intervals; d: {judged_panel.KEY}. {style.missing(dataset.trained_risk)} numbers not "
        f"finite. d = {config.d}, n = {config.n}."
    )
