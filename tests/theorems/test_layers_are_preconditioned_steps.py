"""L layers with any matrices A_l are L steps of gradient descent preconditioned by A_lᵀ.

Ahn et al. 2306.00297; docs/theory, "Layers are preconditioned steps": after l layers slot i holds
y_i - w_l·x_i and the query's -w_l·x_query, w_{l+1} = w_l + A_lᵀ Xᵀ(y - Xw_l)/n. Sides: the
network's label slots; that descent in NumPy, one demonstration after the other. Hypothesis: the
query is no key.
"""

from functools import partial

import jax
import numpy as np

from draws import seeds
from lsa_lab import prompts
from lsa_lab.models import constructions, linear_attention
from lsa_lab.models.trace import layer_predictions

N, D, NUM_LAYERS = 5, 3, 4


@partial(jax.jit, static_argnames=("n", "d", "num_layers", "keys"))
def network(seed, n, d, num_layers, keys):
    """Preconditioners, prompt, label slots and predictions after each layer."""
    parents = jax.random.split(jax.random.key(seed), 4)
    steps = jax.random.normal(parents[0], (num_layers, d, d)) / d
    x, truth = jax.random.normal(parents[1], (n + 1, d)), jax.random.normal(parents[2], (d,))
    y = x[:-1] @ truth + jax.random.normal(parents[3], (n,))
    prompt = prompts.Prompt(x[:-1], y, x[-1], x[-1] @ truth)
    params = constructions.preconditioned(steps)
    trace = linear_attention.forward(params, prompts.tokens(prompt), keys=keys)
    return steps, prompt, trace.stream[..., -1], layer_predictions(trace)


def disagreement(seed, n, d, num_layers, transposed=True, keys="demonstrations"):
    steps, prompt, slots, predictions = network(seed, n, d, num_layers, keys)
    x, y, w = np.array(prompt.x), np.array(prompt.y), np.zeros(d)
    differences = []
    for layer in range(num_layers + 1):
        differences.append(slots[layer, :-1] - (y - x @ w))
        differences.append([predictions[layer] - prompt.x_query @ w])
        if layer < num_layers:
            step = np.array(steps[layer].T if transposed else steps[layer])
            gradient = sum(np.dot(w, x[i]) * x[i] - y[i] * x[i] for i in range(n)) / n
            w = w - step @ gradient
    return np.max(np.abs(np.concatenate(differences))) / (1 + np.max(np.abs(slots)))


@seeds
def test_layers_are_preconditioned_steps_of_gradient_descent(seed):
    assert disagreement(seed, N, D, NUM_LAYERS) < 1e-10


def test_control_a_missing_transposition_or_the_query_among_the_keys_breaks_it():
    assert disagreement(0, 5, 3, 4, transposed=False) > 1e-2
    assert disagreement(0, 5, 3, 4, keys="all") > 1e-3
    assert disagreement(0, 5, 3, 1, keys="all") < 1e-10  # the query's slot is still empty
