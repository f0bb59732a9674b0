"""The change of the risk by the rate at which a part of a layer is clipped, and what is judged."""

import numpy as np

from experiments.clipping.clipping_curves.claims import over_ends, relative, samples, sides
from experiments.clipping.clipping_curves.config import DROPPED, statements
from experiments.clipping.diverged_runs import left_out
from experiments.clipping.layer_ends import shallow_and_deep
from experiments.clipping.transformer_config import PARTS
from lsa_lab import results
from lsa_lab.harness import judged_panel, style
from lsa_lab.statistics import CONFIDENCE, mean_interval

FACTORS = {"deep_bears_more": "shallow\nover deep", "few_shots_collapse_less": "few over\nn shots"}
SHARES = {
    "deep_is_flat": "deep,\nrise",
    "shallow_collapses": "shallow,\nrisk / guess",
    "few_shots_rise_less": "rise,\nfew less n",
}


def plot(dataset):
    config = results.config_of(dataset)
    figure, axes = style.figure(6.75, 9.0, (3, 2))
    for i, part in enumerate(PARTS):
        plot_layers(axes[i], dataset, part, config)
        plot_shots(axes[2 + i], dataset, part, config)
    judged, bounds = samples(dataset), statements(config)
    factors = {
        f"{part.lower()}_{id}": f"{part}, {text}" for part in PARTS for id, text in FACTORS.items()
    }
    judged_panel.rows(axes[4], bounds, judged, factors, (-0.8, 0.4))
    axes[4].set(xlabel="log₁₀ risk ratio", title="judged factors")
    shares = {
        f"{part.lower()}_{id}": f"{part}, {text}" for part in PARTS for id, text in SHARES.items()
    }
    names = {"few": min(config.shots), "trained": config.n, "many": max(config.shots)}
    shares |= {f"helps_{name}": f"best edit,\n{shots} shots" for name, shots in names.items()}
    axes[5].set_xscale("symlog", linthresh=0.01)
    judged_panel.rows(axes[5], bounds, judged, shares, (-0.15, 15))
    ticks = (-0.1, 0, 0.1, 1, 10)
    axes[5].set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes[5].set(xlabel="share of the risk", title="judged shares")
    return figure


def plot_layers(ax, dataset, part, config):
    """One curve a layer, with as many shots as in training."""
    change = relative(dataset).sel(shots=config.n, part=part)
    places = np.arange(dataset.sizes["rate"])
    for layer, color, marker in zip(
        dataset.layer.values, style.COLOURS, style.MARKERS, strict=False
    ):
        runs = change.sel(layer=layer).transpose("run", "rate")
        style.mean_band(ax, places, runs, f"layer {layer}", color, marker)
    ax.set_title(f"{part}, {config.n} shots")
    rate_axis(ax, dataset.rate.values)


def plot_shots(ax, dataset, part, config):
    """The first layers and the last ones, one curve for each number of shots."""
    change = relative(dataset).sel(part=part)
    places = np.arange(dataset.sizes["rate"])
    for shots, color in zip(dataset.shots.values, style.COLOURS, strict=False):
        shallow, deep = shallow_and_deep(change.sel(shots=shots), config.ends)
        runs = shallow.transpose("run", "rate"), deep.transpose("run", "rate")
        style.mean_band(ax, places, runs[0], f"{shots} shots", color, "o", "-")
        style.mean_band(ax, places, runs[1], None, color, "s", ":")
    ax.set_title(f"{part}, shallow and deep")
    ax.plot([], [], "k-", label=f"first {config.ends} layers")
    ax.plot([], [], "k:", label=f"last {config.ends} layers")
    rate_axis(ax, dataset.rate.values)


