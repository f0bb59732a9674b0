"""The processes of a job train the runs that one process trains, and say when one is lost."""

import json
import os
import signal
import sys
import time

import cloudpickle
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import submitit

from lsa_lab.training import Files, Training, cluster, fit, loop
from lsa_lab.training.mesh_runs import LOST
from lsa_lab.training.snapshots import Checkpoint

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # no task imports this file


def train(folder):
    """Return params, losses and what is watched of seven runs: two tasks have room for eight."""
    training = Training(
        lambda params, batch: ((params[None] - batch) ** 2).mean(),
        lambda key: jax.random.normal(key, (20, 3)),
        optax.adam(0.1),
        steps=40,
    )
    starts, keys = np.arange(21.0).reshape(7, 3), jax.random.split(jax.random.key(1), 7)
    files = Files(folder / "fit.ckpt", folder / "log.jsonl")
    run = fit(training, starts, keys, files=files, chunk=10, watch=jnp.sum)
    return [np.asarray(x) for x in (run.params, run.history["loss"], run.history["watch"])]


def task(folder, dies):
    """Train as one task of a job, of which the task ``dies`` kills itself after 20 steps."""
    cluster.join_job(heartbeat=2)
    jax.config.update("jax_enable_x64", True)
    loop._SAVE_EVERY, save = 0.0, Checkpoint.save

    def save_or_die(checkpoint, snapshot):
        save(checkpoint, snapshot)
        if snapshot.step == 20 and jax.process_index() == dies:
            os.kill(os.getpid(), signal.SIGKILL)

    Checkpoint.save = save_or_die
    return train(folder)


def start_job(folder, dies=None):
    executor = submitit.AutoExecutor(folder / "jobs", cluster="local")
    executor.update_parameters(tasks_per_node=2, timeout_min=2)
    return executor.submit(task, folder, dies)


def test_two_processes_train_the_runs_of_one(tmp_path):
    first, second = start_job(tmp_path).results()
    for own, other, expected in zip(first, second, train(tmp_path / "alone"), strict=True):
        np.testing.assert_array_equal(own, other)
        np.testing.assert_allclose(own, expected, rtol=1e-12)
    assert logged_steps(tmp_path) == [10, 20, 30, 40]


def logged_steps(folder):
    lines = (folder / "log.jsonl").read_text().splitlines()
    return [json.loads(line)["step"] for line in lines]


@pytest.mark.parametrize("dies", [0, 1])
def test_a_job_that_loses_a_process_ends_with_a_sentence_and_resumes(tmp_path, dies):
    job = start_job(tmp_path, dies)
    survivor, end = job.task(1 - dies), time.monotonic() + 90
    while not (text := survivor.stderr() or "").rstrip().endswith(LOST):
        assert time.monotonic() < end, text
        time.sleep(0.1)
    with pytest.raises(submitit.core.utils.FailedJobError, match=LOST):
        survivor.result()
    again, _ = start_job(tmp_path).results()
    for own, expected in zip(again, train(tmp_path / "alone"), strict=True):
        np.testing.assert_allclose(own, expected, rtol=1e-12)
    assert logged_steps(tmp_path) == [10, 20, 30, 40]


ACCELERATORS = """
import os, signal, sys
from pathlib import Path
import jax, numpy as np
jax.default_backend = lambda: "gpu"  # the devices of this host stand for accelerators
from lsa_lab.training import loop, mesh_runs
sys.path.append("tests/training")
import test_cluster

folder, expected = Path(sys.argv[1]), np.load(sys.argv[2])
assert mesh_runs._make_mesh().size == 4
keep, loop._SAVE_EVERY = loop._keep, 0.0

def interrupt(*arguments):
    keep(*arguments)
    os.kill(os.getpid(), signal.SIGINT)

loop._keep = interrupt
for step in (10, 20):
    try:
        test_cluster.train(folder)
    except KeyboardInterrupt:
        assert test_cluster.logged_steps(folder)[-1] == step
loop._keep = keep
for own, name in zip(test_cluster.train(folder), expected.files):
    np.testing.assert_allclose(own, expected[name], rtol=1e-12)
"""


def test_several_devices_of_one_process_train_the_runs_of_one_and_resume(tmp_path, on_devices):
    np.savez(tmp_path / "expected.npz", *train(tmp_path / "alone"))
    on_devices(4, ACCELERATORS, tmp_path, tmp_path / "expected.npz")
    assert logged_steps(tmp_path) == [10, 20, 30, 40]
