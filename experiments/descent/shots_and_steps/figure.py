"""Errors of trained models against shots and training steps, beside known rules; what counts."""

from experiments.descent.shots_and_steps.claims import left_over, over_bayes, samples
from experiments.descent.shots_and_steps.config import MODELS, statements
from lsa_lab import results
from lsa_lab.harness import judged_panel, style


def plot(dataset):
    figure, axes = style.figure(6.75, 5.8, (2, 2))
    against_shots(axes[0], dataset.isel(noise=0), ["least squares"])
    zero = results.config_of(dataset).zero * results.config_of(dataset).d
    axes[0].axhline(zero, color=style.COLOURS[1], lw=0.8, ls="--", label="bound: zero")
    against_shots(axes[1], dataset.isel(noise=1), ["least squares", "Bayes rule"])
    against_steps(axes[2], dataset.isel(noise=1))
    for ax, place in zip(axes, ("upper left", "lower left", "upper right"), strict=False):
        ax.legend(loc=place)
    judged(axes[3], dataset)
    return figure


def against_shots(ax, dataset, rules):
    config, shots = results.config_of(dataset), dataset.shots.values
    for name, color, marker in zip(MODELS, style.COLOURS, style.MARKERS, strict=False):
        runs = dataset.error.sel(model=name).transpose("run", "shots")
        style.median_points(ax, shots, runs, name, fmt=marker, color=color, capsize=2)
    for rule, label, dash in zip(rules, ("least squares", "Bayes rule: ridge"), "-:", strict=False):
        style.line(ax, shots, dataset.known.sel(rule=rule).median("run"), label, style=dash)
    ax.axvline(config.n, color="grey", lw=0.8, ls="--")
    style.log_axes(ax, x=True, y=True, ticks=shots)
    ax.set(xlabel="shots", ylabel="excess risk", ylim=(config.zero * config.d / 5, top(config)))
    ax.set_title(f"noise {dataset.noise.item():g}")


def against_steps(ax, dataset):
    config = results.config_of(dataset)
    for name, color, marker in zip(MODELS, style.COLOURS, style.MARKERS, strict=False):
        runs, steps = dataset.learning.sel(model=name), dataset.steps.sel(model=name).values
        look = dict(fmt=marker, color=color, capsize=2)
        style.median_points(ax, steps, runs.transpose("run", "look"), name, **look)
    bayes = dataset.known.sel(rule="Bayes rule", shots=config.n).median().item()
    ax.axhline(bayes, color=style.BLACK, ls=":", lw=1.2, label="Bayes rule: ridge")
    style.log_axes(ax, y=True)
    ax.set(xlabel="training steps", ylabel=f"excess risk at {config.n} shots")
    ax.set_title(f"training, noise {dataset.noise.item():g}")


def judged(ax, dataset):
    rows = statements(results.config_of(dataset))
    labels = {row.id: row.id.replace("_", " ") for row in rows}
    style.log_axes(ax, x=True)
    judged_panel.rows(ax, rows, samples(dataset), labels, (1e-3, 1e4))
    ax.set(xlabel="ratio, or share")
    ax.set_title("what is judged")


def top(config) -> float:
    """Where the axes end: at few shots linear attention is far above any other."""
    return 40 * config.d


def caption(dataset) -> str:
    config = results.config_of(dataset)
    left = [100 * left_over(dataset, name, 2 * config.d).median().item() for name in MODELS]
    ratios = [over_bayes(dataset, name).median().item() for name in MODELS]
    missing = style.missing(dataset.error) + style.missing(dataset.learning.isel(noise=1))
    above = int((dataset.error.median("run") > top(config)).sum())
    diverged = int(dataset.status.astype(str).str.startswith("diverged").sum())
    return (
        f"At {2 * config.d} = 2d shots {left[0]:.2g} % ({MODELS[0]}) and {left[1]:.2g} % "
        f"({MODELS[1]}) of the error is left; with noise training ends at {ratios[0]:.2g} and "
        f"{ratios[1]:.2g} times the Bayes rule's error. Left is what {config.depth} layers keep of "
        f"the error without shots, without noise; least squares then needs d shots and keeps none: "
        f"our models, softmax above all, are far from it. Linear layers explode on single prompts "
        f"at lengths that they were not trained at: {above} medians lie above the axes. Medians of "
        f"{config.runs} runs with 95 % intervals; {missing} numbers left out as not finite, "
        f"{diverged} of {dataset.status.size} trainings diverged. Grey: the {config.n} shots of "
        f"training. d: {judged_panel.KEY}."
    )
