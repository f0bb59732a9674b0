"""Join the tasks of a job that submitit has started into one computation of jax.

    def task():
        cluster.join_job()
        return fit(training, params, keys, files=files)  # each task trains a share, returns all

    executor = submitit.AutoExecutor("jobs")  # SLURM where there is one, else this machine
    executor.update_parameters(nodes=2, tasks_per_node=8, gpus_per_node=8)
    run = executor.submit(task).result()

A task uses the GPUs that it is given, and on hosts one core: start a task for each core.
"""

import atexit
import os
import subprocess
import sys

from lsa_lab.training.mesh_runs import LOST


def join_job(heartbeat: int = 30) -> None:
    """Join all tasks of this job. Each task calls this once, before it uses jax.

    A task that gives no sign of life for ``heartbeat`` seconds is lost, and ends the others.
    """
    import jax
    import submitit

    task = submitit.JobEnvironment()
    if task.num_tasks == 1:
        return
    host = "127.0.0.1" if task.cluster == "local" else task.hostnames[0]
    port = 10_000 + int("".join(filter(str.isdigit, task.job_id))) % 20_000
    _announce_loss()
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(
        f"{host}:{port}", task.num_tasks, task.global_rank, heartbeat_timeout_seconds=heartbeat
    )


def _announce_loss() -> None:
    """Print LOST at the end of this process if jax aborts it, as it does when another one is lost.

    No Python runs after that: a shell waits for the end of a pipe, and is told of an orderly end.
    """
    import jax

    words = ["sh", "-c", 'read -r _ || echo "$0" >&2', LOST]
    shell = subprocess.Popen(words, stdin=subprocess.PIPE, start_new_session=True)

    def leave() -> None:
        failed = hasattr(sys, "last_value")
        if not failed:
            jax.distributed.shutdown()
        shell.communicate(b"\n")
        if failed:  # at once, for shutdown waits for the other processes, and they for this one
            os._exit(1)

    atexit.register(leave)
