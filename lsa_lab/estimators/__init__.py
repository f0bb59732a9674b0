"""What a learner in context is compared with: from least squares to the exact sparse Bayes rule.

Every estimator takes one prompt and returns weights [d], or its whole path; callers vmap.

    >>> import jax.numpy as jnp
    >>> from lsa_lab.prompts import Prompt
    >>> prompt = Prompt(x=jnp.eye(2), y=jnp.array([4.0, 1.0]), x_query=jnp.ones(2), y_query=5.0)
    >>> for weights in (ols(prompt), ridge(prompt, 0.5), lasso(prompt, 0.5)):
    ...     print(weights.round(1))
    [4. 1.]
    [2.  0.5]
    [3. 0.]
    >>> print(gradient_descent(prompt, [1.0, 1.0]) @ prompt.x_query)  # after 0, 1 and 2 steps
    [0.   2.5  3.75]
"""

from lsa_lab.estimators.bayes import (
    MAX_SUPPORTS,
    discrete_posterior_means,
    gaussian_posterior_mean,
    gaussian_predictive_variance,
    sparse_posterior_mean,
    spike_and_slab_posterior_mean,
)
from lsa_lab.estimators.descent import (
    descent_modes,
    descent_predictions,
    gradient_descent,
    gradient_descent_plus_plus,
    largest_step,
    mixed_gradient_descent,
    preprocessed_gradient_descent,
    preprocessed_step_limit,
)
from lsa_lab.estimators.equivariant import (
    flat_posterior_mean,
    rotation_equivariant_posterior_mean,
    rotation_equivariant_ridge,
)
from lsa_lab.estimators.lasso import lasso, lasso_duality_gap
from lsa_lab.estimators.least_squares import ols, ridge
from lsa_lab.estimators.prefixes import prefixes, recursive_ridge

__all__ = [
    "MAX_SUPPORTS",
    "descent_modes",
    "descent_predictions",
    "discrete_posterior_means",
    "flat_posterior_mean",
    "gaussian_posterior_mean",
    "gaussian_predictive_variance",
    "gradient_descent",
    "gradient_descent_plus_plus",
    "largest_step",
    "lasso",
    "lasso_duality_gap",
    "mixed_gradient_descent",
    "ols",
    "prefixes",
    "preprocessed_gradient_descent",
    "preprocessed_step_limit",
    "recursive_ridge",
    "ridge",
    "rotation_equivariant_posterior_mean",
    "rotation_equivariant_ridge",
    "sparse_posterior_mean",
    "spike_and_slab_posterior_mean",
]
