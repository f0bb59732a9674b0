"""Where the experiments of earlier versions are: the name of the one whose part each is now, or
what it answered and which commit has it.

Rows have kept their ids: "noisy_pools.ridge_clean" is "fixed_and_per_query.ridge_clean".
"""

MOVED: dict[str, str] = {
    "amplification_limits": "bayes_flows",
    "clipping_and_bound": "bound_and_gap",
    "disturbances": "condition_numbers",
    "noisy_pools": "fixed_and_per_query",
    "several_classes": "coverage",
    "lm_clipping_search": "lm_clipping",
    "lm_grads": "lm_flow",
    "lm_label_bias": "lm_clipping",
    "width_and_ratio": "amplification",
    "covariate_shift": "one_layer_optimum",
    "update_sizes": "norms_and_updates",
    "demonstration_place": "order",
    "demonstration_order": "order",
    "head_importance": "head_pruning",
    "heads_beyond_d": "heads_per_layer",
    "head_lower_bound": "preprocess_then_optimise",
    "risk_rates": "sparse_risk",
    "shots_and_steps": "is gone: docs/retired.md has its answer, commit 8e8ab28 its code",
    "whitened_matching": "is gone: docs/retired.md has its answer, commit 8e8ab28 its code",
}
