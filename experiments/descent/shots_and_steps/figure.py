"""The figure of `shots_and_steps`, drawn from its result alone."""

from experiments.models.stacks import MODELS
from lsa_lab import results
from lsa_lab.harness import style


def plot(dataset):
    settings = results.config_of(dataset)
    drawn, axes = style.figure(9.0, 3.4, (1, 3))
    shots, lost = dataset.shots.values, 0
    zero, top = settings.zero * settings.d, 40 * settings.d
    for name, color, marker in zip(MODELS, style.COLOURS, style.MARKERS, strict=False):
        there = dataset.sel(model=name)
        for i, ax in enumerate(axes[:2]):
            runs = there.error.isel(noise=i).transpose("run", "shots")
            lost += style.band(ax, shots, runs, name, color, marker)
        runs = there.learning.isel(noise=1).transpose("run", "look")
        lost += style.band(axes[2], there.steps.values, runs, name, color, marker)
    for i, ax in enumerate(axes[:2]):
        for rule, dash in (("least squares", "-"), ("Bayes rule", ":"))[: i + 1]:
            known = dataset.known.isel(noise=i).sel(rule=rule).median("run")
            style.line(ax, shots, known, "Bayes rule: ridge" if dash == ":" else rule, style=dash)
        ax.axvline(settings.n, color="grey", lw=0.8, ls="--")
        style.log_axes(ax, x=True, y=True, ticks=shots)
        ax.set(xlabel="shots", ylabel="excess risk", ylim=(zero / 5, top))
        ax.set_title(f"noise {dataset.noise.values[i]:g}")
    axes[0].axhline(zero, color="grey", lw=0.8, ls="--")
    ax = axes[2]
    bayes = dataset.known.isel(noise=1).sel(rule="Bayes rule", shots=settings.n).median()
    ax.axhline(float(bayes), color=style.BLACK, ls=":", lw=1.2, label="Bayes rule: ridge")
    style.log_axes(ax, y=True)
    ax.set(xlabel="training steps", ylabel=f"excess risk at {settings.n} shots")
    ax.set_title(f"training, noise {settings.noise_std:g}")
    for ax, place in zip(axes, ("upper left", "lower left", "upper right"), strict=True):
        ax.legend(loc=place)
    medians = dataset.error.median("run")
    left = medians.isel(noise=0).sel(shots=2 * settings.d) / settings.d
    style.caption(
        drawn,
        f"Without noise least squares needs {settings.d} = d shots; at 2d the {settings.depth} "
        "layers keep "
        + " and ".join(f"{float(left.sel(model=name)):.1%} ({name})" for name in MODELS)
        + f" of the error without shots. Median of {settings.runs} runs and the middle 80 % of "
        f"them; {lost} numbers left out as not finite, {int((medians > top).sum())} medians of "
        f"linear attention at few shots far above the axes. Dashes: the {settings.n} shots of "
        "training, and what counts as zero.",
    )
    return drawn
