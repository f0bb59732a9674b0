"""The rules that layers are known for: their closed curves, and their weights on given prompts."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.recurrent.learning_curves.config import RULES
from lsa_lab import estimators
from lsa_lab.prompts import Prompt
from lsa_lab.theory import learning_curves


def best_constants(config) -> dict[str, np.ndarray]:  # rule: step, gate, scale of the labels
    """The constants with the least mean risk over 1 to n demonstrations, by the closed curves."""
    lms, delta = learning_curves.lms, learning_curves.gated_delta
    best = {name: _best(config, curve) for name, curve in (("LMS", lms), ("DeltaNet", delta))}
    return best | {"gated DeltaNet": _best(config, delta, gated=True)}


def _best(config, curve, *, gated=False):
    from scipy.optimize import minimize

    def constants(theta):
        squashed = jax.nn.sigmoid(theta)
        return squashed[0], squashed[2] if gated else 1.0, jnp.exp(theta[1])

    @jax.jit
    @jax.value_and_grad
    def mean_risk(theta):
        step, gate, scale = constants(theta)
        return curve(config.n, config.d, config.noise_var, step, gate, scale)[1:].mean()

    start = np.array([-2.0, 0.0, 3.0][: 2 + gated])
    end = minimize(mean_risk, start, method="L-BFGS-B", jac=True)
    return np.array(constants(jnp.asarray(end.x)))


def closed_curves(config, length: int, best: dict) -> np.ndarray:  # [rule, length + 1]
    """E |ŵ_t - w|² of every rule."""
    sizes = length, config.d, config.noise_var
    lms = learning_curves.lms(*sizes, *best["LMS"])
    deltas = [learning_curves.gated_delta(*sizes, *best[name]) for name in RULES[2:4]]
    return np.stack([learning_curves.additive(*sizes), lms, *deltas, learning_curves.ridge(*sizes)])


def closed_curves_of_step(config, length: int, step) -> np.ndarray:  # [2, length + 1]
    """DeltaNet's with this step, its labels divided by |x| or as they are; these are scaled as is
    best for prompts of the length in training."""
    sizes = config.d, config.noise_var, step, 1.0
    # r = q - 2m + 1, of which q goes with the square of the scale and m with the scale.
    plus, minus = (learning_curves.gated_delta(config.n, *sizes, sign)[1:] for sign in (1.0, -1.0))
    scale = (minus - plus).mean() / (2 * (plus + minus - 2).mean())
    divided = learning_curves.gated_delta(length, *sizes)
    return np.stack([divided, learning_curves.gated_delta(length, *sizes, scale)])


@partial(jax.jit, static_argnames="config")
def predictions_of_each(prompts: Prompt, config, best) -> jax.Array:  # [B, ...] -> [B, rule, n + 1]
    return jax.lax.map(lambda own: predictions(own, config, best), prompts, batch_size=100)


def predictions(prompt: Prompt, config, best) -> jax.Array:  # [rule, n + 1]
    """ŷ of every rule at x_1, ..., x_n and the query."""
    x, y, d = prompt.x, prompt.y, config.d
    lengths = jnp.linalg.norm(x, axis=1, keepdims=True)

    def recursion(keys, constants):  # [n, d], [3] -> [n + 1, d]
        step, gate, scale = constants

        def write(weights, row):
            kept = gate * weights
            weights = kept + step * (scale * row[1] - kept @ row[0]) * row[0]
            return weights, weights

        return jax.lax.scan(write, jnp.zeros(d), (keys, y))[1]

    shrunk = 1 / (jnp.arange(1.0, len(y) + 1) + d + 1 + d * config.noise_var)
    later = [
        shrunk[:, None] * jnp.cumsum(y[:, None] * x, axis=0),
        recursion(x, best["LMS"]),
        recursion(x / lengths, best["DeltaNet"]),
        recursion(x / lengths, best["gated DeltaNet"]),
        estimators.recursive_ridge(prompt, d * config.noise_var)[1:],
    ]
    weights = jnp.pad(jnp.stack(later), ((0, 0), (1, 0), (0, 0)))
    return jnp.einsum("rtd,td->rt", weights, jnp.concatenate([x, prompt.x_query[None]]))
