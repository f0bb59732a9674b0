"""The sizes and the statements of `implicit_trajectories`."""

from dataclasses import dataclass, replace
from operator import attrgetter

from experiments.models.named import named
from experiments.models.specs import Spec
from lsa_lab.claims import Statement
from lsa_lab.harness import checks

MODELS = ("linear", "softmax")
ALGORITHMS = ("GD", "GD++", "preconditioned GD", "Newton", "ridge")


def named_model(tier: str, name: str) -> Spec:
    return dict(named(tier))[name]


def both(tier: str) -> dict[str, Spec]:
    return {name: named_model(tier, f"{name} attention") for name in MODELS}


LINEAR, SOFTMAX = both("laptop").values()


@dataclass(frozen=True)
class Config:
    """Trained linear and softmax layers beside the steps of five algorithms fitted to them."""

    linear: Spec = LINEAR  # reads prompts in units of their own, and so do steps
    softmax: Spec = SOFTMAX  # the trained softmax attention
    fitting_steps: int = 300  # that fit the parameters of each algorithm
    fitting_prompts: int = 2048  # of each run, its own
    fitting_batch: int = 64  # prompts in one of these steps
    test_prompts: int = 256  # of each run, its own
    seed: int = 1
    # Criteria. A distance is |∂ŷ/∂x_query - w|, averaged over prompts, over the average length of
    # the former; layer t stands beside step t.
    ratio_to_descent: float = 0.5  # last linear layer: distance to GD++ over that to GD
    distance: float = 0.10  # of the last layer to the algorithm that it is said to follow
    cosine: float = 0.95  # of the worst layer
    own_step: float = 0.9  # share of the linear layers whose nearest step of GD++ is their own

    def __post_init__(self):
        checks.kinds(self)
        for part in ("task.d", "task.lengths", "architecture.depth", "training.seeds"):
            if len({attrgetter(part)(spec) for spec in (self.linear, self.softmax)}) > 1:
                raise ValueError(f"linear and softmax: their {part} differ, choose models alike")
        for name in ("fitting_steps", "fitting_prompts", "fitting_batch", "test_prompts"):
            checks.between(self, name, 1, None)
        for name in ("ratio_to_descent", "distance"):
            checks.positive(self, name)
        for name in ("cosine", "own_step"):
            checks.between(self, name, 0, 1)
        checks.seed(self, "seed")


TIERS = {
    "smoke": Config(
        **both("smoke"),
        fitting_steps=5,
        fitting_prompts=16,
        fitting_batch=8,
        test_prompts=16,
    ),
    "laptop": Config(),
    "paper": Config(**both("paper"), fitting_steps=1000, fitting_batch=128, seed=2),
    "gpu": Config(
        **both("gpu"),
        fitting_steps=3000,
        fitting_prompts=40_000,
        fitting_batch=1024,
        test_prompts=10_000,
    ),
}


OSWALD = "von Oswald et al. 2212.07677, in our setting"
WELL_TRAINED = "well-trained models with noise, before models of 1 600 and 1 000 steps without"
SLOT = "layers before the last are read at the label slot, as von Oswald et al. do"


def statements(config) -> tuple[Statement, ...]:
    rows = (*about_linear_layers(config), *about_softmax_layers(config))
    revisions = ("; ".join(filter(None, (row.revision, WELL_TRAINED))) for row in rows)
    return tuple(replace(row, revision=text) for row, text in zip(rows, revisions, strict=True))


def fresh(config) -> str:
    return f"{config.linear.training.seeds} runs of the shared models, 12 others before"


def about_linear_layers(config) -> tuple[Statement, ...]:
    return (
        Statement(
            "plus_plus",
            OSWALD,
            "Trained linear layers follow GD++, not plain gradient descent",
            "distance to GD++ over distance to GD, at the last layer,",
            at_most=config.ratio_to_descent,
            note="short fits of GD++ stop early in some runs, those of the paper tier in none",
            redrawn=fresh(config),
        ),
        Statement(
            "not_preconditioning",
            "modelled on von Oswald et al. 2212.07677",
            "GD++ is nearer to linear layers than descent with or without fixed preconditioners",
            "the smaller distance to GD or preconditioned GD minus that to GD++, last layer,",
            at_least=0.0,
            revision="rival strengthened by plain GD, which fits better on new prompts",
            redrawn=fresh(config),
        ),
        Statement(
            "not_ridge",
            "modelled on von Oswald et al. 2212.07677",
            "GD++ is nearer to linear layers than ridge regression, which takes no steps",
            "distance to ridge minus distance to GD++, at the last layer,",
            at_least=0.0,
            revision="added",
            redrawn=fresh(config),
        ),
        Statement(
            "linear",
            OSWALD,
            "What a trained linear stack computes is a run of GD++",
            "distance to GD++ at the last layer",
            at_most=config.distance,
            note="ridge, which takes no steps, is as near: see not_ridge",
            redrawn=fresh(config),
        ),
        Statement(
            "direction",
            OSWALD,
            "Layer by layer, a trained linear stack points where GD++ does",
            "cosine with GD++ at the worst layer",
            at_least=config.cosine,
            note=SLOT,
            redrawn=fresh(config),
        ),
        Statement(
            "own_step",
            OSWALD,
            "One layer is one step: linear layer t is nearest to step t of GD++",
            "the share of such layers",
            at_least=config.own_step,
            note=f"{SLOT}; with longer fits of GD++ the share is larger",
            redrawn=fresh(config),
        ),
    )


def about_softmax_layers(config) -> tuple[Statement, ...]:
    return (
        Statement(
            "softmax",
            "modelled on A2 (2406.03768), A.2",
            "A trained softmax transformer, too, computes what one of these algorithms does",
            "distance, at the last layer, to the algorithm that is nearest to the other runs",
            at_most=config.distance,
            note="it is ridge, which takes no steps; GD++, fitted for longer, is 6 % away",
            revision="the algorithm is chosen on other runs; it was on the judged ones",
            redrawn=fresh(config),
        ),
        Statement(
            "newton",
            "Fu et al. 2310.17086, in our setting",
            "Softmax transformers are nearer to Newton's iteration than to gradient descent",
            "distance to GD minus distance to Newton, step for layer, at the last layer,",
            at_least=0.0,
            redrawn=fresh(config),
        ),
    )
