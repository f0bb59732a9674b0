"""Join the tasks of a job that submitit has started into one computation of jax.

    def task():
        cluster.join_job()
        return fit(training, params, keys, files=files)  # each task trains a share, returns all

    executor = submitit.AutoExecutor("jobs")  # SLURM where there is one, else this machine
    executor.update_parameters(nodes=2, tasks_per_node=8, gpus_per_node=8)
    run = executor.submit(task).result()

A task uses the GPUs that it is given, and on hosts one core: start a task for each core.
"""


def join_job(heartbeat: int = 30) -> None:
    """Join all tasks of this job. Each task calls this once, before it uses jax.

    A task that gives no sign of life for ``heartbeat`` seconds is lost, and ends the others; the
    same job, started again, resumes from the last checkpoint.
    """
    import jax
    import submitit

    task = submitit.JobEnvironment()
    if task.num_tasks == 1:
        return
    host = "127.0.0.1" if task.cluster == "local" else task.hostnames[0]
    port = 10_000 + int("".join(filter(str.isdigit, task.job_id))) % 20_000
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(
        f"{host}:{port}", task.num_tasks, task.global_rank, heartbeat_timeout_seconds=heartbeat
    )
