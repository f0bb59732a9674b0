"""The trained linear stacks that experiments on clipping share. No jax."""

from experiments.models.named import Named
from experiments.models.regression import dense

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
    return (("linear stacks", dense("linear", **sizes, noise_std=0.5, training=training)),)
