"""The models, the sizes and the statements of `common_map`, fixed before its first run."""

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
    layers: int = 4
    heads: int = 2
    key_width: int = 4
    mlp_width: int = 16
    scales: tuple[float, ...] = (0.5, 1.0, 2.0)  # of the weights, times 1 / √inputs
    runs: int = 8
    prompts: int = 4  # for each run, averaged
    queries: int = 12  # after the demonstrations of each prompt
    seed: int = 0
    # Criteria, on |H - H_0 W^T| / |H|.
    exact: float = 1e-10  # at most this is a common map
    clear: float = 1e-3  # at least this is none

    def __post_init__(self):
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
    none = "has no map common to the tokens of a prompt"

    def shared(name, says, source="derived here"):
        measured = "|H - H_0 Wᵀ| / |H| at the worst layer and scale"
        return Statement(name, source, says, measured, at_most=config.exact)

    def not_shared(name, says):
        measured = "|H - H_0 Wᵀ| / |H| at the layer and scale with the least"
        return Statement(name, "derived here", says, measured, at_least=config.clear)

    theorem = "Masked linear attention: h_t = W_t h_0, one W_t for all tokens of a prompt"
    return (
        shared("linear", theorem, "A2 (2406.03768), Theorem 1"),
        shared("query_as_key", "If the query is a key too, the tokens still share one map"),
        not_shared("query_as_key_queries", "A query that is a key changes the map"),
        not_shared("causal", f"Causal linear attention {none}"),
        shared("causal_queries", "A causal mask leaves one map that all queries share"),
        not_shared("norm", f"Linear attention with pre-norm {none}"),
        not_shared("mlp", f"Linear attention with an MLP {none}"),
        not_shared("softmax", f"Softmax attention {none}"),
    )
