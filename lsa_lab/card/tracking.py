"""State tracking: the same model trained anew to count modulo 2 and modulo 3."""

from operator import itemgetter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from lsa_lab.card.probe import Probe, judged
from lsa_lab.card.probes import Bench
from lsa_lab.training import Training, fit

_LENGTH = 16  # tokens in training
_KEY = 0x70617269  # "pari"
_NAMES = {2: "parity of {} signs", 3: "count modulo 3 of {} signs"}


def counts(key: Array, size: int, length: int, modulus: Array) -> tuple[Array, Array]:
    """Random signs, and after each the number c of -1 modulo m as 1 - 2c/(m - 1): of m = 2 the
    product of all signs."""
    signs = jax.random.rademacher(key, (size, length), modulus.dtype)
    count = jnp.mod(jnp.cumsum((1 - signs) / 2, 1), modulus)
    return signs, 1 - 2 * count / (modulus - 1)


def state_tracking(bench: Bench) -> list[Probe]:
    """Parity and counting modulo 3: the share of right answers at 16 and at 64 tokens."""
    subject, runs, init = bench.subject, len(bench.params), bench.init
    if not subject.causal or init is None:
        return []
    steps, many = max(bench.tier.steps // 4, 1), jax.vmap(subject.slots, (None, 0))

    def sample(
        key: Array, modulus: Array, length: int = _LENGTH, size: int = bench.tier.batch
    ) -> tuple[Array, Array]:
        signs, targets = counts(key, size, length, modulus)
        rows = jnp.zeros((size, length, subject.width), subject.dtype)
        slots = jnp.asarray([0, subject.d, 2 * subject.d])  # of x_t, x_{t-1} and y_{t-1}
        return rows.at[..., slots].set(signs[..., None]), targets

    def loss(params: Any, examples: tuple[Array, Array], modulus: Array) -> Array:
        tokens, targets = examples
        return jnp.mean((many(params, tokens)[:, -1] - targets) ** 2)

    rule = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(3e-3))
    training = Training(loss, sample, lambda modulus: rule, steps, label="counting")
    keys = jax.random.split(jax.random.fold_in(jax.random.key(0), _KEY), runs)
    params = jax.tree.map(lambda *leaves: jnp.stack(leaves * 2), *map(init, keys))
    data = jax.vmap(lambda key: jax.random.fold_in(key, 1))(jnp.concatenate([keys, keys]))
    moduli = jnp.repeat(jnp.asarray([2, 3], subject.dtype), runs)
    run = fit(training, params, data, per_run=moduli)
    probes = []
    for i, (modulus, words) in enumerate(_NAMES.items()):
        for length in (_LENGTH, 4 * _LENGTH):
            right, levels = [], 1 - 2 * np.arange(modulus) / (modulus - 1)
            for r in range(i * runs, (i + 1) * runs):
                key = jax.random.fold_in(jax.random.key(1), r)
                tokens, targets = sample(key, moduli[r], length, bench.tier.prompts)
                answers = subject.ask(jax.tree.map(itemgetter(r), run.params), tokens)[:, -1, -1]
                nearest = levels[np.abs(answers[:, None] - levels[None]).argmin(1)]
                same = np.isclose(nearest, np.asarray(targets)[:, -1]) & np.isfinite(answers)
                right.append(same.mean())
            name = words.format(length)
            says = f"It tells the {name} in at least 0.9 of all cases."
            probes.append(
                judged(name, "tracking", says, right, at_least=0.9, null=1 / modulus,
                       null_is="chance", note=f"trained anew, {steps} steps")
            )  # fmt: skip
    return probes
