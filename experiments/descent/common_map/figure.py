"""What the best common map of every model misses, and how much of the tokens' move that is."""

import numpy as np

from experiments.descent.common_map.claims import samples
from experiments.descent.common_map.config import MODELS, statements
from lsa_lab import results
from lsa_lab.harness import judged_panel, style

EXACT = ("linear", "linear, query a key")  # nothing of the tokens is left to explain


def plot(dataset):
    figure, axes = style.figure(6.75, 6.0, (2, 2))
    last = dataset.isel(layer=-1)
    residuals(axes[0], dataset, last.residual)
    residuals(axes[1], dataset, last.query_residual)
    axes[0].set_title("tokens of a prompt")
    axes[0].legend()
    axes[1].set_title("queries, same demonstrations")
    unexplained(axes[2], middle_scale(dataset))
    judged(axes[3], dataset)
    return figure


def residuals(ax, dataset, residual):
    config = results.config_of(dataset)
    smallest = np.finfo(float).eps / 10
    places = np.arange(len(MODELS))
    for i, scale in enumerate(config.scales):
        runs = residual.sel(scale=scale).transpose("run", "model")
        runs = np.maximum(runs, smallest)  # an exact zero has no logarithm
        x = places + 0.2 * (i - (len(config.scales) - 1) / 2)
        style.band(ax, x, runs, f"weights × {scale:g}", style.COLOURS[i], style.MARKERS[i])
    ax.axhline(config.clear, color=style.COLOURS[1], lw=0.8, ls="--")
    ax.axhspan(smallest, config.exact, color="grey", alpha=0.12, lw=0)
    ax.set_ylim(smallest, 10)
    style.log_axes(ax, y=True)
    ax.set_xticks(places, list(MODELS), rotation=40, ha="right", rotation_mode="anchor")
    ax.set_ylabel("|H - H₀Wᵀ| / |H|, last layer")


def unexplained(ax, dataset):
    names = [name for name in MODELS if name not in EXACT]
    for i, name in enumerate(names):
        x = dataset.layer.values + 0.08 * (i - (len(names) - 1) / 2)
        runs = dataset.unexplained.sel(model=name).transpose("run", "layer")
        style.band(ax, x, runs, name, style.COLOURS[i], style.MARKERS[i])
    ax.set(xlabel="layer", ylabel="share of h - h₀ not explained", xticks=dataset.layer.values)
    ax.set_ylim(0, 1.55 * ax.get_ylim()[1])
    ax.set_title(f"tokens of a prompt, weights × {dataset.scale.item():g}")
    ax.legend(ncols=2)


def judged(ax, dataset):
    labels = {
        "query_as_key_queries": "queries, query a key",
        "causal": "causal",
        "norm": "norm",
        "mlp": "MLP",
        "softmax": "softmax",
    }
    style.log_axes(ax, x=True)
    rows = statements(results.config_of(dataset))
    judged_panel.rows(ax, rows, samples(dataset), labels, (4e-4, 0.2))
    ax.set(xlabel="|H - H₀Wᵀ| / |H|, where least")
    ax.set_title("what is judged")


def middle_scale(dataset):
    return dataset.isel(scale=dataset.sizes["scale"] // 2)


def caption(dataset) -> str:
    config, last = results.config_of(dataset), dataset.isel(layer=-1)
    inexact = middle_scale(dataset).unexplained.sel(model=[m for m in MODELS if m not in EXACT])
    missing = sum(map(style.missing, (last.residual, last.query_residual, inexact)))
    softmax, causal, norm, mlp, linear = (
        last.residual.sel(model=name).median().item()
        for name in ("softmax", "linear, causal", "linear, norm", "linear, MLP", "linear")
    )
    return (
        f"One matrix a layer misses {softmax:.2g} of the stream with softmax, {causal:.2g} with a "
        f"causal mask, {norm:.2g} with norms, {mlp:.2g} with an MLP, and {linear:.0e} in masked "
        f"linear attention. The best matrix for each prompt and layer, at the same random weights; "
        f"median of {config.runs} runs and the middle 80 % of them; {missing} not finite. "
        f"d = {config.d}, n = {config.n}. Shaded: below {config.exact:g}, rounding: these maps are "
        f'theorems (docs/theory, "Moments suffice"). '
        f"Dashed: at least {config.clear:g} counts as no map. "
        f"d: {judged_panel.KEY}."
    )
