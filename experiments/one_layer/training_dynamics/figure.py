"""Paths of the effective step, of modes and separate heads beside their laws; what is judged."""

from experiments.one_layer.training_dynamics.claims import distance_from_law, samples
from experiments.one_layer.training_dynamics.config import statements
from lsa_lab import results
from lsa_lab.harness import judged_panel, style


def plot(dataset):
    figure, axes = style.figure(6.75, 5.4, (2, 2))
    for ax, panel in zip(axes, (isotropic, modes, heads, judged), strict=True):
        panel(ax, dataset)
    return figure


def isotropic(ax, dataset):
    limit, times = dataset["limit"].item(), dataset.step_stochastic_time.values
    paths, law, population = (
        dataset[name].mean("step_entry") / limit
        for name in ("step_stochastic", "step_stochastic_law", "step_population")
    )
    style.band(ax, times, paths.transpose("run", ...), "samples", marker=None)
    style.line(ax, times, law, "logistic law")
    few = slice(None, None, max(1, len(times) // 20))
    look = {"ms": 3, "color": style.COLOURS[1], "label": "population loss"}
    ax.plot(dataset.step_population_time[few], population[few], "o", **look)
    ax.axvline(dataset.half_time.item(), color="grey", lw=0.8, ls="--", label="half-time, formula")
    ax.set(xlabel="time = steps × rate", ylabel="effective step, share of its limit")
    ax.set_title("isotropic")
    ax.legend()


def modes(ax, dataset):
    times = dataset.mode_stochastic_time.values
    for i, value in enumerate(dataset.mode_entry.values):
        mode = dataset.isel(mode_entry=i)
        color = style.COLOURS[i % len(style.COLOURS)]
        paths = (mode.mode_stochastic / mode.mode_limit).transpose("run", ...)
        style.band(ax, times, paths, f"λ = {value:g}", color, marker=None)
        law = mode.mode_population_law / mode.mode_limit
        style.line(ax, dataset.mode_population_time, law, style="--")
    style.log_axes(ax, x=True)
    ax.set(xlabel="time", ylabel="mode, share of its limit", xlim=(times[1], times[-1]))
    ax.set_title("merged keys and queries")
    ax.legend()


def heads(ax, dataset):
    times = dataset.head_time.values
    style.line(ax, times, dataset.head_loss, "separate rank-1 heads")
    for i, value in enumerate(dataset.plateau.values):
        ax.axhline(value, color="grey", lw=0.8, ls="--", label="plateaus" if i == 0 else None)
    style.log_axes(ax, x=True)
    ax.set(xlabel="time", ylabel="loss (with its factor 1/2)", xlim=(times[1], times[-1]))
    ax.set_title("separate keys and queries")
    ax.legend(loc="upper right", bbox_to_anchor=(1, 0.95))


def judged(ax, dataset):
    labels = {
        "samples": "distance from the law",
        "half_time": "half-time, relative error",
        "order": "delay of the next mode",
    }
    style.log_axes(ax, x=True)
    rows = statements(results.config_of(dataset))
    judged_panel.rows(ax, rows, samples(dataset), labels, (4e-3, 5))
    ax.set_title("what is judged")


def caption(dataset) -> str:
    config, measured = results.config_of(dataset), samples(dataset)
    missing = style.missing(dataset.step_stochastic) + style.missing(dataset.mode_stochastic)
    eigenvalues = ", ".join(f"{value:g}" for value in config.eigenvalues)
    population = 100 * float(distance_from_law(dataset, "population").max())
    return (
        f"Descent on fresh samples is off the logistic law by "
        f"{100 * measured['samples'].mean():.2g} % of the limit on average; each mode takes at "
        f"least {measured['order'].min():.2g} times as long as the one before. "
        f"Lines and dashes: closed laws and the matrix ODE, whose agreement is a theorem "
        f'(docs/theory, "The logistic law"); descent on the population loss is within '
        f"{population:.2g} % of it. Bands: the middle 80 % of {config.runs} runs of descent on "
        f"fresh batches of {config.batch}, all entries free; {missing} numbers left out as not "
        f"finite. a: d = {config.d}, n = {config.n}; b and c: eigenvalues {eigenvalues}. d: "
        f"{judged_panel.KEY}."
    )
