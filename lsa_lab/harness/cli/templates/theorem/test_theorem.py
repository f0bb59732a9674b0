"""One layer of linear attention is one step of gradient descent: say your statement here.

w_1 = η/n Σ_i y_i x_i, and the layer answers w_1·x. Name the source, "A2, Theorem 1" or "derived
here". The two sides share no code: the network's is a forward, the mathematics' a formula.
"""

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lsa_lab import prompts
from lsa_lab.models import constructions, linear_attention
from lsa_lab.models.trace import predict
from lsa_lab.tasks.linear import LinearTask, sample

TASK = LinearTask(n=7, d=3, noise_std=0.2)


@jax.jit
def network(seed, step):
    """The layer's answer, and the prompt."""
    prompt = sample(jax.random.key(seed), TASK)
    layer = constructions.gradient_descent(step[None], TASK.d)
    return predict(linear_attention.forward(layer, prompts.tokens(prompt))), prompt


def mathematics(prompt, step):
    """The answer after a step of descent from zero."""
    x, y, query = (np.asarray(each) for each in (prompt.x, prompt.y, prompt.x_query))
    return step / len(y) * sum(label * row for label, row in zip(y, x, strict=True)) @ query


@given(seed=st.integers(0, 2**32 - 1), step=st.floats(0.01, 1.0))
def test_one_layer_is_one_step(seed, step):
    answer, prompt = network(seed, jnp.asarray(step))
    assert abs(answer - mathematics(prompt, step)) < 1e-10


def test_control_another_step_size_breaks_it():
    """A hypothesis is broken, and the equality with it: the test above can fail."""
    answer, prompt = network(0, jnp.asarray(0.5))
    assert abs(answer - mathematics(prompt, 0.4)) > 1e-3
