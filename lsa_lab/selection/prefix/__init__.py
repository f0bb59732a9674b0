"""Gradients of a small latent learner: a prefix, or the simplest of all, a weight vector (A3).

A prefix z [k, e] of trainable tokens stands where demonstrations would; the model is frozen. With
the squared error in place of A3's negative log-likelihood (docs/theory, "Gradient matching"),

    ℓ_i(z) = ½ (ŷ(z, x_i) - y_i)²,    g_i = [∇ℓ_i(z_1), ..., ∇ℓ_i(z_C)]

over the checkpoints z_1, ..., z_C of its training. ``training.fit`` trains it and keeps them:

    recipe = Recipe()
    training = Training(partial(batch_loss, forward, params),
                        lambda key: sample_batch(key, pool, recipe.batch),
                        recipe.optimizer(m), recipe.steps(m))
    run = fit(training, init(key, recipe.prefix_length, e), key, chunk=recipe.chunk(m),
              watch=lambda prefix: prefix)
    gradients = prefix_gradients(forward, params, run.history["watch"][:-1], pool)

Any other learner comes as loss(prefix, params, example) -> [], whatever a prefix and an example
are: ``mean_loss`` in the place of ``batch_loss`` and ``example_gradients`` of ``prefix_gradients``,
which are these two with the squared error above (``lm.prefix.loss`` is a decoder's cross-entropy).
"""

from lsa_lab.selection.prefix.losses import (
    Loss,
    batch_loss,
    example_gradients,
    example_loss,
    linear_gradients,
    linear_loss,
    mean_loss,
    prefix_gradients,
    tokens,
)
from lsa_lab.selection.prefix.recipes import Recipe, init, sample_batch

__all__ = [
    "Loss",
    "Recipe",
    "batch_loss",
    "example_gradients",
    "example_loss",
    "init",
    "linear_gradients",
    "linear_loss",
    "mean_loss",
    "prefix_gradients",
    "sample_batch",
    "tokens",
]
