"""The training of a card: one fixed recipe, which resumes after a kill."""

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from lsa_lab.card.batches import draw_batch
from lsa_lab.card.evaluation import TIERS, EvaluationContext, Tier
from lsa_lab.card.model_under_test import ModelUnderTest, UnfitError, make_batch_tokens, take_prefix
from lsa_lab.card.tasks import make_sampler
from lsa_lab.prompts import Prompt
from lsa_lab.training import Files, Run, Training, fit
from lsa_lab.training.status import refuse_divergence

_PILOT_SEED, _RUN_SEED, _TEST_SEED = 0x70696C32, 0x72756E32, 0x68656C64
STRIDE = 20  # steps in a call of the compiled program
# Measured for the delta rule: what the probes cost, in steps of training for each run and each
# prompt over those of a step; tracking, in steps of training; and their compilation, in that of a
# step of training, of which other tasks than regression need half.
_PROBE_STEPS, _TRACKING_STEPS, _COMPILATIONS = 13, 0.16, 3.0


def train_runs(
    context: EvaluationContext, folder: Path | None, log: Callable[[str], None]
) -> tuple[Run, float]:
    """Train ``tier.runs`` seeds, and return them and the learning rate.

    It is that of ``tier.rates`` with the smallest loss over the last fifth of a shorter pilot
    training of another seed. With a folder, a killed training resumes from its checkpoints. The
    runs are watched by ``make_late_risk`` after each STRIDE.
    """
    tier, root, rates = context.tier, jax.random.key(0), np.array(context.tier.rates)
    files = {n: folder and Files(checkpoint=folder / f"{n}.ckpt") for n in ("pilot", "runs")}
    training, rate = _make_training(context), tier.rates[0]
    keys = jnp.stack([jax.random.fold_in(root, _PILOT_SEED)] * len(rates))
    log(_estimate_time(training, context, keys, rates))
    if len(rates) > 1:
        short = replace(training, steps=tier.pilot_steps)
        pilot = fit_runs(short, context.init, keys, rates, files=files["pilot"])
        losses = pilot.history["loss"][:, -max(tier.pilot_steps // 5, 1) :].mean(1)
        if not np.isfinite(losses).any():
            refuse_divergence(pilot.status, "the pilot of the card")
        rate = float(rates[np.nanargmin(losses)])
    log(f"learning rate {rate:g} of {', '.join(f'{r:g}' for r in rates)}")
    keys = jax.random.split(jax.random.fold_in(root, _RUN_SEED), tier.runs)
    late_risk, all_rates = make_late_risk(context), [rate] * tier.runs
    options = {"files": files["runs"], "watch": late_risk}
    run = fit_runs(training, context.init, keys, all_rates, **options)
    refuse_divergence(run.status, "the training of the card", needs_all=True)
    return run, rate


def make_late_risk(context: EvaluationContext) -> Callable[[Any], Array]:
    """Return the function from params to the risk over that of the Bayes rule on test prompts.

    The risk of a causal model is that at the last quarter of the places, and the risk of any other
    model that at the query after n demonstrations.
    """
    model, distribution, n = context.model, context.distribution, context.tier.n
    batch = draw_batch(np.random.default_rng(_TEST_SEED), distribution, 64, n)
    places = slice(-max(n // 4, 1) if model.causal else -1, None)
    targets, offset = batch.targets[:, places], distribution.risk_offset
    bayes_risk = float(context.bayes_risks([batch], places).mean()) + offset
    prompts = jax.tree.map(lambda leaf: jnp.asarray(leaf, model.dtype), batch.prompt)
    tokens = jax.vmap(model.make_tokens)(prompts)

    def late_risk(params: Any) -> Array:
        predictions = model.predict_batch(params, tokens)[:, -1, places]
        risk = jnp.mean((predictions - targets.astype(model.dtype)) ** 2)
        return (risk + offset) / bayes_risk

    return late_risk


def _make_training(context: EvaluationContext) -> Training:
    """Return the recipe, with the learning rate and the number of steps as arguments of each run.

    The pilot and the runs thus share one compiled program.
    """
    loss = make_loss(context.model, context.tier)
    sample = make_sampler(context.tier, context.distribution.tasks, context.model.dtype)

    def optimizer(run_settings: tuple[Array, Array]) -> optax.GradientTransformation:
        rate, num_steps = run_settings

        def schedule(step: Array) -> Array:
            step = jnp.asarray(step, rate.dtype)
            warmup_steps = jnp.maximum(jnp.floor(num_steps / 20), 1)
            warmup_fraction = jnp.minimum((step + 1) / warmup_steps, 1)
            decay_factor = (1 + jnp.cos(jnp.pi * jnp.minimum(step / num_steps, 1))) / 2
            return rate * warmup_fraction * decay_factor

        return optax.chain(optax.clip_by_global_norm(1.0), optax.adam(schedule))

    return Training(
        loss=lambda params, batch, run_settings: loss(params, batch),
        sample=lambda key, run_settings: sample(key),
        optimizer=optimizer,
        steps=context.tier.steps,
        label="card",
    )


def fit_runs(training: Training, init: Any, keys: Array, values: Any, **options: Any) -> Run:
    """Train one run from each key; each is given its value and the number of steps."""
    params = jax.tree.map(lambda *leaves: jnp.stack(leaves), *[init(key) for key in keys])
    data_keys = jax.vmap(lambda key: jax.random.fold_in(key, 1))(keys)
    settings = jnp.asarray(values), jnp.full(len(values), float(training.steps))
    return fit(training, params, data_keys, per_run=settings, chunk=STRIDE, **options)


def make_loss(model: ModelUnderTest, tier: Tier) -> Callable[[Any, Prompt], Array]:
    """Return the mean squared error at every place, or at five lengths if not causal."""

    def loss(params: Any, batch: Prompt, place: slice | int = -1) -> Array:
        tokens = jax.vmap(model.make_tokens)(batch)
        predictions = jax.vmap(model.predict, (None, 0))(params, tokens)[:, -1, place]
        return jnp.mean((predictions - _collect_labels(batch)[:, place]) ** 2)

    def loss_at_lengths(params: Any, batch: Prompt) -> Array:
        prefixes = [take_prefix(batch, place) for place in tier.places]
        return jnp.stack([loss(params, prefix) for prefix in prefixes]).mean()

    return partial(loss, place=slice(None)) if model.causal else loss_at_lengths


def _collect_labels(batch: Prompt) -> Array:  # [B, n+1]
    return jnp.concatenate([batch.y, batch.y_query[:, None]], 1)


def sample_prompts(
    key: Array | int, size: int, *, task: str = "regression", d: int = 8, n: int = 0
) -> tuple[np.ndarray, np.ndarray]:  # [B, n+1, 2d+1], [B, n+1]
    """Draw prompts as the recipe does: the tokens of a causal model and the labels of its loss.

    The loss is the mean of (prediction - label)² over all tokens. ``key`` may be a seed. n is 8d by
    default. A model trained on such prompts elsewhere is measured by ``report_card(forward,
    params=params, task=task, d=d, n=n)``.
    """
    tier = replace(TIERS["laptop"], batch=size, task=task, d=d, n=n)
    key = jax.random.key(key) if isinstance(key, int) else key
    batch = make_sampler(tier, None, jnp.float32)(key)
    return np.asarray(make_batch_tokens(batch, True)), np.asarray(_collect_labels(batch))


def _estimate_time(training: Training, context: EvaluationContext, keys: Any, rates: Any) -> str:
    """Return the seconds of the card as text, estimated from the first steps of the pilot.

    Raises UnfitError if the first gradient is not finite.
    """
    tier, times = context.tier, [time.monotonic()]
    for _ in range(2):  # the first call also compiles
        run = fit_runs(replace(training, steps=STRIDE), context.init, keys, rates)
        times.append(time.monotonic())
    statuses: Any = run.status
    if any(status.kind == "diverged" and not status.step for status in statuses):
        raise UnfitError(
            f"the gradient of the loss at init is not finite: over {tier.n + 1} tokens a state may "
            "explode, which smaller steps or keys of length 1 prevent; or a root or a norm at 0 "
            "needs a separate case on both sides of jnp.where"
        )
    (first, second), regression = np.diff(times), tier.task == "regression"
    tracking = _TRACKING_STEPS if tier.tracking and regression else 0.0
    steps = tier.runs * (tier.steps * (1 + tracking) + _PROBE_STEPS * tier.prompts / tier.batch)
    steps += len(rates) * tier.pilot_steps * (len(rates) > 1)
    compiling = _COMPILATIONS * (first - second) * (1 if regression else 0.5)
    return f"about {second * steps / (STRIDE * len(rates)) + compiling:.0f} s more"
