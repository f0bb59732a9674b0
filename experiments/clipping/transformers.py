"""The trained transformers that experiments on clipping share, and their parts. No jax."""

from experiments.models.named import Named, named
from experiments.models.specs import Spec, restored

PARTS = {"attention": "attention", "MLP": "mlp"}  # of a block, which A2 clips whole
OWN_PROMPTS = "each run has its own prompts; they were shared"


def transformer(tier: str) -> Named:
    """Softmax, norms and MLPs, as the field ``models`` of a config has them."""
    return named(tier, ("transformer",))


def spec_of(config) -> Spec:
    """The one model of a config, of this code or out of a result."""
    ((_, spec),) = config.models
    return restored(spec)


def fresh(config) -> str:
    """The runs that judge every row since the look that all experiments on these models have had.

    Those of the paper tier are none of the laptop's.
    """
    runs = f"{spec_of(config).training.seeds} runs at 1.1 times the risk of least squares"
    return f"{runs}, noise 0.5; 12 at 12 times, noise 0.1, before"
