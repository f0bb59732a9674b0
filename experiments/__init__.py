"""What this repository asks: a folder a theme, and in it one an experiment."""

# In the order in which they are run and reported.
EXPERIMENTS = (
    "heads.sparse_risk",
    "heads.preprocess_then_optimise",
    "heads.layer_probes",
    "recurrent.learning_curves",
)
