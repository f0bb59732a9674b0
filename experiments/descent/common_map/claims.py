"""What `common_map` judges, at the layer and scale where it is hardest to hold."""

from lsa_lab.judging.statements import Statement
from lsa_lab.judging.statistics import worst

NONE = "has no map common to the tokens of a prompt"
# That masked linear attention has a map common to all tokens, that it still has one if the query is
# a key, and that a causal mask leaves one to all queries, are theorems.
CELLS = {
    "softmax": dict(model="softmax", of="tokens"),
    "causal": dict(model="linear, causal", of="tokens"),
    "norm": dict(model="linear, norm", of="tokens"),
    "mlp": dict(model="linear, MLP", of="tokens"),
    "query_as_key_queries": dict(model="linear, query a key", of="queries"),
}
SAYS = {
    "softmax": f"Softmax attention {NONE}",
    "linear, causal": f"Causal linear attention {NONE}",
    "linear, norm": f"Linear attention with pre-norm {NONE}",
    "linear, MLP": f"Linear attention with an MLP {NONE}",
    "linear, query a key": "A query that is a key changes the map",
}
RESIDUALS = {"tokens": "residual", "queries": "query_residual"}


def least(dataset, model, of):  # [R]
    runs = dataset[RESIDUALS[of]].sel(model=model).transpose("run", ...)
    return worst(runs, lambda runs: -runs.mean())


def statements(config) -> tuple[Statement, ...]:
    return (
        Statement(
            "not_common",
            "modelled on A2 (2406.03768), Theorem 1",
            "{says}",
            "|H - H_0 Wᵀ| / |H| at the layer and scale with the least",
            at_least=1e-3,
            note="the least is the hardest to hold for",
            redrawn=f"{config.runs} fresh runs, 8 before",
            sample=least,
            cells=CELLS,
            words=lambda model, of: dict(says=SAYS[model]),
            message="In random stacks softmax, a causal mask, a norm or an MLP leaves the tokens "
            "of a prompt no common map, and a query that is a key changes the map",
        ),
    )
