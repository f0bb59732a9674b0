"""L layers with any matrices A_l are L steps of gradient descent preconditioned by A_lᵀ.

Ahn et al. 2306.00297; docs/theory, "Layers are preconditioned steps": after l layers slot i holds
y_i - w_l·x_i and the query's -w_l·x_query, w_{l+1} = w_l + A_lᵀ Xᵀ(y - Xw_l)/n. Sides: the
network's label slots; that descent in NumPy, one demonstration after the other. Hypothesis: the
query is no key.
"""

from functools import partial

import numpy as np

from draws import draw_prompt, jit_numpy, seeds
from lsa_lab import prompts
from lsa_lab.models import constructions, linear_attention
from lsa_lab.models.trace import layer_predictions

N, D, NUM_LAYERS = 5, 3, 4


@partial(jit_numpy, static_argnames="keys")
def network(steps, prompt, keys):
    """Label slots and predictions after each layer."""
    params = constructions.preconditioned(steps)
    trace = linear_attention.forward(params, prompts.tokens(prompt), keys=keys)
    return trace.stream[..., -1], layer_predictions(trace)


def disagreement(seed, num_layers=NUM_LAYERS, transposed=True, keys="demonstrations"):
    rng = np.random.default_rng(seed)
    steps, prompt = rng.normal(size=(num_layers, D, D)) / D, draw_prompt(rng, N, D)
    slots, predictions = network(steps, prompt, keys)
    x, y, w = prompt.x, prompt.y, np.zeros(D)
    differences = []
    for layer in range(num_layers + 1):
        differences.append(slots[layer, :-1] - (y - x @ w))
        differences.append([predictions[layer] - prompt.x_query @ w])
        if layer < num_layers:
            step = steps[layer].T if transposed else steps[layer]
            gradient = sum(np.dot(w, x[i]) * x[i] - y[i] * x[i] for i in range(N)) / N
            w = w - step @ gradient
    return np.max(np.abs(np.concatenate(differences))) / (1 + np.max(np.abs(slots)))


@seeds
def test_layers_are_preconditioned_steps_of_gradient_descent(seed):
    assert disagreement(seed) < 1e-10


def test_control_a_missing_transposition_or_the_query_among_the_keys_breaks_it():
    assert disagreement(0, transposed=False) > 1e-2
    assert disagreement(0, keys="all") > 1e-3
    assert disagreement(0, 1, keys="all") < 1e-10  # the query's slot is still empty