def rate_axis(ax, rates):
    """Places of equal distance, as in A2's figures, and a change that may be small or huge."""
    ax.axhline(0, color=style.BLACK, lw=0.8, ls="--")
    ax.set_yscale("symlog", linthresh=0.01, linscale=0.5)
    ax.set_ylim(-0.05, 5000)  # room for the legend
    ticks = (-0.01, 0, 0.01, 0.1, 1, 10, 100)
    ax.set_yticks(ticks, [f"{tick:+.0%}" if tick else "0" for tick in ticks])
    labels = ["drop" if rate == DROPPED else f"{rate:g}" for rate in rates]
    ax.set_xticks(np.arange(len(rates)), labels)
    ax.set(xlabel="clipping rate", ylabel="change of the risk")
    ax.legend(ncols=2, loc="upper left")


def caption(dataset) -> str:
    config, judged, change = results.config_of(dataset), samples(dataset), relative(dataset)
    flat = [judged[f"{part.lower()}_deep_is_flat"].mean() for part in PARTS]
    apart = [
        "{:.2f} [{:.2f}, {:.2f}]".format(*10 ** np.array([logs.mean(), *mean_interval(logs)]))
        for logs in (judged[f"{part.lower()}_deep_bears_more"] for part in PARTS)
    ]
    side, tail, edits = sides(change), (1 - CONFIDENCE) / 2, change[0, 0].size
    shots = dataset.shots.values
    better = ", ".join(f"{int((side.sel(shots=s) < 0).sum())} at {s}" for s in shots)
    far = np.exp(np.log(dataset.unclipped / dataset.ridge).mean("run"))
    ratios = ", ".join(f"{float(ratio):.2g} at {s}" for s, ratio in zip(shots, far, strict=True))
    return (
        f"Drastic clipping of the last {config.ends} layers raises our models' risk by "
        f"{flat[0]:.0%} (attention) and {flat[1]:.0%} (MLP); with the first {config.ends} it is "
        f"{apart[0]} and {apart[1]} times as high. "
        f"Our models are far from the best predictor: unclipped, their risk is that of ridge "
        f"regression times {ratios} shots, and they were trained at {config.n} alone. "
        f"{by_rate(dataset, config)} {two_readings(dataset, config)} a to d: means over runs and "
        f"95 % intervals; e, f: {judged_panel.KEY}. "
        f"{dataset.sizes['run']} runs ({left_out(dataset)} diverged and left out), each with "
        f"{config.prompts} prompts of its own; drastic: rates >= {config.high:g}, averaged. Of "
        f"{edits} edits the interval of a change lies below zero for {better} shots; luck alone "
        f"puts {tail * edits:.0f} there. d = {config.d}."
    )


def by_rate(dataset, config):
    """How shallow and deep attention compare at each drastic rate."""
    logs = np.log10(1 + relative(dataset)).sel(shots=config.n, part="attention")
    shallow, deep = shallow_and_deep(logs.sel(rate=slice(config.high, None)), config.ends)
    ratios = 10 ** (shallow - deep).mean("run")
    listed = ", ".join(
        f"{float(ratios.sel(rate=rate)):.2f} at {'drop' if rate == DROPPED else f'{rate:g}'}"
        for rate in ratios.rate.values
    )
    return f"Shallow over deep attention by rate: {listed}."


def two_readings(dataset, config):
    """What fewer shots do to the collapse, as a factor and as a share of the risk of a guess."""
    shots = [min(config.shots), config.n]
    factors, _ = over_ends(np.log10(1 + relative(dataset)), config)
    rises, _ = over_ends(dataset.change / config.d, config)
    factors, rises = (each.sel(part="attention").mean("run") for each in (factors, rises))
    room = config.d / dataset.unclipped.mean("run")
    factors, rises, room = (each.sel(shots=shots).values for each in (10**factors, rises, room))
    return (
        f"Few shots, two readings: clipping shallow attention multiplies the risk by "
        f"{factors[0]:.2f} at {shots[0]} shots and {factors[1]:.2f} at {shots[1]}, and adds "
        f"{rises[0]:.1%} and {rises[1]:.1%} of the risk of predicting 0, which is {room[0]:.1f} "
        f"and {room[1]:.0f} times the risk unclipped: a factor has less room at few shots."
    )
