"""The trained models that experiments on clipping share, in numbers, and their layers. No jax."""

import numpy as np

from experiments.models.named import Named, choose_pairs
from experiments.models.specs import Spec, dense_spec, restored

Rates = tuple[float, ...]  # of clipping
DROPPED = 1.0  # the rate that stands for rank 0
WORTHWHILE = 0.01  # share of the risk that is a gain to speak of
PARTS = {"attention": "attention", "MLP": "mlp"}  # of a block, which A2 clips whole
# What changed in rows on clipped models after a look, and the draws that judge them since.
CUT = "answers are cut at twice the largest label of their prompt, for errors had no bound"
_SIZES = {"smoke": dict(d=2, n=4, depth=2)}
_RECIPES = {
    "smoke": dict(steps=10, batch=8, seeds=3),
    "laptop": dict(steps=2400, batch=128, seeds=16),  # one or two diverge early, and are left out
    "paper": dict(steps=20_000, batch=512, seeds=16),
}


def linear_stacks(tier: str) -> Named:
    """One head of merged weights a layer, as the field ``models`` of a config has them.

    Gradients are cut short: deep linear attention meets rare, enormous ones.
    """
    sizes = _SIZES.get(tier, dict(d=5, n=20, depth=4))
    training = dict(learning_rate=0.025, clip=0.1, seed=1) | _RECIPES[tier]
    return (("linear stacks", dense_spec("linear", **sizes, noise_std=0.5, training=training)),)


def transformer(tier: str) -> Named:
    """Softmax, norms and MLPs, as the field ``models`` of a config has them."""
    return choose_pairs(("transformer",), small=tier == "smoke")


def spec_of(config) -> Spec:
    """The one model of a config, of this code or out of a result."""
    ((_, spec),) = config.models
    return restored(spec)


def fresh_prompts(config) -> str:
    """The draws that judge rows on clipped models since their answers are cut."""
    return f"fresh prompts of the same {spec_of(config).training.seeds} runs"


def shallow_and_deep(values, count):
    """The first layers and the last ones, ``count`` of them, averaged."""
    ends = (slice(count), slice(-count, None))
    return [values.isel(layer=end).mean("layer") for end in ends]


def gains_by_others(changes):  # (run, layer, part, rate) -> [R]
    """The change of each run by that edit which lowers it most, on average, for all other runs."""
    table = changes.transpose("run", ...).values.reshape(changes.sizes["run"], -1)
    others = table.sum(0, keepdims=True) - table
    return table[np.arange(len(table)), others.argmin(1)]
