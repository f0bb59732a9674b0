"""What the statements of `common_map` are judged by."""

import numpy as np

from lsa_lab import results
from lsa_lab.claims import about_the_mean


def claims(dataset):
    settings = results.config_of(dataset)
    none = "has no map common to the tokens of a prompt"
    table = (  # name, model, is the map exact, statement
        ("linear", "linear", True, "Masked linear attention: h_t = W_t h_0, one W_t for a prompt"),
        ("query_as_key", "linear, query a key", True, "With the query a key, tokens share one map"),
        (
            "query_as_key_queries",
            "linear, query a key",
            False,
            "A query that is a key changes the map",
        ),
        ("causal", "linear, causal", False, f"Causal linear attention {none}"),
        ("causal_queries", "linear, causal", True, "Causal masks keep one map for all queries"),
        ("norm", "linear, norm", False, f"Linear attention with pre-norm {none}"),
        ("mlp", "linear, MLP", False, f"Linear attention with an MLP {none}"),
        ("softmax", "softmax", False, f"Softmax attention {none}"),
    )
    found = []
    for name, model, exact, statement in table:
        measured = dataset["query_residual" if name.endswith("_queries") else "residual"]
        places = measured.sel(model=model).transpose(..., "run").values.reshape(-1, settings.runs)
        bound = settings.exact if exact else settings.clear
        criterion = f"largest over layers and scales <= {bound:g}"
        criterion = criterion if exact else f"smallest over layers and scales >= {bound:g}"
        found.append(
            about_the_mean(
                f"common_map.{name}",
                "A2 (2406.03768), Theorem 1" if name == "linear" else "derived here",
                statement,
                f"mean |H - H_0 W^T| / |H|, {criterion}",
                (max if exact else min)(places, key=np.mean),
                **{"at_most" if exact else "at_least": bound},
            )
        )
    return found
