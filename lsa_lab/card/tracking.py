"""State tracking: the model trained from scratch to count modulo 2 and modulo 3."""

from operator import itemgetter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from lsa_lab.card.evaluation import EvaluationContext
from lsa_lab.card.probe import Probe, make_probe
from lsa_lab.training import Training, fit

_LENGTH = 16  # tokens in training
_SEED = 0x70617269
_NAMES = {2: "parity of {} signs", 3: "count modulo 3 of {} signs"}


def draw_counts(key: Array, size: int, length: int, modulus: Array) -> tuple[Array, Array]:
    """Draw signs, and return them with the targets 1 - 2c/(m - 1) for the count c of -1 modulo m.

    The target of m = 2 is the product of the signs.
    """
    signs = jax.random.rademacher(key, (size, length), modulus.dtype)
    count = jnp.mod(jnp.cumsum((1 - signs) / 2, 1), modulus)
    return signs, 1 - 2 * count / (modulus - 1)


def measure_state_tracking(context: EvaluationContext) -> list[Probe]:
    """Measure the accuracy for parity and for counting modulo 3, at 16 and at 64 tokens."""
    model, runs, init = context.model, len(context.params), context.init
    if not model.causal or init is None or not context.tier.tracking:
        return []
    steps, predict = max(context.tier.steps // 4, 1), jax.vmap(model.predict, (None, 0))

    def sample(
        key: Array, modulus: Array, length: int = _LENGTH, size: int = context.tier.batch
    ) -> tuple[Array, Array]:
        signs, targets = draw_counts(key, size, length, modulus)
        rows = jnp.zeros((size, length, model.width), model.dtype)
        slots = jnp.asarray([0, model.d, 2 * model.d])  # of x_t, x_{t-1} and y_{t-1}
        return rows.at[..., slots].set(signs[..., None]), targets

    def loss(params: Any, examples: tuple[Array, Array], modulus: Array) -> Array:
        tokens, targets = examples
        return jnp.mean((predict(params, tokens)[:, -1] - targets) ** 2)

    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(3e-3))
    training = Training(loss, sample, lambda modulus: optimizer, steps, label="counting")
    keys = jax.random.split(jax.random.fold_in(jax.random.key(0), _SEED), runs)
    params = jax.tree.map(lambda *leaves: jnp.stack(leaves * 2), *map(init, keys))
    data_keys = jax.vmap(lambda key: jax.random.fold_in(key, 1))(jnp.concatenate([keys, keys]))
    moduli = jnp.repeat(jnp.asarray([2, 3], model.dtype), runs)
    run = fit(training, params, data_keys, per_run=moduli)
    probes = []
    for i, (modulus, template) in enumerate(_NAMES.items()):
        for length in (_LENGTH, 4 * _LENGTH):
            accuracies, answers = [], []
            for r in range(i * runs, (i + 1) * runs):
                key = jax.random.fold_in(jax.random.key(1), r)
                tokens, targets = sample(key, moduli[r], length, context.tier.prompts)
                run_params = jax.tree.map(itemgetter(r), run.params)
                predictions = model.predict_blocks(run_params, tokens)[:, -1, -1]
                answers.append(predictions)
                accuracies.append(_accuracy(predictions, np.asarray(targets)[:, -1], modulus))
            name = template.format(length)
            says = f"The accuracy for the {name} is at least 0.9."
            note = f"trained anew for {steps} steps on the count after every sign"
            probes.append(make_probe(name, "tracking", says, accuracies, at_least=0.9,
                                     answers=np.stack(answers), null=1 / modulus,
                                     null_is="chance", note=note))  # fmt: skip
    return probes


def _accuracy(predictions: np.ndarray, targets: np.ndarray, modulus: int) -> float:
    """Return the share of finite predictions whose nearest level 1 - 2c/(m - 1) is the target."""
    levels = 1 - 2 * np.arange(modulus) / (modulus - 1)
    nearest = levels[np.abs(predictions[:, None] - levels[None]).argmin(1)]
    return (np.isclose(nearest, targets) & np.isfinite(predictions)).mean()
