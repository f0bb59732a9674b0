"""Rules that know the law of sparse regression, for comparison on the same prompts."""

import itertools
import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from experiments.heads import equivariant_bayes
from lsa_lab import estimators
from lsa_lab.prompts import Prompt
from lsa_lab.tasks.linear import LinearTask, sample

RULES = ("ridge", "rotation-equivariant Bayes", "Lasso", "sparse Bayes")

MULTIPLES = tuple(0.05 * 1.5**k for k in range(10))  # of σ √(2 log d / n): the Lasso's penalties
TUNING = 256  # prompts that choose among them
MAX_SIGNED = 100_000  # supports with signs that ``flat_bayes`` is willing to enumerate
_TUNING_SEED = 8_043_420  # of no experiment: these prompts are never among those judged
_AT_ONCE = 64  # prompts in memory with all their supports


def predictions(rule: str, batch: Prompt, law: LinearTask) -> Array:  # [B]
    """The predictions of one of RULES, which knows everything about the law but w.

    Ridge has the penalty that is best for any rule linear in the labels that ignores directions,
    σ²d/(n E|w|²) (THEORY II.1.9); "rotation-equivariant Bayes" is the best of all that ignore them.
    The Lasso has the penalty that is best for the law among MULTIPLES, judged by excess risk on
    TUNING prompts of its own, drawn from a fixed key at every call. "sparse Bayes" is exact for
    Gaussian non-zeros and for flat ones.
    """
    return jnp.sum(weights(rule, batch, law) * batch.x_query, axis=1)


def weights(rule: str, batch: Prompt, law: LinearTask) -> Array:  # [B, d]
    """The same rules before they meet the query."""
    _check(batch, law)
    if rule == "ridge":
        return jax.vmap(partial(equivariant_bayes.ridge, law))(batch)
    if rule == "rotation-equivariant Bayes":
        return jax.vmap(partial(equivariant_bayes.bayes, law))(batch)
    if rule == "Lasso":
        return jax.vmap(partial(estimators.lasso, penalty=lasso_penalty(law)))(batch)
    if rule == "sparse Bayes":
        return sparse_bayes(law, batch)
    raise ValueError(f"rule = {rule!r}: choose one of {', '.join(RULES)}")


def lasso_penalties(law: LinearTask) -> Array:  # [10]
    """The grid that the Lasso is tuned on."""
    unit = law.noise_std * math.sqrt(2 * math.log(max(law.d, 2)) / law.n)
    return unit * jnp.asarray(np.array(MULTIPLES), law.dtype)


def lasso_penalty(law: LinearTask) -> Array:  # []
    """The best for the law of the penalties on the grid (see ``predictions``)."""
    keys = jax.random.split(jax.random.key(_TUNING_SEED), TUNING)
    tuning = jax.vmap(partial(sample, task=law))(keys)

    def risk(penalty):
        weights = jax.vmap(partial(estimators.lasso, penalty=penalty))(tuning)
        return jnp.mean((jnp.sum(weights * tuning.x_query, axis=1) - tuning.y_query) ** 2)

    penalties = lasso_penalties(law)
    return penalties[jnp.argmin(jax.lax.map(risk, penalties))]


def sparse_bayes(law: LinearTask, batch: Prompt) -> Array:  # [B, d]
    """The posterior mean under the very law: nothing has a smaller risk on average."""
    if law.signal == "flat":
        return jax.lax.map(partial(flat_bayes, law), batch, batch_size=_AT_ONCE)
    if law.sparsity in (None, law.d):
        return jax.vmap(partial(equivariant_bayes.ridge, law))(batch)
    sparsity, variances = law.sparsity, (law.weight_std**2, law.noise_std**2)
    return jax.vmap(lambda one: estimators.sparse_posterior_mean(one, sparsity, *variances))(batch)


def flat_bayes(law: LinearTask, prompt: Prompt) -> Array:  # [d]
    """Σ p(w) w over all w with s entries ± τ, p(w) ∝ exp((c·w - w·(Gw)/2)/σ²), G = XᵀX, c = Xᵀy."""
    d, s = law.d, law.sparsity or law.d
    if math.comb(d, s) * 2**s > MAX_SIGNED:
        raise ValueError(f"{s} signs among {d} weights: more than {MAX_SIGNED} are not enumerated")
    supports = np.array(list(itertools.combinations(range(d), s)))  # [m, s]
    signs = np.array(list(itertools.product((-1.0, 1.0), repeat=s)))  # [2^s, s]
    gram, moment = prompt.x.T @ prompt.x, prompt.x.T @ prompt.y
    values = law.weight_std * jnp.asarray(signs, gram.dtype)
    blocks = gram[supports[:, :, None], supports[:, None]]  # [m, s, s]
    linear = moment[supports] @ values.T  # [m, 2^s]
    quadratic = jnp.einsum("mij,vi,vj->mv", blocks, values, values)
    share = jax.nn.softmax((linear - quadratic / 2) / law.noise_std**2, axis=(0, 1))
    return jnp.zeros(d, gram.dtype).at[supports].add(share @ values)


def _check(batch: Prompt, law: LinearTask) -> None:
    if batch.x.ndim != 3 or batch.x.shape[1:] != (law.n, law.d):
        raise ValueError(
            f"x has shape {batch.x.shape}: expected prompts of the law, [B, {law.n}, {law.d}]"
        )
    for name in ("covariance", "task_covariance", "prior_mean"):
        if getattr(law, name) is not None:
            raise ValueError(f"{name} is given: these rules are for x ~ N(0, I) and w around 0")
