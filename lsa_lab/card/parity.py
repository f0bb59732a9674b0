"""State tracking: the same model trained anew to tell the parity of the signs that it has seen."""

from collections.abc import Callable
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


def state_tracking(forward: Callable, init: Callable[[Array], Any]) -> Callable:
    """A probe that trains ``init`` on parity, a quarter of the recipe's steps."""

    def parity(bench: Bench) -> list[Probe]:
        """Parity of signs: the share of right answers at 16 and at 64 tokens."""
        if not bench.subject.causal or bench.losses is None:
            return []
        subject, runs = bench.subject, len(bench.params)
        steps, batch = max(bench.tier.steps // 4, 1), bench.tier.batch
        many = jax.vmap(subject.slots, (None, 0))

        def sample(key: Array, length: int = _LENGTH, size: int = batch) -> tuple[Array, Array]:
            signs = jax.random.rademacher(key, (size, length), subject.dtype)
            rows = jnp.zeros((size, length, 2 * subject.d + 1), subject.dtype)
            return rows.at[..., 0].set(signs), jnp.cumprod(signs, 1)

        def loss(params: Any, examples: tuple[Array, Array]) -> Array:
            tokens, parities = examples
            return jnp.mean((many(params, tokens)[:, -1] - parities) ** 2)

        keys = jax.random.split(jax.random.fold_in(jax.random.key(0), _KEY), runs)
        params = jax.tree.map(lambda *leaves: jnp.stack(leaves), *map(init, keys))
        rule = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(3e-3))
        data = jax.vmap(lambda key: jax.random.fold_in(key, 1))(keys)
        run = fit(Training(loss, sample, rule, steps, label="parity"), params, data, width=runs)
        probes = []
        for times in (1, 4):
            tokens, parities = sample(jax.random.key(1), times * _LENGTH, bench.tier.prompts)
            right = []
            for r in range(runs):
                own = jax.tree.map(itemgetter(r), run.params)
                answers = np.asarray(subject.many(own, tokens))[:, -1, -1]
                right.append(np.mean(answers * np.asarray(parities)[:, -1] > 0))
            says = f"It tells the parity of {times * _LENGTH} signs in at least 0.9 of all cases."
            probes.append(
                judged(f"parity of {times * _LENGTH} signs", "parity", says, right, at_least=0.9,
                       null=0.5, null_is="chance", note=f"trained anew, {steps} steps")
            )  # fmt: skip
        return probes

    return parity
