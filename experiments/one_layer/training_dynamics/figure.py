"""The figure of `training_dynamics`, drawn from its result alone."""

from lsa_lab import results
from lsa_lab.harness import style


def plot(dataset):
    settings = results.config_of(dataset)
    drawn, axes = style.figure(9.0, 3.4, (1, 3))
    limit, half = float(dataset["limit"]), float(dataset.half_time)
    ax = axes[0]
    times = dataset.step_stochastic_time.values
    every = slice(None, None, max(1, len(times) // 20))
    lost = style.band(
        ax, times, dataset.step_stochastic.mean("step_entry") / limit, "samples", marker=None
    )
    style.line(ax, times, dataset.step_stochastic_law.mean("step_entry") / limit, "logistic law")
    population = dataset.step_population.mean("step_entry") / limit
    ax.plot(
        dataset.step_population_time[every],
        population[every],
        "o",
        ms=3,
        color=style.COLOURS[1],
        label="population loss",
    )
    ax.axvline(half, color="grey", lw=0.8, ls="--", label="half-time, formula")
    ax.set(xlabel="time = steps × rate", ylabel="effective step, share of its limit")
    ax.set_title("isotropic")
    ax.legend()
    ax = axes[1]
    for i, value in enumerate(settings.eigenvalues):
        reach = float(dataset.mode_limit[i])
        color = style.COLOURS[i % len(style.COLOURS)]
        times = dataset.mode_stochastic_time.values
        paths = dataset.mode_stochastic.isel(mode_entry=i) / reach
        lost += style.band(ax, times, paths, f"λ = {value:g}", color, marker=None)
        law_ = dataset.mode_population_law.isel(mode_entry=i) / reach
        style.line(ax, dataset.mode_population_time, law_, style="--", color=style.BLACK)
    style.log_axes(ax, x=True)
    ax.set(xlabel="time", ylabel="mode, share of its limit", xlim=(times[1], times[-1]))
    ax.set_title("merged keys and queries")
    ax.legend()
    ax = axes[2]
    style.line(ax, dataset.head_time, dataset.head_loss, "separate rank-1 heads")
    for i, value in enumerate(dataset.plateau.values):
        ax.axhline(value, color="grey", lw=0.8, ls="--", label="plateaus" if i == 0 else None)
    style.log_axes(ax, x=True)
    ax.set(xlabel="time", ylabel="loss (with its factor 1/2)")
    ax.set_xlim(dataset.head_time.values[1], dataset.head_time.values[-1])
    ax.set_title("separate keys and queries")
    ax.legend()
    style.caption(
        drawn,
        f"Lines and dashes: closed laws and the matrix ODE. Bands: the middle 80 % of "
        f"{settings.runs} runs of descent on fresh batches of {settings.batch}, all entries free; "
        f"{lost} numbers left out as not finite. a: d = {settings.d}, n = {settings.n}; "
        f"b and c: eigenvalues {settings.eigenvalues}.",
    )
    return drawn
