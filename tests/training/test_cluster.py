"""The processes of a job, or the devices of one, train the runs that one processor trains."""

import os
import signal
import sys

import cloudpickle
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import submitit
from submitit.core.utils import FailedJobError, UncompletedJobError

from lsa_lab.training import Files, Training, checkpoints, cluster, fit, loop

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
    run = fit(training, starts, keys, files=Files(folder / "fit.ckpt"), chunk=10, watch=jnp.sum)
    return [np.asarray(x) for x in (run.params, run.history["loss"], run.history["watch"])]


def task(folder, dies):
    """Train as one task of a job; with ``dies`` the first kills itself after 20 steps."""
    cluster.join_job(heartbeat=2)
    jax.config.update("jax_enable_x64", True)
    loop._SAVE_EVERY, save = 0.0, checkpoints.save

    def save_or_die(path, snapshot, facts):
        save(path, snapshot, facts)
        if snapshot.step == 20 and dies:
            os.kill(os.getpid(), signal.SIGKILL)

    checkpoints.save = save_or_die
    return train(folder)


def start_job(folder, dies=False):
    executor = submitit.AutoExecutor(folder / "jobs", cluster="local")
    executor.update_parameters(tasks_per_node=2, timeout_min=2)
    return executor.submit(task, folder, dies)


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    return train(tmp_path_factory.mktemp("alone"))


@pytest.mark.slow
def test_a_job_that_loses_a_process_ends_and_resumes_to_the_runs_of_one_process(tmp_path, expected):
    survivor = start_job(tmp_path, dies=True).task(1)
    with pytest.raises((FailedJobError, UncompletedJobError)):
        survivor.result()
    assert checkpoints.read(tmp_path / "fit.ckpt")[1][".step"] == 20
    for first, second, alone in zip(*start_job(tmp_path).results(), expected, strict=True):
        np.testing.assert_array_equal(first, second)
        np.testing.assert_allclose(first, alone, rtol=1e-12)


ACCELERATORS = """
import sys
from pathlib import Path
import conftest
import jax, numpy as np
jax.default_backend = lambda: "gpu"  # the devices of this host stand for accelerators
from lsa_lab.training import executors, loop, snapshots
import test_cluster

assert executors.make_mesh().size == 4
folder, expected, extend = Path(sys.argv[1]), np.load(sys.argv[2]), snapshots.extend
loop._SAVE_EVERY = 0.0

def interrupt(plan, snapshot, step, *arguments):
    if step == 30:
        raise KeyboardInterrupt
    return extend(plan, snapshot, step, *arguments)

snapshots.extend = interrupt
try:
    test_cluster.train(folder)
except KeyboardInterrupt:
    assert test_cluster.checkpoints.read(folder / "fit.ckpt")[1][".step"] == 20
snapshots.extend = extend
for array, name in zip(test_cluster.train(folder), expected.files):
    np.testing.assert_allclose(array, expected[name], rtol=1e-12)
"""


def test_several_devices_train_the_runs_of_one_and_resume(tmp_path, expected, python):
    np.savez(tmp_path / "expected.npz", *expected)
    flags = f"{os.environ['XLA_FLAGS']} --xla_force_host_platform_device_count=4"
    ended = python(ACCELERATORS, tmp_path, tmp_path / "expected.npz", XLA_FLAGS=flags)
    assert ended.returncode == 0, ended.stderr
