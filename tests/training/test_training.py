"""fit: descent on fresh batches whose bits depend on the run alone, and its ends."""

import errno
import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import fields
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from lsa_lab.models import linear_attention
from lsa_lab.models.trace import predict
from lsa_lab.prompts import tokens
from lsa_lab.store import checkpoints, provenance
from lsa_lab.tasks import linear
from lsa_lab.tasks.curricula import staircase
from lsa_lab.training import Files, Training, fit, loop, runs
from lsa_lab.training.host_runs import HostRuns
from lsa_lab.training.snapshots import Checkpoint
from lsa_lab.training.status import DivergedError, Status, classify_run, refuse_divergence

TASK = linear.LinearTask(n=6, d=2)
KEYS = jax.random.split(jax.random.key(1), 5)
STARTS = {"w": jax.random.normal(jax.random.key(2), (5, 3))}
START = {"w": STARTS["w"][0]}
FIELDS = {kind: {field.name for field in fields(kind)} for kind in (Training, Files)}


@pytest.fixture(autouse=True)
def ctrl_c():
    """Ctrl-C as in a terminal: whoever runs us may ignore it, a script's background does."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def noise(key):
    return jax.random.normal(key, (3,))


def quartic(params, batch):
    return jnp.sum((params["w"] - 0.1 * batch) ** 2) + jnp.sum(params["w"] ** 4) / 4


def descend(steps=37, **changes):
    """fit of ``quartic``; a change is a field of Training or of Files, or an argument of fit."""
    recipe = {"loss": quartic, "sample": noise, "optimizer": optax.adam(0.02), "steps": steps}
    recipe |= {name: changes.pop(name) for name in FIELDS[Training] & changes.keys()}
    files = Files(**{name: changes.pop(name) for name in FIELDS[Files] & changes.keys()})
    arguments = {"params": START, "key": KEYS[0], "files": files}
    return fit(Training(**recipe), **arguments | changes)


def prompts(key):
    return jax.vmap(partial(linear.sample, task=TASK))(jax.random.split(key, 4))


def attention_loss(params, batch):
    predictions = jax.vmap(lambda p: predict(linear_attention.forward(params, tokens(p))))(batch)
    return jnp.mean((predictions - batch.y_query) ** 2)


def attend(runs):
    """Two layers of linear attention; the runs are among five."""
    start = jax.vmap(lambda key: linear_attention.init(key, 2, 1, 2, scale=0.3))(KEYS)
    start = jax.tree.map(lambda leaf: leaf[np.array(runs)], start)
    keys = KEYS[np.array(runs)]
    training = Training(attention_loss, prompts, optax.adam(0.02), 25)
    return fit(training, start, keys, chunk=9)


attend_once = cache(attend)


def bits(run, row=...):
    return checkpoints.digest(jax.tree.map(lambda leaf: leaf[row], (run.params, run.history)))


def add_noise(impl):
    return optax.chain(optax.add_noise(0.1, 0.5, jax.random.key(3, impl=impl)), optax.sgd(0.02))


@pytest.mark.parametrize(
    "optimizer",
    [
        optax.adam(0.02),
        optax.lbfgs(),
        optax.chain(optax.sgd(0.02), optax.scale_by_backtracking_linesearch(5)),
        add_noise("threefry2x32"),
        add_noise("rbg"),
    ],
    ids=["Adam", "L-BFGS", "backtracking line search", "noise", "noise of a key of another kind"],
)
def test_fit_is_the_plain_loop(optimizer):
    params = START
    state, losses = optimizer.init(params), []
    data_key = jax.random.fold_in(KEYS[0], 0x64617461)
    with jax.numpy_dtype_promotion("standard"):
        for t in range(5):
            batch = noise(jax.random.fold_in(data_key, t))
            loss, grads = jax.value_and_grad(quartic)(params, batch)
            extra = dict(value=loss, grad=grads, value_fn=partial(quartic, batch=batch))
            rule = optax.with_extra_args_support(optimizer)
            updates, state = rule.update(grads, state, params, **extra)
            params, losses = optax.apply_updates(params, updates), [*losses, loss]
    run = descend(5, optimizer=optimizer)
    np.testing.assert_allclose(run.params["w"], params["w"], rtol=1e-12)
    np.testing.assert_allclose(run.history["loss"], losses, rtol=1e-12)
    np.testing.assert_allclose(run.history["grad_norm"][-1], optax.tree.norm(grads), rtol=1e-12)
    # Control: with another key the batches, and so the losses, are others.
    other = descend(5, optimizer=optimizer, key=KEYS[1])
    assert np.abs(other.history["loss"] - losses).min() > 1e-6


def test_the_chunk_does_not_change_a_bit():
    assert len({bits(descend(chunk=chunk)) for chunk in (1, 7, 100)}) == 1


def test_a_run_does_not_know_its_company():
    assert bits(attend_once((0, 1, 2, 3, 4)), 3) == bits(attend_once((3,)), 0)


SUBPROCESS = """
import sys
sys.path[:0] = {paths!r}
import conftest, test_training
"""


def in_another_process(code, devices=1, cores=None):
    here = Path(__file__).resolve().parent
    few = f"import os; os.sched_setaffinity(0, [*os.sched_getaffinity(0)][:{cores}])\n"
    code = (
        few * bool(cores) + SUBPROCESS.format(paths=[str(here), *map(str, here.parents[:2])]) + code
    )
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={devices}"
    return subprocess.Popen(
        [sys.executable, "-c", code],
        env=os.environ | {"XLA_FLAGS": flags},
        stdout=subprocess.PIPE,
        text=True,
    )


def test_the_number_of_devices_and_of_cores_does_not_change_a_bit():
    devices = 1 if jax.local_device_count() > 1 else 2
    code = "print(test_training.bits(test_training.attend_once((0, 1, 2, 3, 4))))"
    cores = 1 if len(os.sched_getaffinity(0)) > 1 else None
    other, _ = in_another_process(code, devices, cores).communicate(timeout=300)
    assert other.strip() == bits(attend_once((0, 1, 2, 3, 4)))


def with_leaves_of_its_own(runs, steps=20, **arguments):
    per_run = {
        "rate": jnp.array([0.01, 0.02, 0.3])[runs],
        "scale": jnp.array([1.0, 2.0, 0.5])[runs],
    }
    training = Training(
        loss=lambda params, batch, own: own["scale"] * quartic(params, batch),
        sample=lambda key, own: own["scale"] * noise(key),
        optimizer=lambda own: optax.adam(own["rate"]),
        steps=steps,
    )
    starts = {"w": STARTS["w"][:3][runs]}
    return fit(training, starts, KEYS[:3][runs], per_run=per_run, **arguments)


def test_each_run_has_leaves_of_its_own():
    many, alone = with_leaves_of_its_own(slice(None)), with_leaves_of_its_own(1)
    assert bits(many, 1) == bits(alone)
    assert len({bits(many, run) for run in range(3)}) == 3


def test_keys_of_any_kind_are_leaves_of_a_run():
    keys = jax.random.split(jax.random.key(5, impl="rbg"), 5)
    arguments = dict(
        loss=lambda params, batch, _: quartic(params, batch),
        sample=lambda key, own: noise(own),
        optimizer=lambda _: optax.sgd(0.02),
    )
    many = descend(5, params=STARTS, key=KEYS, per_run=keys, **arguments)
    for i in range(5):
        alone = descend(
            5,
            params={"w": STARTS["w"][i]},
            sample=lambda _, i=i: noise(keys[i]),
            optimizer=optax.sgd(0.02),
        )
        np.testing.assert_allclose(many.params["w"][i], alone.params["w"], rtol=1e-12)


def test_jax_debug_nans_finds_the_nan_of_a_loss_and_no_other():
    try:
        jax.config.update("jax_debug_nans", True)
        run = descend(chunk=10)  # of four chunks of ten steps for 37
        with pytest.raises(FloatingPointError):
            descend(loss=lambda params, batch: jnp.sqrt(quartic(params, batch) - 100))
    finally:
        jax.config.update("jax_debug_nans", False)
    assert bits(run) == bits(descend(chunk=10))


def diverging(steps, **changes):
    return descend(steps, optimizer=optax.sgd(0.1), **changes)


def test_a_curriculum_tells_the_sampler_where_the_training_is(tmp_path):
    curriculum = staircase(1, 3, interval=5)

    def first(key, stage):
        return jnp.where(jnp.arange(3) < jnp.asarray(stage, int), noise(key), 0)

    def by_hand(params):
        optimizer, data = optax.adam(0.02), jax.random.fold_in(KEYS[0], runs._DATA)
        opt_state = optimizer.init(params)
        for t in range(12):
            batch = first(jax.random.fold_in(data, t), min(1 + t // 5, 3))
            updates, opt_state = optimizer.update(jax.grad(quartic)(params, batch), opt_state)
            params = optax.apply_updates(params, updates)
        return params

    run = descend(12, sample=first, curriculum=curriculum, chunk=4)
    with jax.numpy_dtype_promotion("standard"):
        np.testing.assert_allclose(run.params["w"], by_hand(START)["w"], rtol=1e-13)
    several = descend(
        12,
        loss=lambda params, batch, _: quartic(params, batch),
        params=STARTS,
        optimizer=lambda _: optax.adam(0.02),
        sample=lambda key, stage, most: first(key, jnp.minimum(stage, most.astype(stage.dtype))),
        key=KEYS,
        per_run=jnp.array([3, 3, 1, 1, 1]),
        curriculum=curriculum,
    )
    np.testing.assert_array_equal(several.params["w"][0], run.params["w"])
    checkpoint = tmp_path / "run.ckpt"
    descend(12, sample=first, curriculum=curriculum, checkpoint=checkpoint)
    with pytest.raises(ValueError, match="curriculum"):
        descend(12, sample=first, curriculum=staircase(1, 3, 4), checkpoint=checkpoint)


def test_a_diverged_run_keeps_its_last_finite_params():
    start = {"w": STARTS["w"].at[1].multiply(20)}
    many = diverging(60, params=start, key=KEYS)
    step = many.status[1].step
    assert many.status[1] == Status("diverged", step, many.status[1].leaf)
    assert 1 < step < 20
    assert np.isfinite(many.history["loss"][1, :step]).all()
    assert np.isnan(many.history["loss"][1, step:]).all()
    assert np.isnan(many.history["grad_norm"][1, step:]).all()
    assert np.isfinite(np.asarray(many.params["w"])).all()
    until = diverging(step, params={"w": start["w"][1]}, key=KEYS[1])
    assert until.status.kind == "finished"
    assert checkpoints.digest(until.params) == checkpoints.digest(
        jax.tree.map(lambda leaf: leaf[1], many.params)
    )
    # A run that diverges changes nothing for the others.
    calm = diverging(60, params=STARTS, key=KEYS)
    assert [bits(many, run) for run in (0, 2)] == [bits(calm, run) for run in (0, 2)]


def test_a_diverged_run_does_not_come_alive_again():
    def loss(params, batch):  # not finite on one batch in six or so
        return quartic(params, batch) * jnp.where(batch[0] > 1, jnp.inf, 1.0)

    run = descend(60, loss=loss, chunk=20)
    assert run.status == Status("diverged", run.status.step, "loss")
    assert np.isnan(run.history["loss"][run.status.step :]).all()
    assert bits(descend(60, loss=loss, chunk=60)) == bits(run)


def test_a_training_that_needs_all_its_runs_is_refused_by_the_run_that_diverged():
    ends = (Status("finished", 90), Status("diverged", 7, "w"))
    refuse_divergence(ends, "the proxy")
    refuse_divergence(ends[:1], "the proxy", needs_all=True)
    with pytest.raises(DivergedError, match=r"proxy needs all its runs: run 1 of its 2 diverged"):
        refuse_divergence(ends, "the proxy", needs_all=True)
    with pytest.raises(DivergedError, match="no run left: run 0 of its 2 diverged"):
        refuse_divergence(ends[1:] * 2, "the proxy")


def two_leaves(params, _):
    return jnp.sum(params["a"] ** 2) + jnp.sum(jnp.sqrt(params["b"]))


@pytest.mark.parametrize(
    ("start", "optimizer", "leaf"),
    [
        ({"a": 1e200, "b": 1.0}, optax.sgd(0.1), "loss"),
        ({"a": 1.0, "b": 0.0}, optax.sgd(0.1), "b"),
        ({"a": 1.0, "b": 1.0}, optax.stateless(lambda g, _: g | {"b": g["b"] / 0}), "b"),
    ],
    ids=["loss", "gradient", "new params"],
)
def test_the_status_names_what_was_not_finite(start, optimizer, leaf):
    training = Training(two_leaves, noise, optimizer, 3)
    run = fit(training, jax.tree.map(jnp.asarray, start), KEYS[0])
    assert run.status == Status("diverged", 0, leaf)
    assert str(run.status) == f"diverged at step 0 in {leaf}"
    assert jax.tree.map(float, run.params) == start


def status_from(losses):
    return classify_run(np.ones(3, bool), np.int32(len(losses)), losses, ["w"]).kind


def test_level_means_that_the_loss_has_stopped_falling():
    rng, t = np.random.default_rng(0), np.arange(500.0)
    early = np.exp(-t / 20)
    kinds = [status_from(early + 1 + 0.1 * rng.normal(size=500)) for _ in range(300)]
    assert 0.9 < np.mean([kind == "level" for kind in kinds]) < 1  # two standard errors
    # Controls: still falling, falling under noise, rising, too short to tell.
    assert status_from(np.exp(-t / 100)) == "finished"
    assert status_from(2 - t / 250 + 0.1 * rng.normal(size=500)) == "finished"
    assert status_from(t) == "finished"
    assert status_from(early[:49]) == "finished"
    assert descend(400).status.kind == "level"
    assert str(Status("finished", 7)) == "finished after 7 steps"
    assert str(Status("level", 7)) == "level after 7 steps"


def test_a_loss_that_has_reached_zero_or_no_longer_changes_is_level():
    t = np.arange(300.0)
    assert status_from(0.04**t) == "level"  # 0 from step 232
    assert status_from(1 + 0.8**t) == "level"  # its last digits from step 165
    # Controls: on its way to 0, and to 1.
    assert status_from(0.9**t) == "finished"
    assert status_from(1 + 0.95**t) == "finished"


def test_a_run_whose_loss_never_fell_is_not_called_trained():
    rng = np.random.default_rng(1)
    assert status_from(np.ones(500)) == "not trained"
    kinds = [status_from(1 + rng.normal(size=500)) for _ in range(300)]
    assert np.mean([kind == "level" for kind in kinds]) < 0.05
    assert np.mean([kind == "not trained" for kind in kinds]) > 0.85
    many = jax.tree.map(lambda leaf: jnp.repeat(leaf[None], 30, 0), START)
    still = descend(400, optimizer=optax.sgd(0.0), params=many, key=jax.random.split(KEYS[0], 30))
    kinds = [str(status) for status in still.status]
    assert np.mean([kind == "not trained after 400 steps" for kind in kinds]) > 0.85
    # Controls: a fall within the first two steps, and one that starts far below the noise.
    assert status_from(np.r_[9.0, 4, 1 + 0.1 * rng.normal(size=498)]) == "level"


def test_what_is_watched_is_kept_of_every_chunk():
    run = descend(36, chunk=12, params=STARTS, key=KEYS, watch=lambda params: 2 * params["w"])
    watched = run.history["watch"]
    assert watched.shape == (5, 4, 3)
    np.testing.assert_array_equal(watched[:, 0], 2 * STARTS["w"])
    np.testing.assert_array_equal(watched[:, -1], 2 * run.params["w"])
    half = descend(12, params=STARTS, key=KEYS)
    np.testing.assert_array_equal(watched[:, 1], 2 * half.params["w"])
    assert descend(36, chunk=12, watch=lambda params: params["w"]).history["watch"].shape == (4, 3)


@pytest.mark.parametrize(
    "optimizer",
    [
        optax.chain(optax.add_noise(0.1, 0.5, 0), optax.sgd(0.02)),
        add_noise("rbg"),
        optax.chain(optax.sgd(0.02), optax.contrib.reduce_on_plateau(patience=2)),
        optax.lbfgs(0.02),
        optax.chain(optax.sgd(0.02), optax.scale_by_backtracking_linesearch(5)),
    ],
    ids=[
        "a key in the state",
        "a key of another kind",
        "reads the loss",
        "L-BFGS",
        "backtracking line search",
    ],
)
def test_optimizers_go_through_a_checkpoint(tmp_path, optimizer, monkeypatch):
    monkeypatch.setattr(loop, "_SAVE_EVERY", 0.0)
    path = tmp_path / "fit.ckpt"
    stop_at_step(20, optimizer=optimizer, checkpoint=path)
    assert bits(descend(optimizer=optimizer, checkpoint=path)) == bits(descend(optimizer=optimizer))


def test_whole_numbers_of_numpy_go_into_a_checkpoint(tmp_path):
    sizes = dict(chunk=np.int64(12), watch=lambda params: params["w"])
    run = descend(np.int64(36), checkpoint=tmp_path / "fit.ckpt", **sizes)
    assert bits(run) == bits(descend(36, chunk=12, watch=sizes["watch"]))


def test_a_checkpoint_that_cannot_be_written_on_the_way_is_told_once_and_stops_nothing(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(loop, "_SAVE_EVERY", 0.0)
    save, attempts = Checkpoint.save, []

    def fails(checkpoint, snapshot, times=2):
        attempts.append(int(snapshot.step))
        if len(attempts) <= times:
            raise OSError(errno.ENOSPC, "No space left on device")
        save(checkpoint, snapshot)

    monkeypatch.setattr(Checkpoint, "save", fails)
    path = tmp_path / "fit.ckpt"
    assert bits(descend(chunk=10, checkpoint=path)) == bits(descend(chunk=10))
    assert len(attempts) > 3
    assert capsys.readouterr().err.count("is not saved: [Errno 28] No space left on device") == 1
    # Control: at its end it has to be written.
    monkeypatch.setattr(Checkpoint, "save", lambda *given: fails(*given, times=100))
    with pytest.raises(OSError, match="No space left"):
        descend(chunk=10, checkpoint=tmp_path / "other.ckpt")


class Bar:
    """Stands for a progress bar, and presses Ctrl-C, or sends another signal, at a step."""

    def __init__(self, step, presses=1, number=signal.SIGINT):
        self.step, self.presses, self.number, self.told = step, presses, number, []

    def add_task(self, *_, **__):
        return 0

    def update(self, _, completed, **__):
        self.told.append(completed)
        for _ in range(self.presses if completed == self.step else 0):
            os.kill(os.getpid(), self.number)


def stop_at_step(step, **changes):
    handler, bar = signal.getsignal(signal.SIGINT), Bar(step)
    with pytest.raises(KeyboardInterrupt):
        descend(chunk=10, progress=bar, **changes)
    assert signal.getsignal(signal.SIGINT) is handler
    assert bar.told[-1] == step


def test_ctrl_c_waits_for_the_chunk_and_saves(tmp_path):
    arguments = {"checkpoint": tmp_path / "fit.ckpt", "log": tmp_path / "log.jsonl"}
    stop_at_step(20, **arguments)
    bar = Bar(0)
    run = descend(chunk=10, progress=bar, **arguments)
    assert bar.told == [30, 37]
    assert bits(run) == bits(descend())
    lines = [json.loads(line) for line in arguments["log"].read_text().splitlines()]
    assert [line["step"] for line in lines] == [10, 20, 30, 37]
    assert lines[0]["loss"] == pytest.approx(run.history["loss"][:10].mean())


def test_a_second_ctrl_c_acts_at_once(tmp_path):
    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        descend(chunk=10, progress=Bar(20, presses=2), checkpoint=tmp_path / "fit.ckpt")
    assert signal.getsignal(signal.SIGINT) is handler
    assert not (tmp_path / "fit.ckpt").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_request_to_end_waits_for_the_chunk_and_saves(tmp_path, number):
    checkpoint = tmp_path / "fit.ckpt"
    before = signal.signal(number, signal.default_int_handler)  # whoever runs us may ignore it
    try:
        with pytest.raises(SystemExit) as ended:
            descend(chunk=10, progress=Bar(20, number=number), checkpoint=checkpoint)
        assert signal.getsignal(number) is signal.default_int_handler
    finally:
        signal.signal(number, before)
    assert ended.value.code == 128 + number
    assert bits(descend(checkpoint=checkpoint, chunk=10)) == bits(descend())


def test_a_request_to_stop_waits_for_a_slow_chunk_no_longer_than_it_has_patience(
    tmp_path, monkeypatch
):
    """The steps of that chunk are lost, and taken again to the same bits."""
    released, advance = threading.Event(), HostRuns.advance

    def slow(self, before, first, alive):
        if first != 20:
            return advance(self, before, first, alive)
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        return [self._pool.submit(released.wait, 20)]

    with monkeypatch.context() as patched:
        patched.setattr(loop, "_PATIENCE", 0.1)
        patched.setattr(HostRuns, "advance", slow)
        began = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            descend(chunk=10, checkpoint=tmp_path / "fit.ckpt")
        assert time.monotonic() - began < 15
        released.set()
    _, saved = checkpoints.unpacked((tmp_path / "fit.ckpt").read_bytes(), tmp_path)
    assert saved[".step"] == 20
    assert bits(descend(chunk=10, checkpoint=tmp_path / "fit.ckpt")) == bits(descend())


@pytest.mark.parametrize("tail", [b'{"label": "training", "st', b"\xff\xfe"])
def test_a_log_that_was_cut_short_goes_on_line_by_line(tmp_path, tail):
    arguments = {"checkpoint": tmp_path / "fit.ckpt", "log": tmp_path / "log.jsonl"}
    stop_at_step(20, **arguments)
    with arguments["log"].open("ab") as log:
        log.write(b"12\n" + tail)
    descend(chunk=10, **arguments)
    lines = arguments["log"].read_text().splitlines()
    assert lines.pop(2) == "12"
    assert [json.loads(line)["step"] for line in lines] == [10, 20, 30, 37]


def test_a_fit_that_had_ended_returns_at_once(tmp_path, monkeypatch):
    checkpoint = tmp_path / "fit.ckpt"
    run = descend(checkpoint=checkpoint)

    def never(*_):
        raise AssertionError("nothing is left to do")

    monkeypatch.setattr(loop, "_train", never)
    again = descend(checkpoint=checkpoint)
    assert bits(again) == bits(run)
    assert again.status == run.status


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"identity": "other"}, "has identity = , and this call has other"),
        ({"steps": 38}, "has steps = 37, and this call has 38"),
        ({"key": KEYS[1]}, "has keys = "),
        ({"params": {"w": STARTS["w"][1]}}, "has initial params = "),
        ({"optimizer": optax.sgd(0.02)}, "has optimizer = "),
        ({"loss": lambda params, batch: 2 * quartic(params, batch)}, "has loss = "),
        ({"sample": lambda key: 2 * noise(key)}, "has sample = "),
    ],
    ids=["identity", "steps", "key", "params", "optimizer", "loss", "sample"],
)
def test_a_checkpoint_of_another_fit_is_refused(tmp_path, change, message):
    descend(checkpoint=tmp_path / "fit.ckpt")
    with pytest.raises(ValueError, match=message):
        descend(checkpoint=tmp_path / "fit.ckpt", **change)


@contextmanager
def other_arithmetic(monkeypatch, name, value):
    """A process with other versions, flags, or values of jax.config than this one."""
    versions = {"jax": version("jax"), "jaxlib": version("jaxlib")}
    if name in versions:
        monkeypatch.setattr(provenance, "version", (versions | {name: value}).get)
    elif name == "XLA_FLAGS":
        monkeypatch.setenv(name, f"{os.environ[name]} {value}")
    elif name == "device":
        monkeypatch.setattr(jax, "devices", lambda: [SimpleNamespace(device_kind=value)])
    else:
        before = jax.config.values[name]
        jax.config.update(name, value)
    yield
    monkeypatch.undo()
    if name.startswith("jax_"):
        jax.config.update(name, before)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("jax", "0.99", "jax = "),
        ("device", "NVIDIA H100", "device = cpu, and this call has NVIDIA H100"),
        ("XLA_FLAGS", "--xla_cpu_enable_fast_math=true", "XLA_FLAGS = .*fast_math=true"),
        ("jax_default_matmul_precision", "bfloat16", "matmul precision = highest, and this call"),
        ("jax_enable_x64", False, "jax_enable_x64 = nothing, and this call has False"),
        ("jax_default_prng_impl", "rbg", "jax_default_prng_impl = nothing, and this call has rbg"),
    ],
)
def test_a_checkpoint_of_other_arithmetic_is_refused_by_name(
    tmp_path, monkeypatch, name, value, said
):
    checkpoint = tmp_path / "fit.ckpt"
    descend(2, checkpoint=checkpoint)
    with other_arithmetic(monkeypatch, name, value), pytest.raises(ValueError, match=said):
        descend(2, checkpoint=checkpoint)
    # Control: the number of host devices changes no bit, and the checkpoint is read.
    with other_arithmetic(monkeypatch, "XLA_FLAGS", "--xla_force_host_platform_device_count=7"):
        descend(2, checkpoint=checkpoint)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"steps": 0}, "steps = 0"),
        ({"chunk": 0}, "chunk = 0"),
        ({"key": KEYS[:0], "params": {"w": STARTS["w"][:0]}}, "key has shape"),
        ({"key": KEYS[None]}, "key has shape"),
        ({"key": KEYS[:4], "params": STARTS}, r"params.w has shape \(5, 3\): with 4 keys"),
        ({"key": KEYS, "params": STARTS, "per_run": jnp.ones(3)}, "per_run has shape"),
        ({"params": {"w": jnp.array([1.0, jnp.nan, 0.0])}}, "w is not finite"),
        ({"params": {"w": jnp.arange(3)}}, "w is int64: give floats"),
        ({"params": {"w": "a"}}, "w is <U1: give floats"),
        ({"params": {"w": jax.random.key(0)}}, "w is key<fry>: give floats"),
        ({"params": {}}, "params is {}: it has no array to train"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        descend(**change)
