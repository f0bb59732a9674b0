"""Clip every part of every layer of trained classifiers, and ask them for labels."""

import operator
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jax.scipy.special import ndtr, ndtri

from experiments.clipping import trained_models
from experiments.clipping.clipped_models import DROPPED, PARTS, spec_of
from experiments.clipping.label_clipping.config import Config
from experiments.models.model import Model
from experiments.models.tasks import distribution
from lsa_lab.analyses import clipping
from lsa_lab.lm import readings
from lsa_lab.models.matrices import matrices

_WARM = 5  # one sweep in so many is thrown away, the first ones


@partial(jax.jit, static_argnums=2)
def gibbs_probabilities(key, batch, sweeps, noise_std, weight_std):  # Prompt [B] -> [B]
    """P(w·x_query > 0 | demonstrations), w ~ N(0, weight_std² I), y_i = sign(w·x_i + ε_i).

    With z_i = y_i (w·x_i + ε_i)/σ the posterior of (w, z) is Gaussian in w given z and truncated to
    z_i > 0 given w: the sampler of Albert and Chib (1993). Each sweep gives P(w·x_query > 0 | z).
    """

    def probability(key, prompt):
        n, d = prompt.x.shape
        rows = prompt.x * prompt.y[:, None] / noise_std
        covariance = jnp.linalg.inv(rows.T @ rows + jnp.eye(d, dtype=rows.dtype) / weight_std**2)
        root = jnp.linalg.cholesky(covariance)
        spread = jnp.sqrt(prompt.x_query @ covariance @ prompt.x_query)

        def sweep(z, key):
            key_w, key_z = jax.random.split(key)
            mean = covariance @ (rows.T @ z)
            centre = rows @ (mean + root @ jax.random.normal(key_w, (d,), rows.dtype))
            # z = centre + N(0, 1), above 0, by its distribution's inverse from the upper end.
            upper = ndtr(centre) * jax.random.uniform(key_z, (n,), rows.dtype, minval=1e-6)
            z = jnp.maximum(centre - ndtri(upper), 0)
            return z, ndtr(mean @ prompt.x_query / spread)

        _, probabilities = jax.lax.scan(
            sweep, jnp.ones_like(prompt.y), jax.random.split(key, sweeps)
        )
        return probabilities[sweeps // _WARM :].mean()

    return jax.vmap(probability)(jax.random.split(key, len(batch.y)), batch)


NAMES = ("accuracy", "auc", "fitted", "entropy")


def compute(config: Config, models, *, progress=None, checkpoints=None):
    spec, (runs,) = spec_of(config), models.values()
    finished = runs.finished[0]
    params = runs.models(seeds=finished).params
    untrained = jax.tree.map(lambda leaf: leaf[finished], runs.initial)
    count = len(params.w_q)
    keys = [jax.random.fold_in(jax.random.key(config.seed), tag) for tag in range(2)]
    task = distribution(spec.task, dtype=jnp.float32)
    batch = trained_models.own_prompts(keys[0], task, count, config.prompts)
    rates = (*config.rates, clipping.DROP)
    edits = [
        clipping.Edit(layer, module, rate)
        for layer in range(spec.architecture.depth)
        for module in PARTS.values()
        for rate in rates
    ]
    cuts = [batch.replace(x=batch.x[:, :, :n], y=batch.y[:, :, :n]) for n in spec.task.lengths]
    tables = [read(answers(spec, params, edits, cut), cut) for cut in cuts]
    bayes = [bayes_accuracy(config, keys[1], cut) for cut in cuts]
    control = read(answers(spec, untrained, edits[:1], batch), batch)["accuracy"]
    axes, grid = ("run", "shots"), (spec.architecture.depth, len(PARTS), len(rates))
    arrays = {"bayes": (axes, np.stack(bayes, axis=1)), "untrained": ("run", control[:, 0])}
    arrays["average"] = axes, np.stack([average_accuracy(cut) for cut in cuts], axis=1)
    for name in NAMES:
        table = np.stack([values[name] for values in tables], axis=1)  # [R, shots, 1 + E]
        arrays[f"unclipped_{name}"] = axes, table[:, :, 0]
        parts = table[:, :, 1:].reshape(*table.shape[:2], *grid)
        arrays[name] = (*axes, "layer", "part", "rate"), parts
    return xr.Dataset(
        arrays,
        {
            "shots": list(spec.task.lengths),
            "layer": np.arange(spec.architecture.depth) + 1,
            "part": list(PARTS),
            "rate": [*config.rates, DROPPED],
        },
    )


def answers(spec, params, edits, batch):  # params, prompts [R, ...] -> [R, 1 + E, B]
    """ŷ of every model as it is and after each edit."""
    rows = []
    for run in range(len(params.w_q)):
        own, prompts = jax.tree.map(operator.itemgetter(run), (params, batch))
        modules = tuple(PARTS.values())
        pieces = clipping.svd_terms(matrices(own, modules))
        everything = clipping.kept_ranks(own, clipping.Edit(0, modules, 0.0))
        kept = [everything, *(everything | clipping.kept_ranks(own, edit) for edit in edits)]
        table = jax.tree.map(lambda *ranks: np.stack(ranks), *kept)
        rows.append(np.asarray(edited_answers(spec, own, pieces, table, prompts), float))
    return np.stack(rows)


@partial(jax.jit, static_argnums=0)
def edited_answers(spec, params, pieces, table, batch):  # ranks [E, L] -> [E, B]
    def answer(kept):
        return Model(spec, clipping.rebuild(params, pieces, kept)).predict(batch)

    return jax.lax.map(answer, table)


def bayes_accuracy(config, key, batch):  # Prompt [R, B] -> [R]
    task, flat = spec_of(config).task, jax.tree.map(lambda leaf: jnp.concatenate(leaf), batch)
    positive = gibbs_probabilities(key, flat, config.sweeps, task.noise_std, task.weight_std) > 0.5
    right = np.asarray(positive == (flat.y_query > 0))
    return right.reshape(batch.y_query.shape).mean(1)


def average_accuracy(batch):  # Prompt [R, B] -> [R]
    """How often the sign of Σ y_i x_i·x_query is right, what one linear layer can answer."""
    answer = jnp.einsum("rbi,rbij,rbj->rb", batch.y, batch.x, batch.x_query)
    return np.asarray((answer > 0) == (batch.y_query > 0)).mean(1)


def read(answers, batch) -> dict[str, np.ndarray]:  # [R, E, B], Prompt [R, B] -> each [R, E]
    """What answers ŷ say of two classes: how right, how right at another threshold, how sure."""
    labels = (np.asarray(batch.y_query) > 0).astype(int)

    def read_edit(margin, own):
        scores = np.stack([np.zeros_like(margin), margin], axis=1)
        return (
            readings.accuracy(scores, own),
            readings.auc(scores, own),
            readings.accuracy_after_best_shift(scores, own),
            entropy((1 + margin) / 2).mean(),
        )

    pairs = zip(answers, labels, strict=True)
    rows = np.array([[read_edit(margin, own) for margin in edits] for edits, own in pairs])
    return dict(zip(NAMES, np.moveaxis(rows, -1, 0), strict=True))


def entropy(probability):
    """-Σ p log₂ p of a label and the other, in bits; a number beyond [0, 1] is sure."""
    p = np.clip(probability, 0, 1)
    both = np.stack([p, 1 - p])
    return -(both * np.log2(np.where(both > 0, both, 1))).sum(0)
