"""The models, the sizes and the statements of `common_map`."""

from dataclasses import dataclass

from lsa_lab.claims import Statement
from lsa_lab.harness import checks

# What a model is made of, beside masked linear attention.
MODELS = {
    "linear": {},
    "linear, query a key": {"keys": "all"},
    "linear, causal": {"keys": "causal"},
    "linear, norm": {"norm": True},
    "linear, MLP": {"mlp_width": True},
    "softmax": {"kernel": "softmax"},
    "softmax, norm": {"kernel": "softmax", "norm": True},
    "softmax, norm, MLP": {"kernel": "softmax", "norm": True, "mlp_width": True},
}


@dataclass(frozen=True)
class Config:
    """Random transformers, and the one matrix per layer that explains their tokens best."""

    d: int = 4
    n: int = 16
    noise_std: float = 0.5  # without noise in the labels, tokens lie in a subspace
    layers: int = 4  # of each model
    heads: int = 2
    key_width: int = 4  # of a head
    mlp_width: int = 16  # of the hidden layer
    scales: tuple[float, ...] = (0.5, 1.0, 2.0)  # of the weights, times 1 / √inputs
    runs: int = 12
    prompts: int = 4  # for each run, averaged
    queries: int = 12  # after the demonstrations of each prompt
    seed: int = 1
    # Criteria, on |H - H_0 W^T| / |H|.
    exact: float = 1e-10  # at most this is rounding
    clear: float = 1e-3  # at least this is none

    def __post_init__(self):
        checks.kinds(self)
        checks.between(self, "d", 1, 64)
        # At most e tokens, or d queries, always have a common map.
        checks.between(self, "n", self.d + 2, None)
        checks.between(self, "queries", self.d + 2, None)
        checks.each_positive(self, "scales")
        for name in ("layers", "heads", "key_width", "mlp_width", "prompts"):
            checks.between(self, name, 1, None)
        checks.between(self, "runs", 2, None)
        for name in ("noise_std", "exact", "clear"):
            checks.positive(self, name)
        checks.seed(self, "seed")


TIERS = {
    "smoke": Config(
        d=2, n=6, layers=2, heads=1, key_width=2, mlp_width=4, scales=(1.0,), runs=2, prompts=1
    ),
    "laptop": Config(),
    "paper": Config(
        d=8, n=64, layers=6, heads=4, key_width=8, mlp_width=64, runs=64, prompts=16, queries=32
    ),
}


def statements(config) -> tuple[Statement, ...]:
    # That masked linear attention has a map common to all tokens, that it still has one if the
    # query is a key, and that a causal mask leaves one to all queries, are theorems.
    none = "has no map common to the tokens of a prompt"

    def not_shared(name, says):
        return Statement(
            name,
            "modelled on A2 (2406.03768), Theorem 1",
            says,
            "|H - H_0 Wᵀ| / |H| at the layer and scale with the least",
            at_least=config.clear,
            note="the least is the hardest to hold for",
            redrawn=f"{config.runs} fresh runs, 8 before",
        )

    return (
        not_shared("query_as_key_queries", "A query that is a key changes the map"),
        not_shared("causal", f"Causal linear attention {none}"),
        not_shared("norm", f"Linear attention with pre-norm {none}"),
        not_shared("mlp", f"Linear attention with an MLP {none}"),
        not_shared("softmax", f"Softmax attention {none}"),
    )
