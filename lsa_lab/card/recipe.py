"""The training of a card: one fixed recipe in three sizes, which resumes after a kill."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from lsa_lab.card.batches import PromptDistribution, bayes_predictions, draw_batch
from lsa_lab.card.model_under_test import ModelUnderTest, UnfitError, take_prefix
from lsa_lab.prompts import Prompt
from lsa_lab.tasks.linear import LinearTask, sample_batch
from lsa_lab.training import Files, Run, Training, fit
from lsa_lab.training.status import refuse_divergence

_PILOT_SEED, _RUN_SEED, _TEST_SEED = 0x70696C32, 0x72756E32, 0x68656C64
STRIDE = 20  # steps in a call of the compiled program


@dataclass(frozen=True)
class Tier:
    """The sizes of a card: training, prompts of the probes, and the task."""

    steps: int
    pilot_steps: int
    batch: int  # prompts in a step
    prompts: int  # prompts of a probe for each run
    d: int = 8
    runs: int = 3
    noise_std: float = 0.5
    rates: tuple[float, ...] = (1e-2, 3e-3, 1e-3)
    lengths: tuple[int, ...] = (64, 1024)  # tokens for which time and memory are measured

    def __post_init__(self) -> None:
        minima = {"steps": 100, "pilot_steps": 1, "batch": 1, "prompts": 8, "d": 3, "runs": 2}
        for name, minimum in minima.items():
            if getattr(self, name) < minimum:
                raise UnfitError(f"{name} = {getattr(self, name)}: it is at least {minimum}")
        if self.noise_std <= 0:
            raise UnfitError("noise_std is at least slightly above 0: else the Bayes risk is 0")

    @property
    def n(self) -> int:
        """Return the number of demonstrations of a training prompt, 8d."""
        return 8 * self.d

    @property
    def places(self) -> list[int]:
        """Return the numbers of demonstrations at which risks are measured: d/2, d, 2d, 4d, 8d."""
        return [self.d // 2, self.d, 2 * self.d, 4 * self.d, 8 * self.d]

    def distribution(self, tasks: np.ndarray | None = None) -> PromptDistribution:
        """Return the distribution of training prompts."""
        return PromptDistribution(self.d, self.noise_std, tasks=tasks)


TIERS = {
    "smoke": Tier(steps=400, pilot_steps=100, batch=16, prompts=256),
    "laptop": Tier(steps=2000, pilot_steps=400, batch=32, prompts=512),
    "paper": Tier(
        steps=60_000, pilot_steps=6000, batch=64, prompts=1024, runs=8,
        lengths=(64, 1024, 16384),
    ),
}  # fmt: skip


@dataclass(frozen=True)
class TrainingResult:
    """The params of each run, the learning rate, and the course of the training."""

    params: list[Any]
    rate: float
    late_risk_ratios: np.ndarray  # [R, C+1], of _make_late_risk after each STRIDE
    losses: np.ndarray  # [R, steps], before each step
    seconds: float


def train_runs(
    model: ModelUnderTest,
    init: Callable[[Array], Any],
    tier: Tier,
    tasks: np.ndarray | None,
    folder: Path | None,
    log: Callable[[str], None],
) -> TrainingResult:
    """Train ``tier.runs`` seeds by Adam with a warm-up, a cosine and a clipped gradient.

    The learning rate is that of ``tier.rates`` with the smallest loss over the last fifth of a
    shorter pilot training of another seed. With a folder, a killed training resumes from its
    checkpoints.
    """
    start, root, rates = time.monotonic(), jax.random.key(0), np.array(tier.rates)
    training = _make_training(model, tier, tasks)
    pilot_keys = jnp.stack([jax.random.fold_in(root, _PILOT_SEED)] * len(rates))
    seconds = _estimate_seconds(training, init, tier, pilot_keys, rates)
    log(f"about {seconds:.0f} s of training without compiling; the probes take a third of that")
    files = _choose_files(folder, "pilot")
    pilot = _fit_runs(training, tier.pilot_steps, init, pilot_keys, rates, files)
    losses = pilot.history["loss"][:, -max(tier.pilot_steps // 5, 1) :].mean(1)
    if not np.isfinite(losses).any():
        refuse_divergence(pilot.status, "the pilot of the card")
    rate = float(rates[np.nanargmin(losses)])
    log(f"learning rate {rate:g} of {', '.join(f'{r:g}' for r in rates)}")
    keys = jax.random.split(jax.random.fold_in(root, _RUN_SEED), tier.runs)
    late_risk = _make_late_risk(model, tier.distribution(tasks), tier.n)
    files = _choose_files(folder, "runs")
    run = _fit_runs(training, tier.steps, init, keys, np.full(tier.runs, rate), files, late_risk)
    refuse_divergence(run.status, "the training of the card", needs_all=True)
    params = [jax.tree.map(itemgetter(r), run.params) for r in range(tier.runs)]
    history, seconds = run.history, time.monotonic() - start
    return TrainingResult(params, rate, history["watch"], history["loss"], seconds)


def _make_late_risk(
    model: ModelUnderTest, distribution: PromptDistribution, n: int
) -> Callable[[Any], Array]:
    """Return the function from params to the risk over that of the Bayes rule on test prompts.

    The risk of a causal model is that at the last quarter of the places, and the risk of any other
    model that at the query after n demonstrations.
    """
    batch = draw_batch(np.random.default_rng(_TEST_SEED), distribution, 64, n)
    places = slice(-max(n // 4, 1) if model.causal else -1, None)
    targets, offset = batch.targets[:, places], distribution.risk_offset
    errors = bayes_predictions(batch, distribution)[:, places] - targets
    bayes_risk = float(np.mean(errors**2)) + offset
    prompts = jax.tree.map(lambda leaf: jnp.asarray(leaf, model.dtype), batch.prompt)
    tokens = jax.vmap(model.make_tokens)(prompts)

    def late_risk(params: Any) -> Array:
        predictions = model.predict_batch(params, tokens)[:, -1, places]
        risk = jnp.mean((predictions - targets.astype(model.dtype)) ** 2)
        return (risk + offset) / bayes_risk

    return late_risk


def _make_training(model: ModelUnderTest, tier: Tier, tasks: np.ndarray | None) -> Training:
    """Return the recipe, with the learning rate and the number of steps as arguments of each run.

    The pilot and the runs thus share one compiled program.
    """
    loss, sample = _make_loss(model, tier), _make_sampler(tier, tasks, model.dtype)

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
        steps=tier.steps,
        label="card",
    )


def _fit_runs(
    training: Training,
    steps: int,
    init: Callable,
    keys: Array,
    rates: np.ndarray,
    files: Files | None = None,
    watch: Callable | None = None,
) -> Run:
    params = jax.tree.map(lambda *leaves: jnp.stack(leaves), *[init(key) for key in keys])
    data_keys = jax.vmap(lambda key: jax.random.fold_in(key, 1))(keys)
    settings = jnp.asarray(rates), jnp.full(len(rates), float(steps))
    recipe = replace(training, steps=steps)
    return fit(recipe, params, data_keys, per_run=settings, watch=watch, files=files, chunk=STRIDE)


def _make_loss(model: ModelUnderTest, tier: Tier) -> Callable[[Any, Prompt], Array]:
    """Return the mean squared error at every place, or at five lengths if not causal."""
    predict = jax.vmap(model.predict, (None, 0))

    def loss_at_all_places(params: Any, batch: Prompt) -> Array:
        labels = jnp.concatenate([batch.y, batch.y_query[:, None]], 1)
        predictions = predict(params, jax.vmap(model.make_tokens)(batch))[:, -1]
        return jnp.mean((predictions - labels) ** 2)

    def loss_at_lengths(params: Any, batch: Prompt) -> Array:
        losses = []
        for place in tier.places:
            prefix = take_prefix(batch, place)
            predictions = predict(params, jax.vmap(model.make_tokens)(prefix))[:, -1, -1]
            losses.append(jnp.mean((predictions - prefix.y_query) ** 2))
        return jnp.stack(losses).mean()

    return loss_at_all_places if model.causal else loss_at_lengths


def _make_sampler(tier: Tier, tasks: np.ndarray | None, dtype: Any) -> Callable[[Array], Prompt]:
    task = LinearTask(
        n=tier.n, d=tier.d, noise_std=tier.noise_std, weight_std=tier.d**-0.5, dtype=dtype
    )
    if tasks is None:
        return lambda key: sample_batch(key, task, tier.batch)
    noise_task = task.replace(weight_std=0.0)  # its labels are noise
    table = jnp.asarray(tasks, dtype)

    def sample(key: Array) -> Prompt:
        key_prompts, key_tasks = jax.random.split(key)
        batch = sample_batch(key_prompts, noise_task, tier.batch)
        weights = table[jax.random.randint(key_tasks, (tier.batch,), 0, len(table))]
        y = batch.y + jnp.einsum("bnd,bd->bn", batch.x, weights)
        return batch.replace(y=y, y_query=jnp.einsum("bd,bd->b", batch.x_query, weights))

    return sample


def _estimate_seconds(
    training: Training, init: Callable, tier: Tier, keys: Array, rates: np.ndarray
) -> float:
    """Return the seconds of the training, estimated from the first steps of the pilot.

    Raises UnfitError if the first gradient is not finite.
    """
    for _ in range(2):  # the first call also compiles
        start = time.monotonic()
        run = _fit_runs(training, STRIDE, init, keys, rates)
    statuses: Any = run.status
    if any(status.kind == "diverged" and not status.step for status in statuses):
        raise UnfitError(
            f"the gradient of the loss at init is not finite: over {tier.n + 1} tokens a state may "
            "explode, which smaller steps or keys of length 1 prevent; or a root or a norm at 0 "
            "needs a separate case on both sides of jnp.where"
        )
    seconds_per_step = (time.monotonic() - start) / (STRIDE * len(rates))
    return seconds_per_step * (len(rates) * tier.pilot_steps + tier.runs * tier.steps)


def _choose_files(folder: Path | None, name: str) -> Files | None:
    return None if folder is None else Files(checkpoint=folder / f"{name}.ckpt")
