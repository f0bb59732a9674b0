"""Join the tasks of a job that submitit has started into one computation of jax.

    def task():
        cluster.join_job()
        return fit(training, params, keys, files=files)  # each task trains a share, returns all

    executor = submitit.AutoExecutor("jobs")  # SLURM where there is one, else this machine
    executor.update_parameters(nodes=2, tasks_per_node=8, gpus_per_node=8)
    run = executor.submit(task).result()

A task uses the GPUs that it is given; on hosts it uses one core, so that a node has a task a core.
"""

import atexit
import os
import subprocess
import sys

from lsa_lab.training.mesh_runs import LOST


def join_job(heartbeat: int = 30) -> None:
    """Join all tasks of this job. To be called once in each of them, before any use of jax.

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
    """Let LOST be the last words of this process where another one is lost.

    jax aborts the process then, and no Python runs any more: a shell waits for the end of a pipe
    instead, and is told of an orderly end.
    """
    import jax

    words = ["sh", "-c", 'read -r _ || echo "$0" >&2', LOST]
    shell = subprocess.Popen(words, stdin=subprocess.PIPE, start_new_session=True)

    def leave() -> None:
        failed = hasattr(sys, "last_value")  # the exception that ends this process, if one does
        if not failed:
            jax.distributed.shutdown()
        shell.communicate(b"\n")
        if failed:  # to leave in order is to wait for the others, and they wait for this one
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(1)

    atexit.register(leave)
