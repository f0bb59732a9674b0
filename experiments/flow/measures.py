"""Measures that experiments on gradients share: of trained models, of the Bayes rule, of ranks."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import rankdata

from experiments.models import tasks
from experiments.models.model import prepare_prompt
from lsa_lab import estimators
from lsa_lab.analyses.amplification import flow, log_sizes
from lsa_lab.models import moments
from lsa_lab.models.trace import layer_predictions
from lsa_lab.prompts import tokens


def draw_prompts(seed, spec, count):  # -> Prompt [R, B]
    task = tasks.distribution(spec.task, dtype=jnp.float32)
    return tasks.draw_runs(jax.random.key(seed), task, spec.training.seeds, count)


def compute_gradients(model, prompt):  # -> [L, n, e]
    """Return ∂ŷ_l/∂e_i, the gradient of each layer's prediction, in the units of the prompt."""

    def read(rows):  # -> [L]
        changed = prompt.replace(x=rows[:, :-1], y=rows[:, -1])
        _, scale = prepare_prompt(model.spec.architecture, changed)
        return scale * layer_predictions(model.forward(changed))[1:]

    return flow(read, tokens(prompt)[:-1])


def answer_by_bayes(prompt, noise_var, sparsity=None):  # -> []
    """Return ŷ of the posterior mean for w ~ N(0, I), or for ``sparsity`` weights N(0, 1) alone."""
    if sparsity is None:
        return estimators.gaussian_posterior_mean(prompt, 1.0, noise_var) @ prompt.x_query
    return estimators.sparse_posterior_mean(prompt, sparsity, 1.0, noise_var) @ prompt.x_query


def differentiate(rule, prompt):  # -> [], [n, e]
    """Return the answer of a rule, a function of a prompt, and its gradient by demonstration."""

    def answer(rows):
        return rule(prompt.replace(x=rows[:, :-1], y=rows[:, -1]))

    return jax.value_and_grad(answer)(tokens(prompt)[:-1])


def correlate_sizes(gradients, best):  # [L, n, e], [n, e] -> [L]
    """Return Pearson's correlation over demonstrations of log |gradient| with that of ``best``."""
    logs = log_sizes(jnp.concatenate([gradients, best[None]]))
    logs = logs - logs.mean(1, keepdims=True)
    logs = logs / jnp.linalg.norm(logs, axis=1, keepdims=True)
    return logs[:-1] @ logs[-1]


def compare_risks(models, prompts):  # Model [R], Prompt [R, B] -> [2, R]
    def measure(row):
        model, batch = row
        means = jax.vmap(estimators.gaussian_posterior_mean, (0, None, None))(
            batch, 1.0, model.spec.task.noise_std**2
        )
        best = (means * batch.x_query).sum(1) - batch.y_query
        return jnp.stack([model.errors(batch).mean(), (best**2).mean()])

    models = jax.tree.map(jnp.asarray, models)
    return np.asarray(moments.compiled(partial(jax.lax.map, measure))((models, prompts)), float).T


def correlate_ranks(left, right):
    return np.corrcoef(rankdata(left), rankdata(right))[0, 1]


def find_classes(sizes, count):  # [M] -> [M]
    """Return the quantile class of each size, 0 to count - 1."""
    return np.searchsorted(np.quantile(sizes, np.linspace(0, 1, count + 1)[1:-1]), sizes)


def average_cells(values, rows, columns, count):  # [M] x 3 -> [count, count]
    cells, square = rows * count + columns, count**2
    numbers = np.maximum(np.bincount(cells, minlength=square), 1)
    return (np.bincount(cells, values, square) / numbers).reshape(count, count)


def fit_grid(grid):  # [K, K] -> [2]
    """Return the shares of a grid's variance that the best f(s) g(r) and f(s) + g(r) explain."""
    u, sizes, v = np.linalg.svd(grid)
    product = sizes[0] * np.outer(u[:, 0], v[0])
    total = grid.mean(0) + grid.mean(1)[:, None] - grid.mean()
    return [1 - ((grid - fit) ** 2).mean() / grid.var() for fit in (product, total)]


def drop_last(prompt):
    return prompt.replace(x=prompt.x[:-1], y=prompt.y[:-1])


@jax.jit
def measure_bayes(prompts, noise_var):  # Prompt [R, B] -> {name: [R, B]}
    """Return the Bayes rule's factors of the last demonstration and its answers, w ~ N(0, I).

    With it the answer moves by gradient times surprise: x_queryᵀΣx/(xᵀΣx + σ²) times y - ŷ(x), Σ
    being the posterior covariance given the others.
    """

    def measure(prompt):
        others, x = drop_last(prompt), prompt.x[-1]
        precision = jnp.eye(len(x)) + others.x.T @ others.x / noise_var
        spread = jnp.linalg.solve(precision, x)
        before = estimators.gaussian_posterior_mean(others, 1.0, noise_var)
        after = estimators.gaussian_posterior_mean(prompt, 1.0, noise_var)
        return {
            "gradient": jnp.abs(prompt.x_query @ spread) / (x @ spread + noise_var),
            "surprise": jnp.abs(prompt.y[-1] - before @ x),
            "before": before @ prompt.x_query,
            "after": after @ prompt.x_query,
        }

    return jax.vmap(jax.vmap(measure))(prompts)
