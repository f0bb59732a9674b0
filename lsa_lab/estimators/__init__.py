"""Baselines for a learner in context: from least squares to the exact sparse Bayes rule.

Every estimator takes one prompt and returns weights [d], or a path of weights or predictions.

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

from lsa_lab.estimators.bayes import discrete_posterior_means as discrete_posterior_means
from lsa_lab.estimators.bayes import gaussian_posterior_mean as gaussian_posterior_mean
from lsa_lab.estimators.bayes import nested_posterior_mean as nested_posterior_mean
from lsa_lab.estimators.bayes import nested_posterior_means as nested_posterior_means
from lsa_lab.estimators.bayes import sparse_posterior_mean as sparse_posterior_mean
from lsa_lab.estimators.descent import descent_modes as descent_modes
from lsa_lab.estimators.descent import descent_predictions as descent_predictions
from lsa_lab.estimators.descent import gradient_descent as gradient_descent
from lsa_lab.estimators.descent import gradient_descent_plus_plus as gradient_descent_plus_plus
from lsa_lab.estimators.descent import largest_step as largest_step
from lsa_lab.estimators.descent import mixed_gradient_descent as mixed_gradient_descent
from lsa_lab.estimators.descent import (
    preprocessed_gradient_descent as preprocessed_gradient_descent,
)
from lsa_lab.estimators.descent import preprocessed_step_limit as preprocessed_step_limit
from lsa_lab.estimators.lasso import lasso as lasso
from lsa_lab.estimators.least_squares import ols as ols
from lsa_lab.estimators.least_squares import ridge as ridge
from lsa_lab.estimators.prefixes import kalman_filter as kalman_filter
from lsa_lab.estimators.prefixes import prefixes as prefixes
from lsa_lab.estimators.prefixes import recursive_ridge as recursive_ridge
