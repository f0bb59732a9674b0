"""How unequal flows are along the training of stacks of any depth, beside the Bayes rule's."""

import numpy as np

from experiments.flow.bayes_flows.claims import BAND, NEAR, numbers
from experiments.flow.bayes_flows.config import PRIORS
from experiments.models.specs import KERNELS
from lsa_lab.harness.draw import style
from lsa_lab.store import results


def plot(dataset):
    flows, config = numbers(dataset), results.config_of(dataset)
    figure, axes = style.figure(6.75, 2.9, (1, 2))
    for kernel in KERNELS:
        look = style.METHOD[kernel]
        for prior in PRIORS:
            filled = {} if prior == "dense" else {"mfc": "white"}
            x, y = (
                np.concatenate([what(kernel, prior, d)[:, 1:].ravel() for d in config.depths])
                for what in (flows.excess, flows.end)
            )
            points = dict(ls="", marker=look["marker"], ms=3, mew=0.6, color=look["color"])
            axes[0].plot(x, y, label=f"{kernel}, {prior}", **points | filled)
        for depth in config.depths[1:]:
            rows = flows.agreement(kernel, "dense", depth)[:, -1]
            layers = np.arange(depth) + 1
            style.median_points(axes[1], layers / depth, rows, lw=0.8, capsize=1, **look)
    style.log_axes(axes[0], x=True)
    axes[0].axhspan(1 - BAND, 1 + BAND, color="grey", alpha=0.2, lw=0)
    axes[0].axvline(NEAR, ymax=0.5, color="grey", lw=0.8)
    axes[0].set(xlabel="excess risk / the Bayes rule's risk", ylabel="|log ratio| / Bayes rule's")
    axes[0].set(title="What is near in risk is near in flow")
    axes[0].legend(loc="upper left")
    axes[1].axhline(1, color="grey", lw=0.8)
    axes[1].set(xlabel="layer / depth", ylabel="correlation of log flows")
    axes[1].set(title="Flows approach Bayes's by layer")
    return figure


def caption(dataset) -> str:
    flows, config = numbers(dataset), results.config_of(dataset)
    ends = [flows.once_near(k, p, d) for k in KERNELS for p in PRIORS for d in config.depths]
    near = [float(np.median(values)) for values in ends if values is not None]
    words = " to ".join(dict.fromkeys(f"{f(near):.2f}" for f in (min, max) if near)) or "unknown"
    return (
        f"Stacks that come near the Bayes rule in risk make two flows {words} times as unequal as "
        f"it does. All runs come near in {len(near)} of {len(ends)} kinds, and only these are "
        f"judged. A point of a is one run at one of {config.parts} checkpoints. The grey line is "
        f"an excess risk of {NEAR:.0%}, and the band is {BAND:.0%}. A line of b is one "
        "depth, with the dense prior."
    )
