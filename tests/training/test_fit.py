"""fit: descent on fresh batches, whose bits depend on the run alone."""

import os
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from lsa_lab.models import linear_attention
from lsa_lab.models.trace import predict
from lsa_lab.prompts import tokens
from lsa_lab.tasks import linear
from lsa_lab.training import Training, fit
from lsa_lab.training.checkpoints import hash_arrays
from lsa_lab.training.status import Status

KEYS = jax.random.split(jax.random.key(1), 5)
STARTS = {"w": jax.random.normal(jax.random.key(2), (5, 3))}
START = {"w": STARTS["w"][0]}


def draw(key):
    return jax.random.normal(key, (3,))


def quartic(params, batch):
    return jnp.sum((params["w"] - 0.1 * batch) ** 2) + jnp.sum(params["w"] ** 4) / 4


def descend(steps=37, params=START, key=KEYS[0], **changes):
    """Fit ``quartic``; a change is a field of Training or an argument of fit."""
    recipe = {"loss": quartic, "sample": draw, "optimizer": optax.adam(0.02), "curriculum": None}
    recipe |= {name: changes.pop(name) for name in recipe.keys() & changes.keys()}
    return fit(Training(steps=steps, **recipe), params, key, **changes)


def staircase(step):
    """Climb from 1 to 3, a stage every five steps."""
    return jnp.minimum(1 + step // 5, 3)


def hash_run(run, row=...):
    return hash_arrays(jax.tree.map(lambda leaf: leaf[row], (run.params, run.history)))


OPTIMIZERS = {
    "Adam": optax.adam(0.02),
    "line search": optax.chain(optax.sgd(0.02), optax.scale_by_backtracking_linesearch(5)),
    "noise of a key of another kind": optax.chain(
        optax.add_noise(0.1, 0.5, jax.random.key(3, impl="rbg")), optax.sgd(0.02)
    ),
    "a rule that reads the loss": optax.chain(
        optax.sgd(0.02), optax.contrib.reduce_on_plateau(patience=2)
    ),
}


def loop(steps, optimizer, sample):
    """Return params, losses and the last gradient of plain descent on ``sample(key, step)``."""
    optimizer, params, losses = optax.with_extra_args_support(optimizer), START, []
    state, data_key = optimizer.init(params), jax.random.fold_in(KEYS[0], 0x64617461)

    @jax.jit
    def step(params, state, batch):
        loss, grads = jax.value_and_grad(quartic)(params, batch)
        extra = dict(value=loss, grad=grads, value_fn=partial(quartic, batch=batch))
        updates, state = optimizer.update(grads, state, params, **extra)
        return optax.apply_updates(params, updates), state, loss, grads

    with jax.numpy_dtype_promotion("standard"):
        for t in range(steps):
            batch = sample(jax.random.fold_in(data_key, t), t)
            params, state, loss, grads = step(params, state, batch)
            losses.append(loss)
    return params, losses, grads


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_fit_is_the_plain_loop(name):
    params, losses, grads = loop(5, OPTIMIZERS[name], lambda key, _: draw(key))
    run = descend(5, optimizer=OPTIMIZERS[name])
    np.testing.assert_allclose(run.params["w"], params["w"], rtol=1e-12)
    np.testing.assert_allclose(run.history["loss"], losses, rtol=1e-12)
    np.testing.assert_allclose(run.history["grad_norm"][-1], optax.tree.norm(grads), rtol=1e-12)
    # Control: with another key the batches, and so the losses, are others.
    other = descend(5, optimizer=OPTIMIZERS[name], key=KEYS[1])
    assert np.abs(other.history["loss"] - losses).min() > 1e-6


TASK = linear.LinearTask(n=6, d=2)


def draw_prompts(key):
    return jax.vmap(partial(linear.sample, task=TASK))(jax.random.split(key, 4))


def attention_loss(params, batch):
    predictions = jax.vmap(lambda p: predict(linear_attention.forward(params, tokens(p))))(batch)
    return jnp.mean((predictions - batch.y_query) ** 2)


def attend(runs):
    """Train two layers of linear attention; the runs are among five."""
    start = jax.vmap(lambda key: linear_attention.init(key, 2, 1, 2, scale=0.3))(KEYS)
    start = jax.tree.map(lambda leaf: leaf[np.array(runs)], start)
    training = Training(attention_loss, draw_prompts, optax.adam(0.02), 25)
    return fit(training, start, KEYS[np.array(runs)], chunk=9)


SUBPROCESS = """
import os
os.sched_setaffinity(0, [*os.sched_getaffinity(0)][:1])
import conftest, test_fit
print(test_fit.hash_run(test_fit.attend((0, 1, 2, 3, 4))))
"""


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system fixes no cores")
def test_other_runs_devices_and_cores_do_not_change_a_bit(python):
    flags = f"{os.environ['XLA_FLAGS']} --xla_force_host_platform_device_count=2"
    other, many = python(SUBPROCESS, XLA_FLAGS=flags), attend((0, 1, 2, 3, 4))
    assert other.stdout.strip() == hash_run(many), other.stderr
    assert hash_run(many, 3) == hash_run(attend((3,)), 0)


def draw_first(key, stage):
    """Draw a batch whose coordinates beyond the stage are 0."""
    return jnp.where(jnp.arange(3) < jnp.asarray(stage, int), draw(key), 0)


def fit_with_values(runs):
    values = {"rate": [0.02, 0.01, 0.3], "scale": [1.0, 2.0, 0.5], "most": [3.0, 1.0, 1.0]}
    return descend(
        12,
        {"w": STARTS["w"][:3][runs]},
        KEYS[:3][runs],
        loss=lambda params, batch, own: own["scale"] * quartic(params, batch),
        sample=lambda key, stage, own: draw_first(key, jnp.minimum(stage, own["most"])),
        optimizer=lambda own: optax.adam(own["rate"]),
        curriculum=lambda step: staircase(step).astype(float),
        per_run={name: jnp.array(numbers)[runs] for name, numbers in values.items()},
    )


def test_a_curriculum_gives_the_sampler_its_stage_and_each_run_has_its_own_values():
    many, alone = fit_with_values(slice(None)), fit_with_values(1)
    assert hash_run(many, 1) == hash_run(alone)
    params, *_ = loop(12, optax.adam(0.02), lambda key, t: draw_first(key, min(1 + t // 5, 3)))
    np.testing.assert_allclose(many.params["w"][0], params["w"], rtol=1e-13)
    # Control: with the values of the first run, the second run is another one.
    other = descend(12, {"w": STARTS["w"][1]}, KEYS[1], sample=draw_first, curriculum=staircase)
    assert np.abs(alone.params["w"] - other.params["w"]).max() > 1e-3


def test_jax_debug_nans_finds_the_nan_of_a_loss_and_no_other():
    jax.config.update("jax_debug_nans", True)  # for all threads
    try:
        run = descend(chunk=10)  # four chunks of ten steps for 37
        with pytest.raises(FloatingPointError):
            descend(loss=lambda params, batch: jnp.sqrt(quartic(params, batch) - 100))
    finally:
        jax.config.update("jax_debug_nans", False)
    # Nor does the chunk change a bit.
    assert {hash_run(descend(chunk=chunk)) for chunk in (1, 7, 100)} == {hash_run(run)}


def test_what_is_watched_is_kept_of_every_chunk():
    run = descend(36, STARTS, KEYS, chunk=12, watch=lambda params: 2 * params["w"])
    watched = run.history["watch"]
    assert watched.shape == (5, 4, 3)
    np.testing.assert_array_equal(watched[:, 0], 2 * STARTS["w"])
    np.testing.assert_array_equal(watched[:, -1], 2 * run.params["w"])
    np.testing.assert_array_equal(watched[:, 1], 2 * descend(12, STARTS, KEYS).params["w"])
    alone = descend(np.int64(36), chunk=12, watch=lambda params: params["w"])
    assert alone.history["watch"].shape == (4, 3)


def test_a_diverged_run_keeps_its_last_finite_params():
    starts = {"w": STARTS["w"].at[1].multiply(20)}
    many, calm = (descend(60, s, KEYS, optimizer=optax.sgd(0.1)) for s in (starts, STARTS))
    step = many.status[1].step
    assert many.status[1] == Status("diverged", step)
    assert 1 < step < 20
    assert np.isfinite(many.history["loss"][1, :step]).all()
    assert np.isnan(many.history["loss"][1, step:]).all()
    assert np.isnan(many.history["grad_norm"][1, step:]).all()
    until = descend(step, {"w": starts["w"][1]}, KEYS[1], optimizer=optax.sgd(0.1))
    assert until.status.kind == "finished"
    np.testing.assert_array_equal(until.params["w"], many.params["w"][1])
    # A run that diverges changes nothing for the others.
    assert [hash_run(many, run) for run in (0, 2)] == [hash_run(calm, run) for run in (0, 2)]


def test_a_diverged_run_does_not_come_alive_again():
    def loss(params, batch):  # not finite on one batch in six or so
        return quartic(params, batch) * jnp.where(batch[0] > 1, jnp.inf, 1.0)

    run = descend(60, loss=loss, chunk=20)
    assert run.status == Status("diverged", run.status.step)
    assert np.isnan(run.history["loss"][run.status.step :]).all()
    assert hash_run(descend(60, loss=loss, chunk=60)) == hash_run(run)


@pytest.mark.parametrize(
    ("start", "optimizer"),
    [
        ({"a": 1e200, "b": 1.0}, optax.sgd(0.1)),
        ({"a": 1.0, "b": 0.0}, optax.sgd(0.1)),
        ({"a": 1.0, "b": 1.0}, optax.stateless(lambda g, _: g | {"b": g["b"] / 0})),
    ],
    ids=["loss", "gradient", "new params"],
)
def test_a_step_that_is_not_finite_is_not_taken(start, optimizer):
    def loss(params, _):
        return jnp.sum(params["a"] ** 2) + jnp.sum(jnp.sqrt(params["b"]))

    run = fit(Training(loss, draw, optimizer, 3), jax.tree.map(jnp.asarray, start), KEYS[0])
    assert run.status == Status("diverged", 0)
    assert jax.tree.map(float, run.params) == start


def test_a_second_fit_traces_nothing_whatever_its_number_of_steps_and_its_label():
    traced = []

    def loss(w, batch):
        traced.append(1)
        return ((w - batch) ** 2).mean()

    def train(**changed):
        recipe = {"loss": loss, "sample": draw, "optimizer": rule, "steps": 4} | changed
        return fit(Training(**recipe), jnp.zeros(()), KEYS[0], chunk=2)

    rule = optax.sgd(0.1)
    first, count = train(), len(traced)
    assert train().params == first.params
    assert train(steps=6, label="longer").history["loss"].shape == (6,)
    assert len(traced) == count
    train(sample=lambda key: 2 * draw(key))
    assert len(traced) > count  # another function is another program


FACTORISED = """
import jax, jax.numpy as jnp, optax
from lsa_lab.training import Training, fit

def draw(key):
    x = jax.random.normal(key, (1024, 8, 8))
    return x @ x.swapaxes(1, 2) + 2 * jnp.eye(8)[None]

def loss(w, batch):
    return (jnp.linalg.solve(batch, jnp.broadcast_to(w[None, :, None], (1024, 8, 1))) ** 2).mean()

training = Training(loss, draw, optax.sgd(0.1), 60)
print(fit(training, jnp.ones((4, 8)), jax.random.split(jax.random.key(0), 4)).status)
"""


@pytest.mark.slow
def test_runs_that_factorise_do_not_wait_for_each_other_for_ever(python):
    left = python(FACTORISED, timeout=120)
    assert left.returncode == 0, left.stderr
