"""The rules that know the task of sparse regression, by name."""

RIDGE, EQUIVARIANT, LASSO, SPARSE_BAYES = RULES = (
    "ridge",
    "rotation-equivariant Bayes",
    "Lasso",
    "sparse Bayes",
)
